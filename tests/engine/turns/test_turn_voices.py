"""Every turn has the mark of its speaker's voice; the seed alone says which voices these are."""

from dataclasses import replace

import numpy as np
import pytest

from dia_demo.checkpoint_config import read_model_config
from dia_demo.engine.loop import run_to_end
from dia_demo.engine.row import Row
from dia_demo.engine.turns.voices import TurnVoices
from dia_demo.model.checkpoint import EMBEDDED_FOLDER
from dia_demo.text.script import encode_script
from tests.helpers.models.checkpoints import load

pytestmark = pytest.mark.processor

CONFIG = read_model_config(EMBEDDED_FOLDER)
TABLE = CONFIG.voices
START = np.array(TABLE.turn_start)
NAMES = {voice.mark: voice.name for voice in TABLE.voices}
TURNS = "[S1] Is that a horse? [S2] Yes, it is. [S1] I see. [S2] Look at it. [S1]"


@pytest.fixture(scope="module")
def model():
    return load(EMBEDDED_FOLDER)


def make_row(script, *, prompt=None, said="", **params) -> Row:
    text = encode_script(script, said)
    params = replace(CONFIG.defaults, max_tokens=400, **params)
    return Row(CONFIG, text, params, prompt, said=len(encode_script(said)) if said else 0)


def marks_of(codes) -> list[int]:
    """The code in the place of the mark of every turn, found as a reader of the codes would."""
    starts = [
        frame
        for frame in range(len(codes) - 2)
        if (codes[frame : frame + 2] == START).mean() >= 0.75
    ]
    return [int(codes[frame + 2, -1]) for frame in starts]


def voices_of(codes) -> list[str | None]:
    return [NAMES.get(mark) for mark in marks_of(codes)]


# Whole takes


@pytest.mark.parametrize("temperature", [0.0, 0.1, 1.0])
def test_every_turn_has_its_speakers_voice(model, temperature):
    rows = [make_row(TURNS, seed=seed, temperature=temperature) for seed in range(6)]
    run_to_end(model, rows)
    for seed, row in enumerate(rows):
        one, two = (voice.name for voice in TABLE.drawn(seed))
        assert row.voices == (one, two)
        assert voices_of(row.codes()) == [one, two, one, two]


def test_a_row_alone_has_the_codes_that_it_has_beside_others(model):
    rows = [make_row(TURNS, seed=seed) for seed in range(3)]
    run_to_end(model, rows)
    alone = make_row(TURNS, seed=1)
    run_to_end(model, [alone])
    np.testing.assert_array_equal(alone.codes(), rows[1].codes())


def test_the_voices_do_not_depend_on_the_settings():
    for params in ({"temperature": 1.0}, {"top_p": 0.5}, {"cfg_scale": 3.0}, {"top_k": 5}):
        assert make_row(TURNS, seed=7, **params).voices == make_row(TURNS, seed=7).voices


def test_a_script_of_the_second_speaker_has_the_second_voice(model):
    row = make_row("[S2] Look at it.", seed=3)
    run_to_end(model, [row])
    assert voices_of(row.codes()) == [TABLE.drawn(3)[1].name]


def test_prompted_speakers_keep_the_prompts_voice_and_others_get_theirs(model):
    said = make_row("[S1] Put the blue cup on the shelf.", seed=2)
    run_to_end(model, [said])
    prompt = said.codes().astype(np.int64)
    row = make_row(TURNS, prompt=prompt, said="[S1] Put the blue cup on the shelf.", seed=3)
    run_to_end(model, [row])
    two = TABLE.drawn(3)[1].name
    assert row.voices == (None, two)
    assert voices_of(row.codes()) == [None, two, None, two]


def test_without_a_transcript_nobody_gets_a_mark():
    prompt = np.full((5, 4), 77)
    assert make_row(TURNS, prompt=prompt).voices is None


# Turns in which a model begins a sentence as if it were a turn


def logits(**likely) -> np.ndarray:
    """Of the last channel: likely voices by name, "other" for a code that is no mark."""
    out = np.full(CONFIG.decoder.vocab_size, -9.0, np.float32)
    codes = {voice.name: voice.mark for voice in TABLE.voices} | {"other": 0}
    for name, value in likely.items():
        out[codes[name]] = value
    return out


