"""tools/distill: a student learns the guided distribution from the teacher's own takes."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch

from dia_demo.config import ModelConfig
from dia_demo.engine.row import Row
from dia_demo.engine.sampling import Sampler
from dia_demo.errors import InputError
from dia_demo.model.linear import decoder_weights
from dia_demo.services.bench.quality import Forced, forced_logits
from tests.helpers.models.checkpoints import SMALL, load, random_codes, say, write_small
from tools.distill import __main__ as command
from tools.distill import guidance, network, rehearsal, speed, takes
from tools.distill.rule import counted, divergence, guided_distribution
from tools.distill.student import several_frames, student_config, student_of, write_student

SCALES = (0.0, 1.0, 2.0)
DEFAULTS = replace(SMALL.defaults, cfg_scale=1.0, max_tokens=40, top_k=12)
PLAN = guidance.Plan(steps=40, lr=2e-3, positions=400)
TEXTS = [b"\x01 Hello there.", b"\x02 Rain, again, and no boat in sight.", b"\x01 Yes."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = write_small(tmp_path_factory.mktemp("teacher"))
    settings = {"guidance_scale": 1.0, "max_length": 40, "top_k": 12, "temperature": 0.9}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module")
def teacher(folder):
    return load(folder)


@pytest.fixture(scope="module")
def sampled(teacher):
    return takes.sample_shard(teacher, TEXTS * 4, SCALES, seed=3)


@pytest.fixture
def lesson(teacher):
    torch.manual_seed(0)
    return guidance.lesson_of(teacher, student_of(teacher, SCALES), "cpu")


# The rule


@pytest.mark.parametrize("cfg_scale", [0.7, 1.0, 3.0])
def test_the_target_is_the_distribution_of_guided_sampling(cfg_scale):
    """Of engine/sampling.py, before temperature and top p."""
    decoder, top_k = SMALL.decoder, 9
    shape = (50, decoder.num_channels, decoder.vocab_size)
    cond, uncond = 3 * torch.randn(2, *shape, generator=torch.Generator().manual_seed(1))
    params = replace(DEFAULTS, cfg_scale=cfg_scale, top_k=top_k)
    codes, logits = Sampler.of([params] * 50, decoder).candidates_of(cond, uncond)
    expected = torch.full(shape, -torch.inf).scatter(-1, codes, logits).log_softmax(-1)
    scales = torch.full((50,), cfg_scale)
    log_p = guided_distribution(cond[:, None], uncond[:, None], scales, top_k, decoder)[:, 0]
    torch.testing.assert_close(log_p, expected)


def test_without_guidance_the_target_is_the_likeliest_codes_that_are_audio():
    decoder = SMALL.decoder
    cond = torch.randn(4, 6, decoder.num_channels, decoder.vocab_size)
    log_p = guided_distribution(cond, torch.randn_like(cond), torch.zeros(4), 9, decoder)
    assert ((log_p > -torch.inf).sum(-1) == 9).all()
    assert (log_p[..., 1:, decoder.eos :] == -torch.inf).all()
    best = cond[:, :, 1:, : decoder.eos].argmax(-1)
    assert torch.equal(log_p[:, :, 1:].argmax(-1), best)


def test_the_divergence_is_zero_only_from_itself():
    logits = torch.randn(2, 5, 3, 8)
    log_p = logits.log_softmax(-1)
    assert divergence(log_p, 2.5 + logits).abs().max() < 1e-6
    log_p = logits.masked_fill(logits < 0, -torch.inf).log_softmax(-1)
    for temperature in (1.0, 0.3):
        expected = -((logits / temperature).softmax(-1) * (logits >= 0)).sum(-1).log()
        torch.testing.assert_close(divergence(log_p, logits, temperature), expected)


def test_codes_that_the_delay_pattern_sets_are_not_counted(sampled):
    decoder, codes = SMALL.decoder, torch.from_numpy(sampled[0].codes)[None]
    mask = counted(codes, decoder)[0]
    fed_next = codes[0, 1:]
    assert not mask[:2, 1].any() and mask[:2, 0].all(), "channel 1 starts two positions later"
    assert torch.equal(mask[:, 1], fed_next[:, 1] < decoder.eos)


# The network


def test_a_padded_batch_has_the_logits_of_the_engine(teacher, sampled):
    batch = takes.collate(sampled[:3], SMALL, "cpu")
    with torch.no_grad():
        texts = network.read_texts(teacher, batch.text, batch.text_mask)
        bias = network.hidden_where(~batch.text_mask)
        logits = network.decode(teacher, batch.codes, texts, bias)
    for row, take in enumerate(sampled[:3]):
        codes = torch.from_numpy(take.codes)[None]
        cache = teacher.encode(take.text, 0.0, len(take.codes))
        expected = teacher(codes, [cache])[0]
        torch.testing.assert_close(logits[row, : len(expected)], expected, rtol=1e-4, atol=1e-4)


def test_a_take_longer_than_a_chunk_has_the_logits_of_the_engine(teacher):
    codes = torch.from_numpy(random_codes(SMALL, 2 * network.CHUNK + 7))[None]
    text = torch.tensor([list(TEXTS[0])])
    with torch.no_grad():
        texts = network.read_texts(teacher, text, text != 0)
        logits = network.decode(teacher, codes, texts, None)
    expected = teacher(codes, [teacher.encode(TEXTS[0], 0.0, codes.shape[1])])
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


def test_every_weight_of_the_student_is_trained(lesson, sampled):
    batch = takes.collate(sampled, SMALL, "cpu")
    (kl,), mask = lesson.divergences(batch, [take.cfg_scale for take in sampled])
    kl[mask].mean().backward()
    still = [n for n, p in lesson.student.named_parameters() if p.grad is None or not p.grad.any()]
    assert not still
    assert all(p.grad is None for p in lesson.teacher.parameters())


# Takes


def test_takes_are_stored_as_they_were_sampled(tmp_path, sampled):
    takes.save_shard(tmp_path / "0.npz", sampled)
    for stored, take in zip(takes.load_shard(tmp_path / "0.npz"), sampled, strict=True):
        assert stored.text == take.text and stored.cfg_scale == take.cfg_scale
        assert np.array_equal(stored.codes, take.codes)


def test_a_stored_shard_is_not_sampled_again(tmp_path, teacher, monkeypatch):
    asked = []

    def scripts(number):
        asked.append(number)
        return iter(TEXTS)

    monkeypatch.setattr(takes, "SHARD", 3)
    takes.sample_takes(tmp_path, teacher, scripts, SCALES, 3)
    takes.sample_takes(tmp_path, teacher, scripts, SCALES, 6)
    assert asked == [0, 1]
    assert len(takes.load_takes(tmp_path, 5)) == 5


def test_every_take_is_in_one_batch(sampled):
    batches = list(takes.in_batches(sampled, 130, Random(0)))
    assert sorted(id(t) for part in batches for t in part) == sorted(map(id, sampled))
    assert all(len(part) == 1 or len(part) * max(len(t.codes) for t in part) <= 130
               for part in batches)  # fmt: skip


# Training


def test_a_student_comes_nearer_to_the_guided_teacher(lesson, sampled, tmp_path):
    before = guidance.measure(lesson, sampled, 400)
    guidance.Training(lesson, PLAN, tmp_path / "state.pt").run(sampled)
    after = guidance.measure(lesson, sampled, 400)
    assert list(before) == list(SCALES)
    assert all(after[w][1.0] < 0.8 * before[w][1.0] for w in SCALES[1:]), (before, after)


def test_training_goes_on_after_a_kill_as_if_there_had_been_none(teacher, sampled, tmp_path):
    def train(name: str, stop: int | None = None):
        lesson = guidance.lesson_of(teacher, student_of(teacher, SCALES), "cpu")
        plan = replace(PLAN, steps=6, save_seconds=0.0)
        training = guidance.Training(lesson, plan, tmp_path / name)
        begun, advance = training.step, training.advance

        def killed(*arguments):
            if training.step == stop:
                raise KeyboardInterrupt
            return advance(*arguments)

        training.advance = killed
        training.run(sampled)
        return lesson.student, begun

    whole, _ = train("whole")
    with pytest.raises(KeyboardInterrupt):
        train("killed", stop=4)
    resumed, begun = train("killed")
    assert begun == 4
    for first, second in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(first, second)


# Files


def test_a_written_student_is_read_by_the_engine(lesson, folder, tmp_path):
    write_student(lesson.student, folder, tmp_path / "student")
    read = load(tmp_path / "student")
    assert read.config.guidance_scales == SCALES
    assert read.config.defaults == DEFAULTS.__class__(**vars(load(folder).config.defaults))
    for name, tensor in read.state_dict().items():
        assert torch.equal(tensor, lesson.student.state_dict()[name]), name


def test_the_command_makes_a_checkpoint_that_speaks(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(takes, "SHARD", 4)
    (tmp_path / "scripts.txt").write_text("[S1] Hello there.\n\n[S2] Rain again.\n")
    out = tmp_path / "out"
    arguments = f"guidance --teacher {folder} --out {out} --text {tmp_path / 'scripts.txt'}"
    sizes = "--scales 0 1 2 --takes 4 --held-out 4 --steps 4 --positions 200"
    command.main(f"{arguments} {sizes}".split())
    student = load(out / "student")
    assert len(say(student, max_tokens=20).codes()) > 5
    kl = [json.loads((out / name).read_text()) for name in ("before.json", "after.json")]
    assert [list(each) for each in kl] == [["0.0", "1.0", "2.0"]] * 2
    assert [list(each) for each in kl[1].values()] == [["1.0", "0.9"]] * 3
    with pytest.raises(SystemExit, match="exists: this student is finished"):
        command.main(f"{arguments} {sizes}".split())


@pytest.mark.parametrize("scales", [(1.0,), (0.0, 2.0, 1.0), (1.0, 1.0)])
def test_scales_that_do_not_grow_are_refused(scales):
    with pytest.raises(InputError, match="each larger than the one before"):
        student_config(replace(SMALL, defaults=DEFAULTS), scales)


def test_scales_without_the_default_between_them_are_refused():
    with pytest.raises(InputError, match="cfg_scale must be a number from 2 to 3, not 1.0"):
        student_config(replace(SMALL, defaults=DEFAULTS), (2.0, 3.0))


def test_a_student_is_no_teacher(lesson):
    with pytest.raises(InputError, match="distilled already"):
        student_config(lesson.student.config, SCALES)


# What it saves and what it needs


def test_the_saving_is_measured_on_equal_work():
    saving = speed.measure(SMALL, "float32", 1, rows=3, text_bytes=2, steps=10)
    assert saving.rows == 3
    assert saving.teacher_ms > 0 and saving.student_ms > 0
    d = SMALL.decoder
    text = 3 * 2 * d.num_layers * d.cross_num_kv_heads * d.cross_head_dim * 4
    unconditional = text  # Of one position; the text has two.
    own = saving.student_cache - 2 * text
    assert saving.teacher_cache == 2 * own + 2 * text + unconditional


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_rehearsal_takes_steps_at_the_size_that_is_asked_for(dtype):
    rehearsed = rehearsal.rehearse(replace(SMALL, defaults=DEFAULTS), 2, 20, dtype, "cpu")
    assert len(rehearsed.seconds) == len(rehearsed.kl) == 2
    assert np.min(rehearsed.kl) > 0 and rehearsed.kl[1] != rehearsed.kl[0], "it has changed"
    assert rehearsed.parameters > decoder_weights(SMALL)
    assert rehearsed.flops == 10 * 20 * decoder_weights(SMALL)
    assert rehearsed.peak_bytes > 10**7


def test_the_sizes_of_the_commands_are_those_of_a_checkpoint(folder, capsys):
    command.main(f"speed --size {folder} --rows 1 2 --steps 5".split())
    command.main(f"rehearse --size {folder} --layers 1 --positions 12 --steps 1".split())
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines[:2]] == ["1 rows", "2 rows"]
    assert "12 positions" in lines[2]
    with pytest.raises(SystemExit, match="is not on this machine"):
        command.main(["speed", "--size", "nari-labs/Dia-1.6B-0626"])


# Several frames a step


@pytest.fixture
def student(teacher):
    return student_of(teacher, SCALES).requires_grad_(False)


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
        forced = Forced(Row(grown.config, take.text, params), fed(take.codes, grown.config))
        expected = forced_logits(grown, forced)[:, 0]
        torch.testing.assert_close(logits[row, : len(expected)], expected, rtol=1e-4, atol=1e-4)


def fed(codes: np.ndarray, config: ModelConfig) -> np.ndarray:
    """Codes [steps, F * C] that the steps of a take read."""
    frames = config.frames_per_step
    whole = np.concatenate((np.full((frames - 1, codes.shape[1]), config.decoder.bos), codes))
    steps = len(whole) // frames
    return whole[: steps * frames].reshape(steps, -1)


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
    (tmp_path / "scripts.txt").write_text("[S1] Hello there.\n\n[S2] Rain again.\n")
    out = tmp_path / "out"
    given = f"--teacher {folder} --out {out} --text {tmp_path / 'scripts.txt'}"
    sizes = "--takes 4 --held-out 4 --steps 2 --positions 200"
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


def test_the_saving_of_several_frames_is_counted_by_frame():
    one, two = (
        speed.measure(SMALL, "float32", 1, rows=2, text_bytes=2, steps=10, frames=frames)
        for frames in (1, 2)
    )
    assert two.student_cache < one.student_cache and two.student_ms > 0
