"""Training items of the small Dia: turns as scripts, voice marks, batches."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from training.voice.codec.marks import MARK_FRAME
from training.voice.model import network as nano
from training.voice.model.batches import END_FRAMES, PREDICTED, collate, delay_codes
from training.voice.model.scripts import (
    ANY,
    DRIFT_AFTER,
    IGNORE,
    SLIP_AFTER,
    Scripts,
    most_similar,
)
from training.voice.model.scripts import Item as TrainingItem
from training.voice.model.turns import FILE, Turn, load_turns, save_turns


def test_training_targets_follow_the_delay_pattern():
    codes = np.arange(3 * nano.CHANNELS).reshape(3, nano.CHANNELS)
    target = delay_codes(codes)
    for c, delay in enumerate(nano.DELAYS):
        column = target[:, c].tolist()
        said = [*codes[:, c].tolist(), nano.EOS]
        rest = len(target) - delay - len(said)
        assert column == [nano.BOS] * delay + said + [nano.PAD] * rest


def test_the_end_counts_for_more_and_reads_the_end_of_the_text():
    """In the first channel, which ends a take."""
    item = Scripts(one_word_turns(2), {"low": 17, "middle": 23}, seed=8).item()
    batch = collate([item])
    end = batch.targets[0, :, 0].tolist().index(nano.EOS)
    assert end == len(item.codes)
    weights = batch.weights[0, :, 0]
    last = slice(end - END_FRAMES, end + 1)
    others = torch.cat([weights[: last.start], weights[last.stop :]])
    assert weights[last].min() > others.max()
    assert (batch.letters[0, end:] == len(item.text) - 1).all()


NAMES, LENGTH = ["low", "middle", "high"], 32


TURNS_OF_EACH = 8
FREE = "rms 171.0 Hz x 1.080"


def one_word_turns(count: int, names: list[str] = NAMES) -> list[Turn]:
    """Turns of `count` voices; a turn's codes are its voice's place in `names`."""
    return [
        Turn(
            b"Yes.", name, np.full((LENGTH, nano.CHANNELS), k), np.zeros(LENGTH),
            np.zeros((LENGTH, 2)), [3],
        )
        for k, name in enumerate(names[:count])
        for _ in range(TURNS_OF_EACH)
    ]  # fmt: skip


def speakers_of(item: TrainingItem) -> list[tuple[int, bool]]:
    """Of every turn its tag, and whether the turn has one of its own."""
    parts = re.findall(rb"([\x01\x02]?)\s*yes", bytes(item.text).lower())
    tags, found = [], 0
    for own in parts:
        found = own[0] if own else found
        tags.append((found, bool(own)))
    return tags


def test_a_speaker_keeps_one_voice_through_a_script():
    """The voice of a turn shows in its codes, its speaker in the tag before it."""
    scripts, casts, tagged = Scripts(one_word_turns(3), dict.fromkeys(NAMES, 9), seed=3), set(), []
    for _ in range(60):
        item = scripts.item()
        tags = [tag for tag, _ in speakers_of(item)]
        voices = item.codes[::LENGTH, 0].tolist()
        cast = dict(zip(tags, voices, strict=True))
        assert [cast[tag] for tag in tags] == voices
        casts |= {pair for pair in cast.items() if pair[0]}
        tagged += [own for _, own in speakers_of(item)[1:]]
    assert casts == {(tag, voice) for tag in (1, 2) for voice in range(3)}, "any voice, any speaker"
    assert 0 < np.mean(tagged) < 1, "some turns go on without a tag"


def test_a_mark_says_which_voice_speaks():
    """In every turn that has a tag, but those of speakers with a voice prompt; what is in its
    place in the first turn of these is not learnt."""
    marks = {"low": 17, "middle": 23}
    scripts, kinds = Scripts(one_word_turns(2), marks, seed=4), set()
    for _ in range(80):
        item = scripts.item()
        batch = collate([item])
        speakers, voices = speakers_of(item), item.codes[::LENGTH, 0].tolist()
        last = batch.targets[0, :, -1]
        marked, drawn, skipped, met = [], [], [], {}
        for k, ((tag, own), voice) in enumerate(zip(speakers, voices, strict=True)):
            frame = k * LENGTH + MARK_FRAME
            code = item.codes[frame, -1]
            is_marked = code == marks[NAMES[voice]]
            assert is_marked or code == voice, "its own mark or none"
            assert own or not is_marked or k == 0
            if is_marked:
                marked.append(frame)
                drawn += [] if tag in met else [(frame, met.get(3 - tag, ANY))]
            elif tag not in met:
                skipped.append(frame)
            kinds.add((k > 0 and tag in met, own, bool(is_marked)))
            met[tag] = marks[NAMES[voice]]
        assert (item.marks, item.drawn, item.skipped) == (marked, drawn, skipped)
        delayed_by = nano.DELAYS[-1]
        assert np.flatnonzero(batch.marks[0]).tolist() == [f + delayed_by for f in marked]
        found = {f: code for f, code in enumerate(batch.drawn[0].tolist()) if code != IGNORE}
        assert found == {f + delayed_by: code for f, code in drawn}
        assert np.flatnonzero(last == IGNORE).tolist() == [f + delayed_by for f in skipped]
        for frame in skipped:
            read = batch.inputs[0, frame + delayed_by + 1, -1]
            assert read < nano.CODES, "it is read all the same"
    assert {(True, True, True), (True, True, False), (True, False, False)} <= kinds


def test_a_turns_voice_is_known_from_a_mark_or_an_earlier_turn():
    """From the first frame where the speaker has spoken, from the mark on where not."""
    scripts, seen = Scripts(one_word_turns(3), {n: 9 for n in NAMES}, seed=5), set()
    for _ in range(60):
        item = scripts.item()
        batch, met = collate([item]), set()
        for k, (tag, _) in enumerate(speakers_of(item)):
            start, voice = k * LENGTH, sorted(NAMES).index(NAMES[item.codes[k * LENGTH, 0]])
            first = batch.onset_voices[0, start].item()
            assert first == (voice if tag in met else IGNORE)
            is_marked = start + MARK_FRAME in item.marks
            after_mark = batch.onset_voices[0, start + MARK_FRAME + nano.DELAYS[-1] + 1].item()
            assert after_mark == (voice if tag in met or is_marked else IGNORE)
            later = batch.later_voices[0, start + PREDICTED : start + LENGTH]
            assert (later == (voice if tag in met or is_marked else IGNORE)).all()
            assert (batch.later_voices[0, start : start + PREDICTED] == IGNORE).all()
            assert batch.frame_voices[0, start + LENGTH].item() == voice
            mark = batch.weights[0, start + MARK_FRAME + nano.DELAYS[-1], -1]
            assert (mark > 1) == (tag in met or is_marked), "that there is none counts as well"
            seen.add((tag in met, is_marked))
            met.add(tag)
    assert len(seen) == 4


def test_turns_of_a_dropped_voice_are_not_trained_on():
    scripts = Scripts(one_word_turns(3), {"low": 9, "high": 5}, seed=2)
    spoken = {voice for _ in range(40) for voice in scripts.item().codes[::LENGTH, 0].tolist()}
    assert spoken == {0, 2}


def test_a_voice_without_a_name_speaks_as_after_a_prompt():
    """It has no mark, and none is expected of its later turns; the other speaker may have one."""
    turns = one_word_turns(3, ["low", "middle", FREE])
    scripts, cases = Scripts(turns, {"low": 17, "middle": 23}, seed=7), set()
    for _ in range(80):
        item = scripts.item()
        voices, batch = item.codes[::LENGTH, 0].tolist(), collate([item])
        for k, voice in enumerate(voices):
            if voice != 2:
                continue
            place = k * LENGTH + MARK_FRAME
            is_first = voice not in voices[:k]
            assert item.codes[place, -1] == voice and place not in item.marks
            assert (place in item.skipped) == is_first
            weight = batch.weights[0, place + nano.DELAYS[-1], -1]
            assert (weight > 1) == (not is_first), "that there is no mark counts as well"
            onset = batch.onset_voices[0, k * LENGTH : k * LENGTH + 9]
            assert (onset == (IGNORE if is_first else scripts.places[FREE])).all()
            cases.add((is_first, bool(item.marks)))
    assert len(cases) == 4


def test_no_turn_is_said_twice_in_a_script():
    turns = [replace(turn, text=b"%d." % k) for k, turn in enumerate(one_word_turns(2))]
    scripts, longest = Scripts(turns, {"low": 17, "middle": 23}, seed=8), 0
    for _ in range(60):
        said = re.findall(rb"\d+", bytes(scripts.item().text))
        assert len(set(said)) == len(said)
        longest = max(longest, len(said))
    assert longest > 4


def test_openings_end_with_a_mark_that_may_be_any_voices():
    scripts = Scripts(one_word_turns(2), {"low": 17, "middle": 23}, seed=6)
    batch = collate(scripts.openings(9))
    place = MARK_FRAME + nano.DELAYS[-1]
    assert batch.targets.shape[:2] == (9, place + 2)
    assert (batch.drawn[:, place] == ANY).all() and (batch.drawn != IGNORE).sum() == 9
    assert set(batch.targets[:, place, -1].tolist()) == {17, 23}


DRIFTED = 200


def long_turn(turn: Turn) -> Turn:
    """Four times as long, with codes to drift to."""
    codes, phones = np.repeat(turn.codes, 4, 0), np.repeat(turn.phones, 4, 0)
    letters, drifted = np.zeros(len(codes)), np.full_like(codes, DRIFTED)
    return replace(turn, codes=codes, phones=phones, letters=letters, drifted=drifted)


def test_what_the_model_reads_drifts_and_what_it_says_does_not():
    """A turn has its own voice first, so that there is one to keep."""
    turns = [long_turn(turn) for turn in one_word_turns(3)]
    marks = dict.fromkeys(NAMES, 9)
    scripts, drifted, longest = Scripts(turns, marks, seed=9, slip=0), 0, 0
    for _ in range(60):
        item = scripts.item()
        known = {start for start, *_ in item.turns}
        assert not (item.codes == DRIFTED).any()
        strange = (item.history == DRIFTED).all(1)
        assert (item.history[~strange] == item.codes[~strange]).all()
        for start in range(0, len(item.codes), 4 * LENGTH):
            part = strange[start : start + 4 * LENGTH]
            assert not part[: DRIFT_AFTER if start in known else None].any()
            drifted, longest = drifted + part.any(), max(longest, part.sum())
        batch = collate([item])
        assert (batch.inputs == DRIFTED).sum() == strange.sum() * nano.CHANNELS
        assert not (batch.targets == DRIFTED).any()
    assert drifted > 30 and longest > 40
    scripts = Scripts(turns, marks, seed=9, drift=0, slip=0)
    items = [scripts.item() for _ in range(20)]
    assert all((item.history == item.codes).all() for item in items)


def test_what_the_model_reads_slips_to_sound_from_elsewhere_in_the_script():
    """Of the same speaker, never a voice mark, and the targets are as without it."""
    turns = [
        replace(turn, codes=turn.codes + np.arange(LENGTH)[:, None] * len(NAMES))
        for turn in one_word_turns(3)
    ]
    scripts, slips = Scripts(turns, dict.fromkeys(NAMES, 255), seed=9, slip=1), 0
    for _ in range(60):
        item = scripts.item()
        slipped = (item.history != item.codes).any(1)
        for start in range(0, len(item.codes), LENGTH):
            codes, part = item.codes[start : start + LENGTH], slipped[start : start + LENGTH]
            read = item.history[start : start + LENGTH][part]
            assert not part[:SLIP_AFTER].any()
            assert (read % len(NAMES) == codes[-1] % len(NAMES)).all(), "in its own voice"
            assert (np.diff(read, axis=0) == len(NAMES)).all(), "a stretch of speech"
            slips += part.any()
    assert slips > 30


def test_turns_are_kept_for_a_machine_without_the_corpus(tmp_path):
    short = one_word_turns(2)[TURNS_OF_EACH - 1 : TURNS_OF_EACH + 1]
    letters = np.linspace(0, 60, 4 * LENGTH)
    turns = [short[0], replace(long_turn(short[1]), letters=letters), replace(short[0], text=b"x")]
    with pytest.raises(FileNotFoundError, match="training.voice.model.turns first"):
        load_turns(tmp_path)
    save_turns(tmp_path / FILE, turns)
    for before, after in zip(turns, load_turns(tmp_path), strict=True):
        assert (after.text, after.voice, after.spelling) == (
            before.text,
            before.voice,
            before.spelling,
        )
        assert np.array_equal(after.codes, before.codes)
        assert np.array_equal(after.phones, before.phones)
        assert np.abs(after.letters - before.letters).max() < 0.05
        if before.drifted is None:
            assert after.drifted is None
        else:
            assert np.array_equal(after.drifted, before.drifted)


def test_the_most_similar_turn_shares_the_most_words():
    texts = [b"The dog ran.", b"He told his dog.", b"She told me.", b"No."]
    turns = [replace(turn, text=text) for turn, text in zip(one_word_turns(1), texts, strict=False)]
    assert most_similar(turns, 2, {b"the", b"dog."}).text == b"She told me.", "of two only"
    assert most_similar(turns, 9, {b"he", b"dog."}).text == b"He told his dog."
    assert [turn.text for turn in turns] == [b"The dog ran.", b"No."]


def test_tags_are_counted_in_the_text_and_in_the_frames():
    """A turn that only continues the one before has no tag of its own, and counts as that one."""
    scripts = Scripts(one_word_turns(3), dict.fromkeys(NAMES, 9), seed=15)
    lengths = set()
    for _ in range(40):
        item = scripts.item()
        batch = collate([item])
        tags = np.cumsum([own for _, own in speakers_of(item)])
        assert batch.frame_tags[0, : len(item.codes)].tolist() == np.repeat(tags, LENGTH).tolist()
        end = tags[-1] + 1
        assert (batch.frame_tags[0, len(item.codes) :] == end).all(), "with and without a bare tag"
        assert batch.text_tags[0, -1] == end
        spoken = item.letters[LENGTH // 2 :: LENGTH].astype(int)
        assert batch.text_tags[0, spoken].tolist() == tags.tolist()
        lengths.add(len(tags))
    assert max(lengths) > 4


def test_a_batch_holds_items_of_unequal_length():
    items = [
        TrainingItem(
            [1, 32, 65],
            np.zeros((n, nano.CHANNELS), np.int64),
            np.zeros((n, nano.CHANNELS), np.int64),
            np.zeros(n),
            np.zeros((n, 2), np.int64),
            [3] * n,
            [],
            [],
            [],
            [],
            np.zeros(n, np.int64),
            np.ones(n, np.int64),
        )
        for n in (2, 5)
    ]
    batch = collate(items)
    assert batch.targets.shape[:2] == (2, 5 + 1 + max(nano.DELAYS))
    assert batch.spelling_count.tolist() == [2, 5]
