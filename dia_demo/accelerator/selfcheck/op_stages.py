"""Stages 2 to 4: the operations a decoder step is made of, against the CPU in float32."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from dia_demo.accelerator.selfcheck.context import Subject
from dia_demo.accelerator.selfcheck.recorder import Tally
from dia_demo.model.kv_cache import RowCache
from dia_demo.model.layers import RMSNorm, Rotary, attend, rotate

HALVES = 2


def random(*shape: int, seed: int = 1) -> Tensor:
    """The same standard normal numbers at every call."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def linears(subject: Subject, tally: Tally) -> None:
    """Every linear of the model, for as many rows as steps and prefills have.

    Reported on Intel GPUs: all zeros in half precision, and garbage at some shapes only.
    """
    plan = subject.plan
    for inputs, outputs in subject.linear_shapes():
        weight = random(outputs, inputs) / inputs**0.5
        there = subject.put(weight)
        for rows in plan.linear_rows:
            where = f"linear {inputs} to {outputs}, rows {rows}"
            tally.trying(where)
            x = random(rows, inputs, seed=rows)
            expected, x_there = functional.linear(x, weight), subject.put(x)
            for _ in range(plan.linear_repeats):
                with subject.backend.active():
                    y = functional.linear(x_there, there)
                tally.compare(subject.fetch(y), expected, where)


def attention(subject: Subject, tally: Tally) -> None:
    """Self-attention over a cache, cross-attention, and a causal prefill, as the model calls them.

    Free memory is filled with NaN first, and so is the cache beyond its length: reading what was
    never written shows. The fused forms are never used; what they give is noted.
    """
    _poison(subject)
    plan, decoder = subject.plan, subject.config.decoder
    heads, kv_heads, width = decoder.num_heads, decoder.num_kv_heads, decoder.head_dim
    for length in subject.lengths(plan.self_lengths, decoder.max_positions):
        case = _case(1, heads, kv_heads, length, width)
        _attend_often(subject, tally, case, f"self-attention over {length}")
    cross = decoder.cross_num_heads, decoder.cross_num_kv_heads
    for length in subject.lengths(plan.cross_lengths, subject.config.encoder.max_positions):
        case = _case(1, *cross, length, decoder.cross_head_dim)
        _attend_often(subject, tally, case, f"cross-attention over {length}")
    length = min(17, decoder.max_positions)
    case = _case(length, heads, kv_heads, length, width)
    _attend_often(subject, tally, case, f"causal prefill of {length}", causal=True)
    _note_fused(subject, tally, _case(1, heads, kv_heads, min(129, decoder.max_positions), width))


def _poison(subject: Subject) -> None:
    with subject.backend.active():
        size = subject.plan.poison_bytes // 4
        block = torch.full((size,), torch.nan, device=subject.backend.device)
        subject.backend.synchronize()
        del block


def _case(steps: int, heads: int, kv_heads: int, length: int, width: int) -> tuple[Tensor, ...]:
    """q [B, T, H, K], peaked as Dia's (scale 1.0), and k, v [B, G, S, K]."""
    q = random(HALVES, steps, heads, width, seed=2) * 3 / width**0.5
    return q, *(random(HALVES, kv_heads, length, width, seed=seed) for seed in (3, 4))


