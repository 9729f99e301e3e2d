"""Changing a trained voice: its own takes, what corrects them, and what it keeps."""

from itertools import islice

import numpy as np
import pytest
import torch
from torch.nn import functional

from training.voice.model import network as nano
from training.voice.model.adapt import (
    FREE,
    PARTS,
    Lessons,
    adapt_loss,
    lend_marks,
    lesson_loss,
    look_loss,
    to_train,
)
from training.voice.model.batches import collate
from training.voice.model.losses import voice_classes, voice_loss
from training.voice.model.own_batches import (
    CORRECTION_WEIGHT,
    FOLDER,
    OwnTake,
    collate_own,
    load_own_takes,
    own_batches,
    save_own_takes,
)
from training.voice.model.own_takes import first_mistake, stretches, write_scripts
from training.voice.model.scripts import IGNORE
from training.voice.model.turns import Turn
from training.voice.teacher.voices import VOICES, free_name, nearest_voice, traits_of

SMALL = nano.Shape(encoder_layers=1, decoder_layers=1)
# As many layers as have heads.
NARROW = nano.Shape(1, 24, 2, 32, nano.ONSET_HEAD_AFTER, 32, 4, 2, 40, 4)
TEXT = b"\x01 One two three. \x02 Four five six. \x01 Seven eight. \x02"
PLACES = [k for k, byte in enumerate(TEXT) if byte in (1, 2)]


def read(*turns, frames=20, to=1.0):
    """The letters that frames read which say some turns of TEXT, each to a share of its length."""
    ends = [*PLACES[1:], len(TEXT)]
    return np.concatenate(
        [np.linspace(PLACES[n], PLACES[n] + to * (ends[n] - 1 - PLACES[n]), frames) for n in turns]
    ).astype(int)


def test_a_glance_belongs_to_what_is_before_it():
    values = np.array([1] * 9 + [2] * 3 + [1] * 8 + [3] * 7)
    assert stretches(values) == [(1, 0, 20), (3, 20, 27)]


@pytest.mark.parametrize(
    ("letters", "mistake"),
    [
        (read(0, 1, 2), None),
        (np.concatenate([read(0, 1, 2), read(3, frames=8)]), None),
        (read(0, 1, 1, 2), None),  # no edge between them: one turn to the eye
        (read(0, 2), (1, 20)),
        (read(0, 1, 0, 2), (2, 40)),
        (read(0, 1), (2, 40)),
        (read(0, 1, 2, 0), (3, 60)),
        (np.concatenate([read(0), read(1, to=0.3), read(2)]), (1, 20)),
    ],
)
def test_the_first_turn_that_is_not_the_next_is_a_mistake(letters, mistake):
    assert first_mistake(TEXT, letters) == mistake


def turn(voice, text=b"We saw the blue house today.", frames=60):
    codes = np.full((frames, nano.CHANNELS), 5)
    return Turn(text, voice, codes, np.linspace(0, 27, frames), np.zeros((frames, 2), int), [1, 2])


def test_scripts_for_own_takes_alternate_and_use_texts_of_the_corpus():
    turns = [turn("rms", b"Sentence number %d is here." % k) for k in range(20)]
    turns.append(turn("rms", b"Much too long for a turn." * 9))
    for script in write_scripts(turns, 3, 12):
        tags = [word for word in script.split() if word in ("[S1]", "[S2]")]
        assert 6 <= len(tags) <= 9 and all(a != b for a, b in zip(tags, tags[1:], strict=False))
        assert script.count("Sentence number") >= 6 and "too long" not in script
    assert write_scripts(turns, 3, 12) == write_scripts(turns, 3, 12) != write_scripts(turns, 4, 12)


def test_only_what_corrects_a_take_is_learnt():
    codes, letters = np.full((30, nano.CHANNELS), 7), np.full(30, np.nan)
    taught = np.where(np.arange(30) < 20, np.nan, 18.0)
    faultless = OwnTake(TEXT, codes, letters)
    turn_corrected = OwnTake(TEXT, codes, taught, corrected=20, ends=False)
    end_corrected = OwnTake(TEXT, codes, letters, corrected=30)
    batch, learnt = collate_own([faultless, turn_corrected, end_corrected])
    assert not learnt[0].any() and batch.letters[0, :30].isnan().all()
    for c, delay in enumerate(nano.DELAYS):
        assert learnt[1, :, c].nonzero()[0] == 20 + delay
        assert learnt[2, :, c].nonzero()[0] == 30 + delay
        weights = batch.weights[1, :, c]
        assert (weights[20 + delay : 30 + delay] == CORRECTION_WEIGHT).all()
        assert not weights[30 + delay :].any()  # the script goes on
        assert batch.targets[2, 30 + delay, c] == nano.EOS
        assert batch.weights[2, 30 + delay, c] == CORRECTION_WEIGHT
    assert (batch.letters[1, 20:30] == 18).all() and batch.letters[1, 30:].isnan().all()
    assert (batch.letters[2, 30:] == len(TEXT) - 1).all()


