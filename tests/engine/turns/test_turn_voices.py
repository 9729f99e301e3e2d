"""Every turn has the mark of its speaker's voice; the seed alone says which voices these are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dia_demo.checkpoint_config import read_model_config
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import run_to_end
from dia_demo.engine.turns.passages import passages
from dia_demo.engine.turns.voices import TurnVoices, marks_in_prompt
from dia_demo.prompt.voice_traits import VoiceTraits
from dia_demo.text.script import encode_script
from tests.helpers.long import long_after
from tests.helpers.models.checkpoints import load
from tests.helpers.models.known import EMBEDDED_FOLDER

pytestmark = pytest.mark.processor

CONFIG = read_model_config(EMBEDDED_FOLDER)
TABLE = CONFIG.voices
START = np.array(TABLE.turn_start)
NAMES = {voice.mark: voice.name for voice in TABLE.voices}
TURNS = "[S1] Is that a horse? [S2] Yes, it is. [S1] I see. [S2] Look at it. [S1]"


@pytest.fixture(scope="module")
def model():
    return load(EMBEDDED_FOLDER)


def make_row(script, *, prompt=None, said="", semitones=None, **params) -> Row:
    text = encode_script(script, said)
    params = replace(CONFIG.defaults, max_tokens=400, **params)
    length = len(encode_script(said)) if said else 0
    voice = None if semitones is None else VoiceTraits(semitones)
    return Row(CONFIG, text, params, prompt, None, length, voice)


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


@pytest.mark.long
@pytest.mark.parametrize("temperature", [0.0, 0.1, 1.0])
def test_every_turn_has_its_speakers_voice(model, temperature):
    rows = [make_row(TURNS, seed=seed, temperature=temperature) for seed in range(6)]
    run_to_end(model, rows)
    for seed, row in enumerate(rows):
        one, two = (voice.name for voice in TABLE.draw(seed))
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
    assert voices_of(row.codes()) == [TABLE.draw(3)[1].name]


@pytest.mark.long
@pytest.mark.parametrize("semitones", [None, 4.0, 13.0])
def test_prompted_speakers_keep_the_prompts_voice_and_others_get_theirs(model, semitones):
    words = "[S1] Put the blue cup on the shelf."
    said = make_row(words, seed=2)
    run_to_end(model, [said])
    prompt = said.codes().astype(np.int64)
    row = make_row(TURNS, prompt=prompt, said=words, semitones=semitones, seed=3)
    run_to_end(model, [row])
    two = TABLE.draw(3)[1] if semitones is None else TABLE.draw_apart_from(3, semitones, 2)
    assert row.voices == (None, two.name)
    one = TABLE.draw(2)[0]  # The prompt is a take of this model, so its mark is known.
    assert voices_of(row.codes()) == [one.name, two.name, one.name, two.name]


@pytest.mark.long
def test_speakers_of_a_prompt_without_marks_get_none(model):
    words = "[S1] Put the blue cup on the shelf."
    said = make_row(words, seed=2)
    run_to_end(model, [said])
    row = make_row(TURNS, prompt=said.codes().astype(np.int64)[3:], said=words, seed=3)
    run_to_end(model, [row])
    assert voices_of(row.codes())[::2] == [None, None]


@pytest.mark.long
def test_the_marks_of_a_prompt_of_both_speakers_are_found(model):
    rows = [make_row(TURNS, seed=seed) for seed in range(3)]
    run_to_end(model, rows)
    for seed, row in enumerate(rows):
        one, two = TABLE.draw(seed)
        text, codes = encode_script(TURNS), row.codes()
        assert marks_in_prompt(codes, text, TABLE) == {1: one.mark, 2: two.mark}
        # Its words say something else than its turns, or two speakers had one voice.
        assert marks_in_prompt(codes, encode_script("[S1] Is that a horse?"), TABLE) == {}
        assert marks_in_prompt(codes[:40], text, TABLE) == {}


@pytest.mark.long
def test_without_a_transcript_nobody_gets_a_mark_and_the_turns_are_followed(model):
    said = make_row("[S1] Put the blue cup on the shelf.", seed=2)
    run_to_end(model, [said])
    row = make_row(TURNS, prompt=said.codes().astype(np.int64))
    run_to_end(model, [row])
    assert row.voices is None
    assert row.turns.begun and len(row.turns.places) >= len(row.codes())


def test_places_follow_the_text(model):
    """From the first letter of every turn to its last, in order."""
    row = make_row(TURNS, seed=0)
    run_to_end(model, [row])
    places = np.array(row.turns.places)
    for passage in row.turns.passages:
        inside = places[(places >= passage.start) & (places < passage.end)]
        assert inside.min() == passage.start and inside.max() >= passage.end - 3
    assert (np.diff(places) >= -3).mean() > 0.97


# Turns that the model does not begin, and sentences that it begins like turns

SENTENCE = "a" * 49 + "."
MARK = len(START) + CONFIG.max_delay  # frames from a turn's first code to its mark


class Reading:
    """A row whose model reads the text at a steady speed; every frame that is not wanted otherwise
    is [1, 1, 1, 1]."""

    def __init__(self, script: str) -> None:
        self.turns = TurnVoices(CONFIG, 0, encode_script(script))
        self.tokens = np.full((1000, 4), 1)
        self.wanted: dict[int, Sequence[int]] = {}
        self.frame = 0

    def read(self, place: int) -> None:
        """One step."""
        sampled = np.array(
            [
                self.wanted.get(self.frame - delay, (1, 1, 1, 1))[channel]
                for channel, delay in enumerate(CONFIG.delay_pattern)
            ]
        )
        logits = np.zeros(CONFIG.decoder.vocab_size, np.float32)
        self.turns.steer(sampled, logits, self.tokens, place)
        self.tokens[self.frame + 1] = sampled
        self.frame += 1

    def want(self, *frames) -> None:
        """The frames that are sampled next."""
        self.wanted |= {self.frame + offset: codes for offset, codes in enumerate(frames)}

    def turn(self, start: int, end: int, begins: bool = True, frames_each: int = 2) -> None:
        """Read text[start:end]; begins: with a turn's first codes and some code for the mark."""
        if begins:
            self.want(*START, (77, 68, 199, 9))
        for place in range(start, end):
            for _ in range(frames_each):
                self.read(place)

    @property
    def marks(self) -> list[str | None]:
        frames = self.frame - CONFIG.max_delay
        delays = np.array(CONFIG.delay_pattern)
        codes = self.tokens[np.arange(frames)[:, None] + 1 + delays, np.arange(4)]
        return voices_of(codes)


