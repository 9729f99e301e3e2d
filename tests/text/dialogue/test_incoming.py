"""Text that arrives in pieces becomes the same sentences however it is cut."""

import numpy as np
import pytest

from dia_demo.text.dialogue.incoming import LONGEST_SENTENCE, IncomingText, Sentence

TEXT = (
    "Dr. Smith paid $3.50 (he sighs. A lot). Was it “worth it?” Yes!  [S2] I don't [laughs] know."
    "[S1]So… ask Mr. Jones.\n\nA title\n \nAnd one line\nthat goes on. Unclosed (or not. End"
)
SENTENCES = [
    (1, "Dr. Smith paid $3.50 (he sighs. A lot)."),
    (1, "Was it “worth it?”"),
    (1, "Yes!"),
    (2, "I don't [laughs] know."),
    (1, "So…"),
    (1, "ask Mr. Jones."),
    (1, "A title"),
    (1, "And one line\nthat goes on."),
    (1, "Unclosed (or not."),
    (1, "End"),
]


def sentences(*pieces):
    text = IncomingText()
    found = [sentence for piece in pieces for sentence in text.add(piece)]
    return [(sentence.speaker, sentence.text) for sentence in found + text.finish()]


def test_a_text_is_split_at_ends_of_sentences_turns_and_paragraphs():
    assert sentences(TEXT) == SENTENCES


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("largest", [1, 4, 40])
def test_cuts_change_nothing(seed, largest):
    random = np.random.default_rng(seed)
    ends = np.cumsum(random.integers(0, largest + 1, 4 * len(TEXT))).clip(0, len(TEXT)).tolist()
    pieces = [TEXT[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert "".join(pieces) == TEXT
    assert sentences(*pieces) == SENTENCES


WRITTEN = (
    'Well, (pause 0.5) Dr. Smith [S2] no … <break time="0.5s"/> it is 3 < 4. [S1] (sighs a lot)'
)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("largest", [1, 4, 40])
def test_words_come_one_by_one_and_none_is_lost(seed, largest):
    """Pauses and sounds are whole, and a tag stays where it was."""
    random = np.random.default_rng(seed)
    ends = np.cumsum(random.integers(0, largest + 1, 4 * len(WRITTEN))).clip(0, len(WRITTEN))
    text, found = IncomingText(by_words=True), []
    for start, end in zip([0, *ends], ends, strict=False):
        found += text.add(WRITTEN[start:end])
    found += text.finish()
    tagged = [f"[S{one.speaker}] {one.text}" if one.is_tagged else one.text for one in found]
    assert " ".join(tagged) == WRITTEN
    for whole in ("(pause 0.5)", '<break time="0.5s"/>', "(sighs a lot)"):
        assert sum(whole in one.text for one in found) == 1
    assert found[-1].is_end and (largest > 1 or len(found) > 10)


def test_a_word_comes_as_soon_as_a_space_follows_it():
    text = IncomingText(by_words=True)
    assert text.add("Hello the") == [Sentence(1, "Hello", is_end=False)]
    assert text.add("re. ") == [Sentence(1, "there.")]
    assert text.add("(pause") == text.add(" 0.5)") == []
    assert text.add(" ") == [Sentence(1, "(pause 0.5)", is_end=False)]
    assert text.finish() == []


def test_a_sentence_comes_as_soon_as_a_space_follows_it():
    text = IncomingText()
    assert text.add("It costs 3.") == []
    assert text.add("50 today.") == []
    assert text.waiting == len("It costs 3.50 today.")
    assert text.add(" ") == [Sentence(1, "It costs 3.50 today.")]
    assert text.waiting == 0


def test_a_tag_ends_a_sentence_even_in_pieces():
    text = IncomingText()
    assert text.add("Hello there [S") == []
    assert text.add("2] And") == [Sentence(1, "Hello there")]
    assert text.finish() == [Sentence(2, "And")]


def test_the_next_text_begins_with_the_first_speaker():
    text = IncomingText()
    text.add("[S2] One.")
    assert text.finish() == [Sentence(2, "One.")]
    text.add("Two.")
    assert text.finish() == [Sentence(1, "Two.")]


@pytest.mark.parametrize("text", ["", "  \n\n ", "...", "[S1] [S2]", "!? (. ) …"])
def test_what_has_no_words_is_no_sentence(text):
    assert sentences(text) == []


@pytest.mark.parametrize("word", ["and so on, ", "and so on ", "x"])
@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_a_sentence_without_end_is_spoken_in_parts(word, piece):
    long = word * (3000 // len(word))
    whole = sentences(long)
    assert sentences(*(long[at : at + piece] for at in range(0, len(long), piece))) == whole
    assert len(whole) >= 5
    assert all(LONGEST_SENTENCE // 2 < len(text) <= LONGEST_SENTENCE for _, text in whole[:-1])
    assert "".join(text for _, text in whole).replace(" ", "") == long.replace(" ", "")