def _on_device(subject: Subject, case: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """q, and views of k and v as the cache gives them: the slots after their end hold NaN."""
    q, k, v = case
    slots = k.shape[2] + 7
    with subject.backend.active():
        shape = (2, *k.shape[:2], slots, k.shape[3])
        cache = torch.full(shape, torch.nan, dtype=subject.dtype, device=subject.backend.device)
        cache[0, :, :, : k.shape[2]] = subject.put(k)
        cache[1, :, :, : k.shape[2]] = subject.put(v)
    return subject.put(q), cache[0, :, :, : k.shape[2]], cache[1, :, :, : k.shape[2]]


def _attend_often(subject: Subject, tally: Tally, case, where: str, causal: bool = False) -> None:
    tally.trying(where)
    expected = attend(*case, causal=causal)
    heads = case[0].shape[2]
    there = _on_device(subject, case)
    for _ in range(subject.plan.attention_repeats):
        with subject.backend.active():
            out = attend(*there, causal=causal)
        tally.compare(subject.fetch(out), expected, where, heads)


def _note_fused(subject: Subject, tally: Tally, case: tuple[Tensor, ...]) -> None:
    expected, there = attend(*case), _on_device(subject, case)
    seen = Tally(tally.tolerance)
    forms = [one for one in SDPBackend.__members__.values() if one != SDPBackend.ERROR]
    try:
        for _ in range(subject.plan.fused_repeats):
            with subject.backend.active(), sdpa_kernel(forms):
                out = attend(*there)
            seen.compare(subject.fetch(out), expected, "fused attention", case[0].shape[2])
    except (RuntimeError, NotImplementedError) as error:
        seen.wrong(f"fused attention does not run: {error}")
    used = "it is not used here: attention runs in its plain form"
    told = "; ".join(seen.findings) or "fused attention agrees too"
    tally.facts.append(f"{told} ({used})")


def elementwise(subject: Subject, tally: Tally) -> None:
    """What stands between the products: norms, rotation, gate, embeddings, cache, reshapes."""
    _norms(subject, tally)
    _rotation(subject, tally)
    _gate_and_embeddings(subject, tally)
    _cache_writes(subject, tally)
    _reshapes(subject, tally)


def _norms(subject: Subject, tally: Tally) -> None:
    """The model's own RMSNorm, in the encoder's and the decoder's width, against its definition."""
    backend = subject.backend
    for name, config in (("encoder", subject.config.encoder), ("decoder", subject.config.decoder)):
        where = f"RMSNorm of the {name}"
        tally.trying(where)
        x, weight = random(HALVES, 3, config.hidden_size), random(config.hidden_size, seed=2)
        norm, x_there = RMSNorm(config.hidden_size, config.norm_eps), backend.put(x)
        norm.weight = nn.Parameter(backend.put(weight), requires_grad=False)
        with backend.active():
            out = norm(x_there, subject.dtype)
        expected = functional.rms_norm(x, weight.shape, weight, config.norm_eps)
        tally.compare(subject.fetch(out), expected, where)


def _rotation(subject: Subject, tally: Tally) -> None:
    decoder, backend = subject.config.decoder, subject.backend
    tally.trying("rotary positions")
    last = decoder.max_positions - 1
    positions = torch.tensor([[0, 1, last // 2, last]]).expand(HALVES, -1)
    heads = random(HALVES, 4, decoder.num_heads, decoder.head_dim)
    tables = decoder.head_dim, decoder.rope_theta, decoder.max_positions
    expected = rotate(heads, Rotary(*tables, torch.device("cpu")).at(positions))
    positions_there, heads_there = backend.put(positions), subject.put(heads)
    with backend.active():
        out = rotate(heads_there, Rotary(*tables, backend.device).at(positions_there))
    tally.compare(subject.fetch(out), expected, "rotary positions")


def _gate_and_embeddings(subject: Subject, tally: Tally) -> None:
    decoder, backend = subject.config.decoder, subject.backend
    tally.trying("gated SiLU")
    both = random(HALVES, 1, 2 * decoder.intermediate_size)
    gate, up = both.chunk(2, dim=-1)
    there = subject.put(both)
    with backend.active():
        gate_there, up_there = there.chunk(2, dim=-1)
        out = functional.silu(gate_there) * up_there
    tally.compare(subject.fetch(out), functional.silu(gate) * up, "gated SiLU")
    tally.trying("summed embeddings")
    table = random(decoder.num_channels * decoder.vocab_size, min(64, decoder.hidden_size))
    codes = torch.arange(HALVES * decoder.num_channels).view(HALVES, 1, -1) * 7 % len(table)
    table_there, codes_there = subject.put(table), backend.put(codes)
    with backend.active():
        out = functional.embedding(codes_there, table_there).sum(dim=2, dtype=torch.float32)
    expected = functional.embedding(codes, table).sum(dim=2)
    tally.compare(subject.fetch(out), expected, "summed embeddings")


def _cache_writes(subject: Subject, tally: Tally) -> None:
    """Write positions as a run does, past the first growth; all of them must be there after."""
    decoder, backend = subject.config.decoder, subject.backend
    count = min(270, decoder.max_positions)
    first = count - 20 if count > 20 else 1
    shape = (HALVES, count, decoder.num_kv_heads, decoder.head_dim)
    k, v = (random(*shape, seed=seed).to(subject.dtype) for seed in (5, 6))
    tally.trying("cache write")
    k_there, v_there = backend.put(k), backend.put(v)
    with backend.active():
        text = [(k_there[:1, :1].transpose(1, 2),) * 2]
        cache = RowCache(decoder, [text] * HALVES, count)
        for start, end in [(0, first), *((at, at + 1) for at in range(first, count))]:
            cache.reserve(end - start)
            part = slice(start, end)
            kept = cache.write(decoder.num_layers - 1, k_there[:, part], v_there[:, part])
            cache.advance(end - start)
    for name, got, expected in zip("kv", kept, (k, v), strict=True):
        got = backend.fetch(got.contiguous())
        tally.same(got, expected.transpose(1, 2).contiguous(), f"cache write of {name}")


def _reshapes(subject: Subject, tally: Tally) -> None:
    backend = subject.backend
    x = random(HALVES, 3, 5, 8).to(subject.dtype)
    tally.trying("reshape of non-contiguous data")
    there = backend.put(x)
    with backend.active():
        turned = there.transpose(1, 2).reshape(HALVES, 5, 24)
        half = there.chunk(2, dim=-1)[1].contiguous()
    tally.same(
        backend.fetch(turned),
        x.transpose(1, 2).reshape(HALVES, 5, 24),
        "reshape of non-contiguous data",
    )
    tally.same(backend.fetch(half), x.chunk(2, dim=-1)[1].contiguous(), "second half of a product")
