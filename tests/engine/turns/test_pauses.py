"""Passages of a text with their punctuation, and pauses of the length that it asks for."""

from types import SimpleNamespace

import numpy as np
import pytest

from dia_demo.checkpoint_config import read_model_config
from dia_demo.engine.turns.passages import PARAGRAPH, marks_of, passages, readable
from dia_demo.engine.turns.pauses import Pauses
from dia_demo.text.script import encode_script
from tests.helpers.models.known import EMBEDDED_FOLDER

TABLE = read_model_config(EMBEDDED_FOLDER).voices
RATE = 16000 / 384
SPEECH, SILENCE = np.full(4, 1), np.array(TABLE.silence)
# The first silence of a turn with its mark, and what the model makes of a comma and of a full stop.
LEAD_IN, COMMA, STOP = 6, 7, 11


# Passages


@pytest.mark.parametrize(
    "script, expected",
    [
        ("[S1] A b. [S2] C.", [(1, b"A b."), (2, b"C.")]),
        ("Hello.", [(1, b"Hello.")]),
        ("[S1] A. B? [S2] C. [S1]", [(1, b"A. B?"), (2, b"C.")]),
        ("[S1] A [S1] B. C. [S2] D", [(1, b"A \x01 B. C."), (2, b"D")]),
        ("[S1] [S2] A", [(2, b"A")]),
    ],
)
def test_passages_are_what_one_speaker_says_before_the_other(script, expected):
    text = encode_script(script)
    found = passages(text, 0)
    assert [(passage.speaker, text[passage.start : passage.end]) for passage in found] == expected


def test_passages_begin_after_the_transcript_with_its_last_speaker():
    said = "[S1] One. [S2] Two."
    text = encode_script("Three. [S1] Four.", said)
    found = passages(text, len(encode_script(said)))
    assert [(passage.speaker, text[passage.start : passage.end]) for passage in found] == [
        (2, b"Three."),
        (1, b"Four."),
    ]
    assert [text[mark.word :][:4] for mark in marks_of(text, found)] == [b"Four"]


def test_marks_are_those_that_words_follow():
    text = encode_script('[S1] Well, "no." So... it is: 3.5; ok?\n\nYes! [S2] I [S1] see [S1] it.')
    found = [
        (mark.kind, text[mark.word :].split()[0], mark.ends_turn)
        for mark in marks_of(text, passages(text, 0))
    ]
    assert found == [
        (",", b'"no."', False),
        (".", b"So...", False),
        ("...", b"it", False),
        (":", b"3.5;", False),
        (";", b"ok?", False),
        (PARAGRAPH, b"Yes!", False),
        ("!", b"I", True),
        (".", b"see", True),
        (".", b"it.", False),
    ]


def test_the_model_reads_commas_where_it_was_taught_no_mark_in_the_same_places():
    text = encode_script('[S1] He said: "wait; no." At 9:30; I [S2] So: [S1] Yes.')
    assert readable(text) == encode_script(
        '[S1] He said, "wait, no." At 9:30, I [S2] So, [S1] Yes.'
    )


# Pauses


def frames(*runs: tuple[np.ndarray, int]) -> np.ndarray:
    return np.concatenate([np.tile(frame, (count, 1)) for frame, count in runs])


