"""training/distill: a student learns the guided distribution from the teacher's own takes."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch

from dia_demo.errors import InputError
from tests.helpers.models.checkpoints import SMALL, load, random_codes, say
from tests.helpers.sampling import ReferenceSampler
from tests.training.distill.settings import DEFAULTS, PLAN, SCALES, TEXTS, given_to
from training.distill import __main__ as command
from training.distill import guidance, network, takes
from training.distill.rule import divergence, drawn_mask, guided_distribution
from training.distill.student import student_config, student_of, write_student

# The rule


@pytest.mark.parametrize("cfg_scale", [0.7, 1.0, 3.0])
def test_the_target_is_the_distribution_of_guided_sampling(cfg_scale):
    """Of tests/helpers/sampling.py, before temperature and top p."""
    decoder, top_k = SMALL.decoder, 9
    shape = (50, decoder.num_channels, decoder.vocab_size)
    cond, uncond = 3 * torch.randn(2, *shape, generator=torch.Generator().manual_seed(1))
    params = replace(DEFAULTS, cfg_scale=cfg_scale, top_k=top_k)
    sampler = ReferenceSampler.create([params] * 50, [2] * 50, decoder)
    codes, logits = map(torch.from_numpy, sampler.candidates_of(cond.numpy(), uncond.numpy()))
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
    logits = torch.randn(2, 5, 3, 8, generator=torch.Generator().manual_seed(2))
    logits[..., 3] = 0.5  # So that some code is left below.
    log_p = logits.log_softmax(-1)
    assert divergence(log_p, 2.5 + logits).abs().max() < 1e-6
    log_p = logits.masked_fill(logits < 0, -torch.inf).log_softmax(-1)
    for temperature in (1.0, 0.3):
        expected = -((logits / temperature).softmax(-1) * (logits >= 0)).sum(-1).log()
        torch.testing.assert_close(divergence(log_p, logits, temperature), expected)


def test_codes_that_the_delay_pattern_sets_are_not_counted(sampled):
    decoder, codes = SMALL.decoder, torch.from_numpy(sampled[0].codes)[None]
    mask = drawn_mask(codes, decoder)[0]
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


def test_the_attention_of_an_accelerator_is_that_of_the_cpu():
    """There torch's own function computes it: on the CPU both must agree."""
    generator = torch.Generator().manual_seed(4)
    q = torch.randn(2, 4, network.CHUNK + 9, 8, generator=generator)
    k, v = torch.randn(2, 2, 2, q.shape[2], 8, generator=generator)
    torch.testing.assert_close(
        network.attend_fused(q, k, v, causal=True), network.attend_back(q, k, v)
    )
    hidden = network.hidden_where(torch.arange(q.shape[2])[None] >= torch.tensor([[40], [170]]))
    torch.testing.assert_close(
        network.attend_fused(q, k, v, hidden), network.attend(q, k, v, hidden)
    )


@pytest.mark.parametrize("has_bfloat16", [False, True])
def test_a_processor_without_bfloat16_trains_in_float32(teacher, monkeypatch, has_bfloat16):
    monkeypatch.setattr(guidance, "multiplies_bfloat16", lambda: has_bfloat16)
    x = torch.ones(2, SMALL.decoder.hidden_size)
    with guidance.lesson_of(teacher, teacher, "cpu").autocast():
        multiplied = teacher.decoder.layers[0].self_attention.qkv_proj(x)
    assert multiplied.dtype == (torch.bfloat16 if has_bfloat16 else torch.float32)


def test_kept_states_give_the_target_of_a_fresh_pass(teacher, sampled, monkeypatch):
    """Also in a batch that is padded to another length."""
    scales = [take.cfg_scale for take in sampled]
    whole = takes.collate(sampled, SMALL, "cpu")
    keeping = guidance.lesson_of(teacher, teacher, "cpu", keep_states=True)
    fresh = guidance.lesson_of(teacher, teacher, "cpu").target(whole, scales)
    assert torch.equal(keeping.target(whole, scales), fresh)
    monkeypatch.setattr(network, "last_states", None)  # From here on the teacher reads nothing.
    for start in range(0, len(sampled), 2):
        part = slice(start, start + 2)
        batch = takes.collate(sampled[part], SMALL, "cpu")
        kept = keeping.target(batch, scales[part])
        mask = drawn_mask(batch.codes, SMALL.decoder)
        assert torch.equal(kept[mask], fresh[part, : kept.shape[1]][mask])


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


@pytest.mark.parametrize("muon", [False, True])
def test_a_student_comes_nearer_to_the_guided_teacher(lesson, sampled, tmp_path, muon):
    before = guidance.measure(lesson, sampled, 400)
    guidance.Training(lesson, replace(PLAN, muon=muon), tmp_path / "state.pt").run(sampled)
    after = guidance.measure(lesson, sampled, 400)
    assert list(before) == list(SCALES)
    assert all(after[w][1.0] < 0.8 * before[w][1.0] for w in SCALES[1:]), (before, after)


