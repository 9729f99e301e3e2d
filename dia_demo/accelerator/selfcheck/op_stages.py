"""Stages 2 to 4: the operations of a decoder step, against the CPU in float32."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from dia_demo.accelerator.selfcheck.context import CheckContext, limit_lengths
from dia_demo.accelerator.selfcheck.recorder import StageRecorder
from dia_demo.model.kv_cache import RowCache
from dia_demo.model.layers import RMSNorm, Rotary, attend, rotate

BRANCHES = 2
# q [B, T, H, K], k and v [B, G, S, K].
AttentionInputs = tuple[Tensor, Tensor, Tensor]


def random(*shape: int, seed: int = 1) -> Tensor:
    """Standard normal numbers, the same at every call."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def linears(context: CheckContext, recorder: StageRecorder) -> None:
    """Every linear of the model, with the numbers of rows that steps and prefills have.

    Reported on Intel GPUs: all zeros in half precision, and wrong results at some shapes only.
    """
    plan = context.plan
    for inputs, outputs in context.linear_shapes():
        weight = random(outputs, inputs) / inputs**0.5
        device_weight = context.put(weight)
        for rows in plan.linear_rows:
            where = f"linear {inputs} to {outputs}, rows {rows}"
            recorder.begin(where)
            x = random(rows, inputs, seed=rows)
            expected, device_x = functional.linear(x, weight), context.put(x)
            for _ in range(plan.linear_repeats):
                with context.backend.active():
                    y = functional.linear(device_x, device_weight)
                recorder.compare(context.fetch(y), expected, where)


def attention(context: CheckContext, recorder: StageRecorder) -> None:
    """Self-attention over a cache, cross-attention, and a causal prefill, as the model calls them.

    Free memory and the cache beyond its length are filled with NaN, so that reading what was never
    written is detected. The fused forms of attention are not used by a run; their results are
    noted.
    """
    _poison(context)
    plan, decoder = context.plan, context.config.decoder
    heads, kv_heads, width = decoder.num_heads, decoder.num_kv_heads, decoder.head_dim
    for length in limit_lengths(plan.self_lengths, decoder.max_positions):
        case = _case(1, heads, kv_heads, length, width)
        _attend_often(context, recorder, case, f"self-attention over {length}")
    cross_heads = decoder.cross_num_heads, decoder.cross_num_kv_heads
    for length in limit_lengths(plan.cross_lengths, context.config.encoder.max_positions):
        case = _case(1, *cross_heads, length, decoder.cross_head_dim)
        _attend_often(context, recorder, case, f"cross-attention over {length}")
    length = min(17, decoder.max_positions)
    case = _case(length, heads, kv_heads, length, width)
    _attend_often(context, recorder, case, f"causal prefill of {length}", causal=True)
    _note_fused(
        context, recorder, _case(1, heads, kv_heads, min(129, decoder.max_positions), width)
    )


def _poison(context: CheckContext) -> None:
    with context.backend.active():
        size = context.plan.poison_bytes // 4
        block = torch.full((size,), torch.nan, device=context.backend.device)
        context.backend.synchronize()
        del block


def _case(steps: int, heads: int, kv_heads: int, length: int, width: int) -> AttentionInputs:
    """Inputs whose attention is as peaked as Dia's (scale 1.0)."""
    q = random(BRANCHES, steps, heads, width, seed=2) * 3 / width**0.5
    k = random(BRANCHES, kv_heads, length, width, seed=3)
    return q, k, random(BRANCHES, kv_heads, length, width, seed=4)


def _put_on_device(context: CheckContext, case: AttentionInputs) -> AttentionInputs:
    """q, and views of k and v as the cache returns them: the slots after their end are NaN."""
    q, k, v = case
    slots = k.shape[2] + 7
    with context.backend.active():
        shape = (2, *k.shape[:2], slots, k.shape[3])
        cache = torch.full(shape, torch.nan, dtype=context.dtype, device=context.backend.device)
        cache[0, :, :, : k.shape[2]] = context.put(k)
        cache[1, :, :, : k.shape[2]] = context.put(v)
    return context.put(q), cache[0, :, :, : k.shape[2]], cache[1, :, :, : k.shape[2]]


def _attend_often(
    context: CheckContext,
    recorder: StageRecorder,
    case: AttentionInputs,
    where: str,
    causal: bool = False,
) -> None:
    recorder.begin(where)
    q, k, v = case
    expected = attend(q, k, v, causal=causal)
    device_q, device_k, device_v = _put_on_device(context, case)
    for _ in range(context.plan.attention_repeats):
        with context.backend.active():
            result = attend(device_q, device_k, device_v, causal=causal)
        recorder.compare(context.fetch(result), expected, where, heads=q.shape[2])


def _note_fused(context: CheckContext, recorder: StageRecorder, case: AttentionInputs) -> None:
    q, k, v = case
    expected, device_case = attend(q, k, v), _put_on_device(context, case)
    fused = StageRecorder(recorder.tolerance)
    members = SDPBackend.__members__.values()
    forms: list[SDPBackend] = [form for form in members if form != SDPBackend.ERROR]
    try:
        for _ in range(context.plan.fused_repeats):
            with context.backend.active(), sdpa_kernel(forms):
                result = attend(*device_case)
            fused.compare(context.fetch(result), expected, "fused attention", heads=q.shape[2])
    except (RuntimeError, NotImplementedError) as error:
        fused.add_problem(f"fused attention does not run: {error}")
    findings = "; ".join(fused.findings) or "fused attention agrees too"
    recorder.facts.append(f"{findings} (it is not used here: attention runs in its plain form)")