def places_of(script: str) -> list[tuple[int, int]]:
    return [(passage.start, passage.end) for passage in passages(encode_script(script), 0)]


def test_a_turn_that_the_model_does_not_begin_is_begun():
    script = f"[S1] {SENTENCE} [S2] {SENTENCE} [S1] {SENTENCE}"
    reading = Reading(script)
    for number, span in enumerate(places_of(script)):
        reading.turn(*span, begins=number != 1)
    one, two = reading.turns.names
    assert reading.marks == [one, two, one]
    starts = [start for start, _ in reading.turns.begun]
    assert starts[1] - 2 * 50 <= 3  # Within three frames of its first word.


def test_a_sentence_that_begins_like_a_turn_has_the_same_voice():
    script = f"[S1] {SENTENCE} {SENTENCE} [S2] {SENTENCE} [S1] {SENTENCE}"
    reading = Reading(script)
    first, *rest = places_of(script)
    reading.turn(first[0], first[0] + 51)
    reading.turn(first[0] + 51, first[1])
    for span in rest:
        reading.turn(*span)
    one, two = reading.turns.names
    assert reading.marks == [one, one, two, one]
    assert [passage for _, passage in reading.turns.begun] == [0, 0, 1, 2]


@pytest.mark.parametrize("wrong", range(5))
def test_a_turn_half_of_whose_first_codes_differ_has_its_mark(wrong):
    script = f"[S1] {SENTENCE} [S2] {SENTENCE}"
    reading = Reading(script)
    first, second = places_of(script)
    reading.turn(*first)
    codes = START.copy()
    codes.ravel()[1 : 1 + wrong] = 3
    other = next(voice for voice in TABLE.voices if voice not in reading.turns.voices.values())
    reading.want(*codes, (77, 68, 199, other.mark))
    reading.turn(*second, begins=False)
    found = reading.tokens[102 : 102 + 3 * MARK, 3]
    assert reading.turns.voices[2].mark in found and other.mark not in found


def test_a_turn_that_the_model_skips_to_is_begun_a_little_later():
    script = f"[S1] {SENTENCE} [S2] {SENTENCE}"
    reading = Reading(script)
    (start, _), second = places_of(script)
    reading.turn(start, start + 10)
    reading.turn(*second, begins=False)
    assert reading.marks == list(reading.turns.names)


def test_a_glance_at_the_next_turn_where_a_sentence_begins_changes_no_voice():
    script = f"[S1] Wait... {SENTENCE} [S2] {SENTENCE}"
    reading = Reading(script)
    (start, end), second = places_of(script)
    reading.turn(start, start + 7)
    reading.want(*START, (77, 68, 199, 9))
    for _ in range(8):
        reading.read(second[0])
    reading.turn(start + 8, end, begins=False)
    reading.turn(*second)
    one, two = reading.turns.names
    assert reading.marks == [one, one, two]


def test_words_alike_in_another_turn_begin_none():
    """The place may jump to the next turn's words before the current ones are spoken."""
    script = f"[S1] {SENTENCE} [S2] {SENTENCE}"
    reading = Reading(script)
    (start, end), second = places_of(script)
    reading.turn(start, start + 10)
    for _ in range(6):
        reading.read(second[0] + 10)
    reading.turn(start + 13, end, begins=False)
    reading.turn(*second)
    assert reading.marks == list(reading.turns.names)


def test_short_turns_follow_each_other():
    script = "[S1] No. [S2] Yes. [S1] No. [S2] Stop."
    reading = Reading(script)
    for span in places_of(script):
        reading.turn(*span, frames_each=6)
    one, two = reading.turns.names
    assert reading.marks == [one, two, one, two]


# Turns that the script does not have, or that are missing


@pytest.mark.parametrize(
    ("read", "surplus"),
    [([0, 1, 2], 0), ([0, 1], -1), ([0], -2), ([], 0), ([0, 1, 2, 2], 1), ([0, 1, 2, 2, 2], 2)],
)
def test_turns_beyond_the_script_and_missing_ones_are_counted(read, surplus):
    script = f"[S1] {SENTENCE} [S2] {SENTENCE} [S1] {SENTENCE}"
    reading, spans = Reading(script), places_of(script)
    for number in read:
        reading.turn(*spans[number])
    assert reading.turns.surplus(reading.frame) == surplus


def test_a_sentence_that_begins_like_a_turn_is_none():
    script = f"[S1] {SENTENCE} {SENTENCE}"
    reading = Reading(script)
    ((start, end),) = places_of(script)
    reading.turn(start, start + 51)
    reading.turn(start + 51, end)
    assert reading.turns.surplus(reading.frame) == 0


@pytest.mark.parametrize("prompted", long_after(1, [False, True]))
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
    assert {type(row.surplus_turns) for row in rows} == {int}, "JSON has no numpy scalars"
