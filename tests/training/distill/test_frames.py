"""training/distill: a student learns to give several frames a step."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from dia_demo.engine.row import Row
from dia_demo.errors import InputError
from dia_demo.services.measurements.quality import Forced, forced_logits
from tests.helpers.models.checkpoints import SMALL, load, say
from tests.helpers.models.students import step_inputs
from tests.training.distill.settings import DEFAULTS, PLAN, SCALES, given_to
from training.distill import __main__ as command
from training.distill import guidance, network, takes
from training.distill.student import several_frames


def test_a_step_of_two_frames_starts_with_what_the_student_knew(student, sampled):
    """Its newest frame is read as before; the head and the table of the further frame are there."""
    grown = several_frames(student, 2)
    assert grown.config.frames_per_step == 2 and grown.config.guidance_scales == SCALES
    table, before = grown.decoder.embeddings.weight, student.decoder.embeddings.weight
    assert torch.equal(table[len(before) :], before)
    assert torch.equal(grown.decoder.next_frames[0].embeddings.weight, before)
    again = several_frames(grown.requires_grad_(False), 4)
    assert torch.equal(again.decoder.embeddings.weight[-2 * len(before) :], table)
    first = [model.decoder.next_frames[0].mlp.down_proj.weight for model in (grown, again)]
    assert torch.equal(*first) and len(again.decoder.next_frames) == 3


@pytest.mark.parametrize(
    ("frames", "message"), [(1, "frames must be more"), (5, "a whole number from 1 to 4, not 5")]
)
def test_frames_that_are_not_more_are_refused(student, frames, message):
    with pytest.raises(InputError, match=message):
        several_frames(student, frames)


@pytest.mark.parametrize("frames", [2, 3])
def test_every_position_of_a_padded_batch_has_the_logits_of_the_engine(student, sampled, frames):
    grown = several_frames(student, frames).requires_grad_(False)
    batch, scales = takes.collate(sampled[:3], SMALL, "cpu"), (0.5, 1.0, 2.0)
    texts = network.read_texts(grown, batch.text, batch.text_mask)
    bias = network.hidden_where(~batch.text_mask)
    vectors = network.scale_vectors(grown, scales)
    logits = network.decode(grown, batch.codes, texts, bias, vectors)
    assert logits.shape[:2] == batch.codes.shape[:2]
    for row, take in enumerate(sampled[:3]):
        params = replace(DEFAULTS, cfg_scale=scales[row])
        forced = Forced(
            Row(grown.config, take.text, params),
            step_inputs(take.codes, grown.config),
            params.cfg_scale,
        )
        expected = forced_logits(grown, forced)[:, 0]
        torch.testing.assert_close(logits[row, : len(expected)], expected, rtol=1e-4, atol=1e-4)


def test_a_student_with_two_frames_learns_from_the_guided_teacher(teacher, student, sampled):
    grown = several_frames(student, 2)
    lesson = guidance.lesson_of(teacher, grown, "cpu")
    before = guidance.measure(lesson, sampled, 400)
    guidance.Training(lesson, PLAN).run(sampled)
    still = [n for n, p in grown.named_parameters() if p.grad is None or not p.grad.any()]
    assert not still
    after = guidance.measure(lesson, sampled, 400)
    assert all(after[w][1.0] < 0.8 * before[w][1.0] for w in SCALES), (before, after)


def test_the_command_makes_students_with_more_frames_in_turn(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(takes, "SHARD", 4)
    out, given = given_to(folder, tmp_path)
    sizes = "--takes 4 --held-out 4 --steps 2 --positions 200 --keep-states"
    with pytest.raises(SystemExit, match="student is missing: the phase before makes it"):
        command.main(f"frames {given} {sizes}".split())
    command.main(f"guidance {given} {sizes} --scales 0 1 2".split())
    command.main(f"frames {given} {sizes}".split())
    command.main(f"frames {given} {sizes} --student 2 --frames 4".split())
    for frames in (2, 4):
        read = load(out / f"student-{frames}-frames")
        assert read.config.frames_per_step == frames and read.config.guidance_scales == SCALES
        assert len(say(read, max_tokens=20).codes()) > 5
        assert list(json.loads((out / f"after-{frames}-frames.json").read_text()))


def test_a_student_learns_on_from_its_own_takes(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(takes, "SHARD", 4)
    out, given = given_to(folder, tmp_path)
    sizes = "--takes 4 --held-out 4 --steps 2 --positions 200"
    with pytest.raises(SystemExit, match="student-2-frames is missing"):
        command.main(f"own {given} {sizes}".split())
    command.main(f"guidance {given} {sizes} --scales 0 1 2".split())
    command.main(f"frames {given} {sizes}".split())
    learnt, run = [], guidance.Training.run
    monkeypatch.setattr(
        guidance.Training, "run", lambda self, given: (learnt.append(given), run(self, given))
    )
    command.main(f"own {given} {sizes} --own 8".split())
    own = takes.load_takes(out / "own-2-frames", 8)
    assert [len(each) for each in learnt] == [12]
    assert [take.text for take in learnt[0][4:]] == [take.text for take in own]
    before, after = (load(out / name) for name in ("student-2-frames", "student-2-frames-own"))
    assert after.config == before.config
    table, learnt_table = (each.decoder.embeddings.weight for each in (before, after))
    assert not torch.equal(table, learnt_table)
    sampled = takes.sample_shard(before, [own[0].text], SCALES, seed=0)
    assert np.array_equal(sampled[0].codes, own[0].codes), "its own takes, not the teacher's"