def elementwise(context: CheckContext, recorder: StageRecorder) -> None:
    """Operations between the linears: norms, rotation, gate, embeddings, cache, reshapes."""
    _norms(context, recorder)
    _rotation(context, recorder)
    _gate_and_embeddings(context, recorder)
    _cache_writes(context, recorder)
    _reshapes(context, recorder)


def _norms(context: CheckContext, recorder: StageRecorder) -> None:
    """The model's own RMSNorm, in the encoder's and the decoder's width, against its definition."""
    backend = context.backend
    for name, config in (("encoder", context.config.encoder), ("decoder", context.config.decoder)):
        where = f"RMSNorm of the {name}"
        recorder.begin(where)
        x, weight = random(BRANCHES, 3, config.hidden_size), random(config.hidden_size, seed=2)
        norm, device_x = RMSNorm(config.hidden_size, config.norm_eps), backend.put(x)
        norm.weight = nn.Parameter(backend.put(weight), requires_grad=False)
        with backend.active():
            out = norm(device_x, context.dtype)
        expected = functional.rms_norm(x, weight.shape, weight, config.norm_eps)
        recorder.compare(context.fetch(out), expected, where)


def _rotation(context: CheckContext, recorder: StageRecorder) -> None:
    decoder, backend = context.config.decoder, context.backend
    recorder.begin("rotary positions")
    last = decoder.max_positions - 1
    positions = torch.tensor([[0, 1, last // 2, last]]).expand(BRANCHES, -1)
    heads = random(BRANCHES, 4, decoder.num_heads, decoder.head_dim)
    tables = decoder.head_dim, decoder.rope_theta, decoder.max_positions
    expected = rotate(heads, Rotary(*tables, torch.device("cpu")).at(positions))
    device_positions, device_heads = backend.put(positions), context.put(heads)
    with backend.active():
        out = rotate(device_heads, Rotary(*tables, backend.device).at(device_positions))
    recorder.compare(context.fetch(out), expected, "rotary positions")


def _gate_and_embeddings(context: CheckContext, recorder: StageRecorder) -> None:
    decoder, backend = context.config.decoder, context.backend
    recorder.begin("gated SiLU")
    both = random(BRANCHES, 1, 2 * decoder.intermediate_size)
    gate, up = both.chunk(2, dim=-1)
    device_both = context.put(both)
    with backend.active():
        device_gate, device_up = device_both.chunk(2, dim=-1)
        out = functional.silu(device_gate) * device_up
    recorder.compare(context.fetch(out), functional.silu(gate) * up, "gated SiLU")
    recorder.begin("summed embeddings")
    table = random(decoder.num_channels * decoder.vocab_size, min(64, decoder.hidden_size))
    codes = torch.arange(BRANCHES * decoder.num_channels).view(BRANCHES, 1, -1) * 7 % len(table)
    device_table, device_codes = context.put(table), backend.put(codes)
    with backend.active():
        out = functional.embedding(device_codes, device_table).sum(dim=2, dtype=torch.float32)
    expected = functional.embedding(codes, table).sum(dim=2)
    recorder.compare(context.fetch(out), expected, "summed embeddings")


def _cache_writes(context: CheckContext, recorder: StageRecorder) -> None:
    """Write positions as a run does, beyond the cache's first growth; all must be kept."""
    decoder, backend = context.config.decoder, context.backend
    count = min(270, decoder.max_positions)
    first = count - 20 if count > 20 else 1
    shape = (BRANCHES, count, decoder.num_kv_heads, decoder.head_dim)
    k, v = (random(*shape, seed=seed).to(context.dtype) for seed in (5, 6))
    recorder.begin("cache write")
    device_k, device_v = backend.put(k), backend.put(v)
    with backend.active():
        text = [(device_k[:1, :1].transpose(1, 2),) * 2]
        cache = RowCache(decoder, [text] * BRANCHES, count)
        for start, end in [(0, first), *((at, at + 1) for at in range(first, count))]:
            cache.reserve(end - start)
            part = slice(start, end)
            written = cache.write(decoder.num_layers - 1, device_k[:, part], device_v[:, part])
            cache.advance(end - start)
    for name, tensor, expected in zip("kv", written, (k, v), strict=True):
        actual = backend.fetch(tensor.contiguous())
        recorder.compare_bits(
            actual, expected.transpose(1, 2).contiguous(), f"cache write of {name}"
        )


def _reshapes(context: CheckContext, recorder: StageRecorder) -> None:
    backend = context.backend
    x = random(BRANCHES, 3, 5, 8).to(context.dtype)
    recorder.begin("reshape of non-contiguous data")
    device_x = backend.put(x)
    with backend.active():
        reshaped = device_x.transpose(1, 2).reshape(BRANCHES, 5, 24)
        second = device_x.chunk(2, dim=-1)[1].contiguous()
    recorder.compare_bits(
        backend.fetch(reshaped),
        x.transpose(1, 2).reshape(BRANCHES, 5, 24),
        "reshape of non-contiguous data",
    )
    recorder.compare_bits(
        backend.fetch(second), x.chunk(2, dim=-1)[1].contiguous(), "second half of a product"
    )