def test_own_takes_are_kept_in_little_space(tmp_path):
    (tmp_path / FOLDER).mkdir()
    codes, letters = np.arange(120).reshape(-1, nano.CHANNELS), np.linspace(0, 60, 30)
    letters[:9] = np.nan
    takes = [OwnTake(TEXT, codes, letters), OwnTake(TEXT, codes, letters, corrected=20, ends=False)]
    save_own_takes(tmp_path / FOLDER / "000.pt", takes)
    for before, after in zip(takes, load_own_takes(tmp_path), strict=True):
        assert (after.text, after.corrected, after.ends) == (
            before.text,
            before.corrected,
            before.ends,
        )
        assert np.array_equal(after.codes, codes)
        assert np.allclose(after.letters, letters, atol=0.05, equal_nan=True)


@pytest.mark.parametrize("corrected", [(None, 8), (None, None), (8, 8)])
def test_batches_of_own_takes_use_all_of_them_within_their_size(corrected):
    codes, letters = np.full((12, nano.CHANNELS), 7), np.full(12, np.nan)
    takes = [OwnTake(TEXT, codes, letters, corrected=frame) for frame in corrected]
    batches = list(islice(own_batches(takes, 64, seed=1), 10))
    assert {batch.inputs[..., 0].numel() for batch, _ in batches} == {4 * (12 + nano.CHANNELS)}
    found = {bool(row.any()) for _, learnt in batches for row in learnt}
    assert found == {frame is not None for frame in corrected}


def test_codes_are_learnt_in_their_place_and_the_rest_stays_as_before():
    take = OwnTake(TEXT, np.full((12, nano.CHANNELS), 7), np.full(12, np.nan), corrected=8)
    batch, learnt = collate_own([take])
    taught = torch.randn(*batch.targets.shape, nano.VOCABULARY)
    loss, (kept, missed) = lesson_loss(taught, taught, batch, learnt)
    assert kept == pytest.approx(0, abs=1e-5) and missed > 1 and loss > 0
    certain = torch.full_like(taught, -20.0).scatter(3, batch.targets[..., None], 20.0)
    mixed = torch.where(learnt[..., None], certain, taught)
    assert lesson_loss(mixed, taught, batch, learnt)[0] == pytest.approx(0, abs=1e-5)
    _, (kept, missed) = lesson_loss(certain, taught, batch, learnt)
    assert kept > 1 and missed == pytest.approx(0, abs=1e-5)


def test_a_step_learns_from_lessons_and_own_takes():
    marks = {name: 5 + k for k, name in enumerate(list(VOICES)[:6])}
    turns = [turn(name, b"Sentence %d says something." % k) for name in marks for k in range(9)]
    lessons, model = Lessons(turns, marks, 1, ["rms"]), nano.Nano(NARROW)
    codes, letters = np.full((30, nano.CHANNELS), 7), np.full(30, np.nan)
    own = collate_own([OwnTake(TEXT, codes, letters, corrected=20, ends=False)])
    scripts = collate([lessons.item() for _ in range(2)])
    new, mark_codes = torch.tensor([lessons.places["rms"]]), torch.tensor(list(marks.values()))
    voices = voice_classes(lessons.places, marks)
    loss, parts = adapt_loss(
        model, model, scripts, collate(lessons.openings(2)), own, new, mark_codes, voices, 0,
        torch.Generator().manual_seed(0),
    )  # fmt: skip
    told = dict(zip(PARTS, parts, strict=True))
    # The model before is the model itself, so whatever it is to keep costs nothing yet.
    assert told["kept"] == pytest.approx(0, abs=1e-4) == told["own-kept"]
    assert all(told[name] > 0.1 for name in ("learnt", "draw", "voices", "own-learnt"))
    loss.backward()
    learns = [name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()]
    assert "voice_head.weight" in learns and "decoder.0.mlp.down_proj.weight" in learns


