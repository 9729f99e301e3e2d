"""Scripts of any length as chunks: nothing is lost, none is too long, pauses are between them."""

import random
import re

import pytest

from dia_demo.errors import InputError
from dia_demo.text.dialogue.breaks import Break
from dia_demo.text.dialogue.chunks import LONGEST_SECONDS, Size, split_script
from dia_demo.text.dialogue.pauses import remove_pauses
from dia_demo.text.script import TAG, expected_seconds, parse_turns, to_bytes

WORDS = "a I we all that word Dr. Smith's 3.5 it; well, no! really? (laughs)".split()
SENTENCE = "This is a sentence of a few words, with a comma and (clears throat) a sound in it."


def measure(text: str) -> Size:
    return Size(expected_seconds(text), len(to_bytes(text)))


def spoken(script: str) -> list[tuple[int, list[str]]]:
    """Every word with who says it, in order."""
    turns = parse_turns(remove_pauses(script))
    return [(turn.speaker or 1, word) for turn in turns for word in turn.text.split()]


def random_script(rng: random.Random) -> str:
    """Turns of any length, with pauses anywhere between words."""
    turns = []
    for _ in range(rng.choice([1, 2, 5, 30])):
        words = rng.choices(WORDS, k=rng.choice([1, 2, 8, 40, 300]))
        while rng.random() < 0.3:
            words.insert(rng.randrange(len(words) + 1), rng.choice(["(pause)", "[pause:1.5s]"]))
        turns.append(f"[S{rng.choice([1, 2])}] {' '.join(words)}")
    return " ".join(turns) + " word"


@pytest.mark.parametrize("seed", range(60))
def test_chunks_say_the_words_of_the_script_in_order(seed):
    script = random_script(random.Random(seed))
    chunks = split_script(script, measure).chunks
    assert [pair for chunk in chunks for pair in spoken(chunk.script)] == spoken(script)
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert TAG.match(chunk.script) and "pause" not in chunk.script
        assert chunk.seconds <= LONGEST_SECONDS
        assert re.fullmatch(r".* \[S[12]\]", chunk.closed_script)


def test_a_turn_begins_a_chunk_where_turns_are_short():
    script = " ".join(f"[S{1 + k % 2}] Line number {k} is here." for k in range(500))
    chunks = split_script(script, measure).chunks
    assert {chunk.before for chunk in chunks} == {Break.TURN}
    assert all(8 <= chunk.seconds <= 18 for chunk in chunks)
    turns = [part.turn for chunk in chunks for part in chunk.parts]
    assert turns == list(range(500))


def test_a_turn_of_5000_characters_is_split_at_sentences():
    chunks = split_script(f"[S2] {' '.join([SENTENCE] * 60)}", measure).chunks
    assert {chunk.before for chunk in chunks[1:]} == {Break.SENTENCE}
    assert all(8 <= chunk.seconds <= 18 and chunk.speakers == {2} for chunk in chunks)
    assert {part.turn for chunk in chunks for part in chunk.parts} == {0}


def test_a_sentence_that_is_too_long_is_split_at_commas_and_then_at_spaces():
    clauses = split_script("[S1] " + "and so on it went, " * 60, measure).chunks
    assert {chunk.before for chunk in clauses[1:]} == {Break.CLAUSE}
    words = split_script("[S1] " + "word " * 200, measure).chunks
    assert {chunk.before for chunk in words[1:]} == {Break.WORD}


def test_no_sentence_ends_at_an_abbreviation_or_inside_a_sound():
    script = "[S1] " + "We met Mr. Smith and J. Doe (clears throat) today. " * 12
    for chunk in split_script(script, measure).chunks:
        assert re.search(r"today\.$", chunk.script)


def test_a_chunk_has_no_more_bytes_than_a_model_reads():
    chunks = split_script(f"[S1] {SENTENCE * 20}", measure, longest=1000, most_bytes=300).chunks
    assert all(len(to_bytes(chunk.closed_script)) <= 300 for chunk in chunks)


def test_the_closing_tag_is_that_of_the_other_speaker():
    (chunk,) = split_script("[S1] Hello. [S2] Hi. [S1]", measure).chunks
    assert chunk.closed_script == "[S1] Hello. [S2] Hi. [S1]"
    (alone,) = split_script("Hello.", measure).chunks
    assert alone.closed_script == "[S1] Hello. [S2]"


def test_a_pause_is_between_two_chunks_with_its_length():
    script = "(pause 2) [S1] Well (pause), yes. (pause 500ms) (pause) [S2] No. <break time='3s'/>"
    chunked = split_script(script, measure)
    found = [(chunk.pause, chunk.script, chunk.parts[0].turn) for chunk in chunked.chunks]
    assert found == [(2, "[S1] Well,", 0), (1, "[S1] yes.", 0), (1.5, "[S2] No.", 1)]
    assert chunked.pause == 3


def test_a_script_of_pauses_has_no_words():
    for script in ("", "[S1] [S2]", "[S1] ..."):
        with pytest.raises(InputError, match="no words"):
            split_script(script, measure)
    with pytest.raises(InputError, match="no words"):
        split_script("[S1] (pause) (pause 3)", measure)