def spoken(first: str, second: str, silence: int) -> tuple[np.ndarray, SimpleNamespace]:
    """The frames of two parts of a turn, or of two turns where the second has a tag, with a silence
    between them; and what is known of their turns. Every part has 50 frames of speech."""
    text = encode_script(f"[S1] {first} {second}")
    found = passages(text, 0)
    word = len(text) - len(second.removeprefix("[S2] "))
    codes = frames((SILENCE, LEAD_IN), (SPEECH, 50), (SILENCE, silence), (SPEECH, 50))
    begun = [(0, 0)]
    if len(found) == 2:
        begun.append((LEAD_IN + 50 + silence - LEAD_IN, 1))
    before = len(encode_script(f"[S1] {first}")) - 1
    places = np.full(len(codes), before)
    places[LEAD_IN + 50 + silence // 2 :] = word
    return codes, SimpleNamespace(
        table=TABLE, passages=found, begun=begun, punctuation=marks_of(text, found), places=places
    )


def pause_seconds(first: str, second: str, silence: int, seed: int = 0) -> float:
    codes, turns = spoken(first, second, silence)
    out = Pauses(turns, seed, RATE).push(codes, finish=True)
    quiet = np.flatnonzero((out == SILENCE).all(1))
    return float((quiet >= LEAD_IN).sum() / RATE)


HALF = "I have a red boat"


def test_pauses_differ_by_punctuation():
    """Comma < semicolon, colon < full stop < question < ellipsis, paragraph."""

    def within(mark: str, silence: int) -> float:
        return np.mean([pause_seconds(HALF + mark, "and you.", silence, s) for s in range(20)])

    comma, semicolon, colon = (within(mark, COMMA) for mark in ",;:")
    stop, question, dots, paragraph = (within(m, STOP) for m in (".", "?", "...", ".\n\n"))
    assert 0.1 < comma < semicolon - 0.05 and abs(semicolon - colon) < 0.02
    assert max(semicolon, colon) + 0.05 < stop < question < min(dots, paragraph) < 0.8


@pytest.mark.parametrize("mark", [".", "!", "?", "...", ".\n\n", ","])
def test_a_pause_between_turns_is_longer_than_within_one(mark):
    turn = np.mean([pause_seconds(HALF + mark, "[S2] Yes.", 12, seed) for seed in range(20)])
    silence = COMMA if mark == "," else STOP
    within = np.mean([pause_seconds(HALF + mark, "and you.", silence, s) for s in range(20)])
    assert within - 0.01 <= turn <= 0.8


def test_pauses_vary_with_the_seed_and_are_the_same_again():
    seconds = [pause_seconds(HALF + ".", "[S2] Yes.", 12, seed) for seed in range(20)]
    assert len(set(seconds)) > 3 and 0.1 <= min(seconds) and max(seconds) <= 0.8
    assert seconds == [pause_seconds(HALF + ".", "[S2] Yes.", 12, seed) for seed in range(20)]


def test_a_silence_that_is_too_long_is_shortened():
    assert pause_seconds(HALF + ",", "and you.", 8) < 0.25
    assert pause_seconds(HALF + ".", "[S2] Yes.", 60) < 0.6


def test_a_silence_without_a_mark_stays_as_it_is():
    assert pause_seconds(HALF, "and you.", 7) == pytest.approx(7 / RATE)


@pytest.mark.parametrize("step", [1, 5, 40])
def test_frames_that_arrive_in_pieces_give_the_same(step):
    codes, turns = spoken(HALF + ".", "[S2] Yes.", 12)
    whole = Pauses(turns, 3, RATE).push(codes, finish=True)
    pauses, pieces = Pauses(turns, 3, RATE), []
    for start in range(0, len(codes), step):
        piece = codes[start : start + step]
        pieces.append(pauses.push(piece, finish=start + step >= len(codes)))
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert len(whole) == len(codes) + pauses.added


def test_every_frame_returned_says_which_frame_it_was():
    for silence in (9, 60):  # A pause that is made longer, and one that is made shorter.
        codes, turns = spoken(HALF + ".", "[S2] Yes.", silence)
        pauses = Pauses(turns, 3, RATE)
        out = pauses.push(codes, finish=True)
        sources = np.array(pauses.sources)
        np.testing.assert_array_equal(out[sources >= 0], codes[sources[sources >= 0]])
        assert (out[sources < 0] == SILENCE).all() and len(sources) == len(out)
        assert (np.diff(sources[sources >= 0]) > 0).all() and pauses.added