def test_voices_without_a_name_can_be_learnt_too():
    marks = {"rms": 5, "awb": 6}
    voices = [*marks, free_name("rms", 150.0, 1.05)]
    turns = [turn(name, b"Sentence %d says something." % k) for name in voices for k in range(9)]
    lessons = Lessons(turns, marks, 1, [FREE])
    items = [lessons.item() for _ in range(20)]
    speech = np.concatenate([item.voices[item.voices != IGNORE] for item in items])
    assert set(speech) == set(lessons.places.values()) and lessons.free == voices[2:]
    model, openings = nano.Nano(NARROW), collate(lessons.openings(2))
    _, parts = adapt_loss(
        model, model, collate(items[:4]), openings, None, torch.tensor([lessons.places[voices[2]]]),
        torch.tensor(list(marks.values())), voice_classes(lessons.places, marks), 0,
        torch.Generator().manual_seed(0),
    )  # fmt: skip
    told = dict(zip(PARTS, parts, strict=False))
    assert told["kept"] == pytest.approx(0, abs=1e-4) and told["learnt"] > 0.1
    assert 0.1 < told["voices"] < 10


def test_the_voice_head_is_told_what_a_voice_without_a_name_is_like():
    free = free_name("awb", 150.0, 1.05)
    marks, places = {"rms": 5, "rms deep": 6}, {"rms": 0, "rms deep": 1, free: 2}
    classes = voice_classes(places, marks)
    assert classes[:, 0].tolist() == [0, 1, IGNORE]
    assert classes[:, 1:].tolist() == [list(traits_of(name)) for name in places]
    for place in (1, 2):
        right = [
            20.0 * functional.one_hot(value.clamp(min=0), size)
            for value, size in zip(classes[place], nano.VOICE_CLASSES, strict=True)
        ]
        spoken = torch.tensor([[IGNORE, place]])
        told = torch.cat(right).expand(1, 2, -1)
        assert voice_loss(told, spoken, classes) == pytest.approx(0, abs=1e-5)
        for part in (1, 2):
            others = [-each if k == part else each for k, each in enumerate(right)]
            assert voice_loss(torch.cat(others).expand(1, 2, -1), spoken, classes) > 1
    assert voice_loss(told, torch.full((1, 2), IGNORE), classes) == 0


def test_attention_is_drawn_to_the_letter_where_one_is_known():
    letters = torch.tensor([[3.0, torch.nan]])
    near = torch.zeros(1, 2, 2, 30)
    near[..., 3] = 1.0
    far = near.flip(-1)
    assert look_loss([near], letters) == pytest.approx(0, abs=1e-6)
    wrong_where_unknown = torch.stack([near[:, :, 0], far[:, :, 1]], 2)
    assert look_loss([wrong_where_unknown], letters) == pytest.approx(0, abs=1e-6)
    assert look_loss([far], letters) > 1


def test_reading_stays_fixed_unless_own_takes_are_learnt():
    model = nano.Nano(SMALL)
    spoken = [name for name, _ in to_train(model, reading=False)]
    assert "decoder.0.mlp.down_proj.weight" in spoken and "logits_dense.weight" in spoken
    assert not any("encoder" in n or "cross" in n or "ca_norm" in n for n in spoken)
    everything = [name for name, _ in to_train(model, reading=True)]
    assert set(spoken) < set(everything) and "encoder.0.mlp.down_proj.weight" in everything
    heads = {name.split(".")[0] for name in everything if "_head" in name}
    assert heads == {"voice_head"}


def test_a_new_voice_begins_with_the_mark_of_the_nearest():
    assert nearest_voice("awb 134", {"awb mid": 1, "awb deep": 2, "rms 138": 3}) == "awb mid"
    model = nano.Nano(SMALL)
    before = model.logits_dense.weight.clone()
    lend_marks(model, {"rms": 4, "rms deep": 9}, {"rms": 4})
    last = (nano.CHANNELS - 1) * nano.VOCABULARY
    for table in (model.code_embedding.weight, model.logits_dense.weight):
        torch.testing.assert_close(table[last + 9], table[last + 4])
    changed = (model.logits_dense.weight != before).any(1).nonzero().flatten()
    assert changed.tolist() == [last + 9]


def test_new_voices_speak_in_most_lessons():
    marks = {name: k for k, name in enumerate(list(VOICES)[:6])}
    turns = [turn(name, b"Sentence %d says something." % k) for name in marks for k in range(30)]
    new = list(marks)[:1]
    lessons = Lessons(turns, marks, 1, new)
    casts = [lessons._cast() for _ in range(300)]
    assert all(a != b for a, b in casts)
    assert sum(new[0] in cast for cast in casts) > 150
    others = Lessons(turns, marks, 1, [])
    assert 0 < sum(new[0] in others._cast() for _ in range(300)) < 150