def two_sentences():
    """Two sentences of S1, a turn of S2, another of S1, all of 50 characters; and their voices."""
    sentence = "a" * 49 + "."
    text = encode_script(f"[S1] {sentence} {sentence} [S2] {sentence} [S1] {sentence}")
    turns = TurnVoices(CONFIG, 0, text)
    return turns, *turns.voices.values()


def test_a_sentence_after_half_of_the_passage_has_the_same_voice():
    turns, one, two = two_sentences()
    half, whole, turn = (round(TABLE.frames(count, 1)) for count in (51, 101, 50))
    for frame, voice in [(0, one), (half, one), (whole, two), (whole + turn, one)]:
        assert turns.mark(0, logits(other=0.0), frame) == voice.mark


def test_a_turn_that_is_expected_before_its_time_is_taken_for_one():
    turns, one, two = two_sentences()
    assert turns.mark(0, logits(), 0) == one.mark
    frame = round(TABLE.frames(75, 1))
    assert turns.mark(0, logits(**{two.name: 5.0}), frame) == two.mark


def test_after_a_turn_without_a_mark_the_next_has_its_own_voice():
    turns, one, two = two_sentences()
    assert turns.mark(0, logits(), 0) == one.mark
    frame = round(TABLE.frames(101, 1) + TABLE.frames(50, 1))
    assert turns.mark(0, logits(**{one.name: 1.0}), frame) == one.mark
    assert [passage for _, passage in turns.begun] == [0, 2]


def test_short_turns_follow_each_other():
    turns = TurnVoices(CONFIG, 0, encode_script("[S1] No. [S2] Yes. [S1] No. [S2] Stop."))
    one, two = turns.voices.values()
    found = [turns.mark(0, logits(), 28 * place) for place in range(4)]
    assert found == [one.mark, two.mark, one.mark, two.mark]


# Turns that the script has not, or that are missing


def starts_of(*lengths: int) -> list[int]:
    """Where turns of so many characters begin if they last as long as is usual."""
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + round(TABLE.frames(length, 1)))
    return starts


@pytest.mark.parametrize("longer", [0.85, 1.0, 1.15])
@pytest.mark.parametrize(
    ("begun", "end", "surplus"),
    [
        ([0, 1, 2], 3, 0),
        ([0, 1], 2, -1),
        ([0], 1, -2),
        ([0, 1], 3, 0),  # The last one began without a mark.
        ([0, 1, 2, 3], 4, 1),
        ([], 3, 0),
    ],
)
def test_turns_beyond_the_script_and_missing_ones_are_counted(begun, end, surplus, longer):
    sentence = "a" * 49 + "."
    text = encode_script(f"[S1] {sentence} [S2] {sentence} [S1] {sentence}")
    turns, starts = TurnVoices(CONFIG, 0, text), starts_of(*[50] * 4)
    turns.begun = [(round(longer * starts[k]), min(k, 2)) for k in begun]
    assert turns.surplus(round(longer * starts[end])) == surplus


def test_a_sentence_that_begins_like_a_turn_is_none():
    turns, *_ = two_sentences()
    half, whole = (round(TABLE.frames(count, 1)) for count in (51, 101))
    turns.passages = [turns.passages[0]]
    turns.begun = [(0, 0), (half, 0)]
    assert turns.surplus(whole) == 0
    turns.begun.append((whole, 0))
    assert turns.surplus(whole + half) == 1


@pytest.mark.parametrize("prompted", [False, True])
def test_a_whole_take_has_the_turns_of_its_script(model, prompted):
    said = "[S1] Put the blue cup on the shelf." if prompted else ""
    prompt = None
    if prompted:
        before = make_row(said, seed=2)
        run_to_end(model, [before])
        prompt = before.codes().astype(np.int64)
    rows = [make_row(TURNS, seed=seed, prompt=prompt, said=said) for seed in range(3)]
    run_to_end(model, rows)
    assert [row.surplus_turns for row in rows] == [0, 0, 0]