@pytest.mark.parametrize("muon", [False, True])
def test_every_weight_has_one_optimizer(student, muon):
    student.requires_grad_(True)
    of = guidance.optimizers_of(student, replace(PLAN, muon=muon))
    held = [id(p) for each in of for group in each.param_groups for p in group["params"]]
    assert sorted(held) == sorted(map(id, student.parameters()))
    inner = {id(p) for name, p in student.named_parameters() if name.endswith("_proj.weight")}
    assert inner and {id(p) for each in of[1:] for p in each.param_groups[0]["params"]} == (
        inner if muon else set()
    )


def test_the_loss_is_the_mean_over_its_temperatures(teacher, sampled, monkeypatch):
    monkeypatch.setattr(guidance, "LARGEST_GRADIENT", float("inf"))

    def gradients(*temperatures: float):
        lesson = guidance.lesson_of(teacher, student_of(teacher, SCALES), "cpu")
        training = guidance.Training(lesson, replace(PLAN, temperatures=temperatures))
        told = training.advance(sampled, [2.0] * len(sampled))
        return told, torch.cat([p.grad.flatten() for p in lesson.student.parameters()])

    (told, at_1), (_, at_half), (told_of_both, at_both) = map(
        lambda each: gradients(*each), ((1.0,), (0.5,), (1.0, 0.5))
    )
    torch.testing.assert_close(torch.tensor(told_of_both), torch.tensor(told))
    assert not torch.allclose(at_1, at_half, rtol=0.1)
    expected = (at_1 + at_half) / 2
    assert (at_both - expected).norm() < 0.02 * expected.norm()


def test_the_result_can_be_the_moving_average_of_the_weights(lesson, sampled):
    training = guidance.Training(lesson, replace(PLAN, steps=4, average=0.75))
    table, seen, advance = lesson.student.decoder.embeddings.weight, [], training.advance

    def watched(*arguments):
        told = advance(*arguments)
        seen.append(table.detach().clone())
        return told

    training.advance = watched
    training.run(sampled)
    expected = seen[0]
    for weights in seen[1:]:
        expected = 0.75 * expected + 0.25 * weights
    assert training.result is not lesson.student
    torch.testing.assert_close(training.result.decoder.embeddings.weight, expected)
    assert not torch.allclose(expected, seen[-1])


@pytest.mark.parametrize("options", [{}, {"average": 0.75, "muon": True}])
def test_training_goes_on_after_a_kill_as_if_there_had_been_none(
    teacher, sampled, tmp_path, options
):
    def train(name: str, stop: int | None = None):
        lesson = guidance.lesson_of(teacher, student_of(teacher, SCALES), "cpu")
        plan = replace(PLAN, steps=6, save_seconds=0.0, **options)
        training = guidance.Training(lesson, plan, tmp_path / name)
        begun, advance = training.step, training.advance

        def killed(*arguments):
            if training.step == stop:
                raise KeyboardInterrupt
            return advance(*arguments)

        training.advance = killed
        training.run(sampled)
        return training.result, begun

    whole, _ = train("whole")
    with pytest.raises(KeyboardInterrupt):
        train("killed", stop=4)
    resumed, begun = train("killed")
    assert begun == 4
    for first, second in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("options", [{"muon": True}, {"average": 0.75}])
def test_training_does_not_go_on_with_other_options(lesson, tmp_path, options):
    guidance.Training(lesson, PLAN, tmp_path / "state.pt").save()
    with pytest.raises(InputError, match="began with other options: give the same --muon"):
        guidance.Training(lesson, replace(PLAN, **options), tmp_path / "state.pt")


@pytest.mark.parametrize("average", ["1", "-0.5", "nan"])
def test_an_average_out_of_range_is_refused(folder, tmp_path, average):
    _, given = given_to(folder, tmp_path)
    with pytest.raises(SystemExit, match="--average must be a number from 0 to below 1"):
        command.main(f"guidance {given} --average={average}".split())


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
    out, given = given_to(folder, tmp_path)
    sizes = "--scales 0 1 2 --takes 4 --held-out 4 --steps 4 --positions 200 --average 0.5"
    command.main(f"guidance {given} {sizes}".split())
    student = load(out / "student")
    assert len(say(student, max_tokens=20).codes()) > 5
    kl = [json.loads((out / name).read_text()) for name in ("before.json", "after.json")]
    assert [list(each) for each in kl] == [["0.0", "1.0", "2.0"]] * 2
    assert [list(each) for each in kl[1].values()] == [["1.0", "0.9"]] * 3
    with pytest.raises(SystemExit, match="exists: this student is finished"):
        command.main(f"guidance {given} {sizes}".split())


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
