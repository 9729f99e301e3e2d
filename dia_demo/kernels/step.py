"""One decoder step for all slots, from codes to logits, by a team of threads.

A step is bound by reading the weights, and every call from Python and every start of a thread is
time in which nothing is read. So the whole step is one function that each member of the team calls
once: it takes its share of every linear's blocks and of every attention's heads, and meets the
others where one part needs all of the one before. What is small, a norm or the activation, each
member computes for itself rather than wait.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from dia_demo.kernels.attention import attend_self, attend_text
from dia_demo.kernels.jit import compiled
from dia_demo.kernels.linear import padded, project, shrink
from dia_demo.kernels.scalars import exp, floats_at, halves_at, longs_at, meet, to_float
from dia_demo.kernels.tiles import INT8

# Addresses and sizes of one step. Widths are in numbers, strides in bytes. Buffers of activations
# are float32 [slots, stride], filled up with zeros to whole blocks.
FRAME = np.dtype(
    [
        (name, np.int64)
        for name in (
            "team barrier let_others use_dot slots "  # who computes, and how
            "width heads groups head_dim cross_heads cross_groups cross_dim hidden "
            "channels vocabulary half_cache half_embeddings "
            "embeddings cos sin norm logits_weights logits_kind "  # weights and tables
            "codes positions capacities text_lengths "  # of this step: int64 [slots, ...]
            "x x_stride wide wide_stride mixed mixed_stride logits logits_stride "
            "scratch scratch_size"  # of each member: bytes
        ).split()
    ]
    + [("eps", np.float32), ("", np.float32)]
)
_LINEARS = ("qkv", "o", "cross_q", "cross_o", "gate_up", "down")
LAYER = np.dtype(
    [(name, np.int64) for name in ("self_norm", "cross_norm", "mlp_norm", *_LINEARS)]
    + [(f"{name}_kind", np.int64) for name in _LINEARS]
)
# Of one layer and slot: addresses of keys and values, [groups, capacity, K] each.
CACHE = np.dtype([(name, np.int64) for name in ("keys", "values", "text_keys", "text_values")])

AS_IT_IS, NORMED, GATED = range(3)  # How a linear's input is prepared.


@compiled(fastmath=True)
def _norm(x, weight, eps, out):
    total = np.float32(0)
    for i in range(len(x)):
        total += x[i] * x[i]
    scale = np.float32(1) / np.sqrt(total / np.float32(len(x)) + eps)
    for i in range(len(x)):
        out[i] = x[i] * scale * weight[i]


@compiled(fastmath=True)
def _gate(wide, out):
    """silu(gate) * up; wide holds gate, then up."""
    count = len(out)
    for i in range(count):
        out[i] = wide[i] / (np.float32(1) + exp(-wide[i])) * wide[count + i]


@compiled(fastmath=True)
def _add(table, row, out):
    for i in range(len(out)):
        out[i] += to_float(table[row, i])


@compiled()
def _embed(frame, me):
    """x = the sum of the codes' embeddings, for this member's part of the slots' widths."""
    width, count = frame.width, frame.channels
    codes = carray(longs_at(frame.codes), (frame.slots, count))
    shape = (count * frame.vocabulary, width)
    for slot in range(me, frame.slots, frame.team):
        x = carray(floats_at(frame.x + slot * frame.x_stride), width)
        x[:] = np.float32(0)
        for channel in range(count):
            row = channel * frame.vocabulary + codes[slot, channel]
            if frame.half_embeddings:
                _add(carray(halves_at(frame.embeddings), shape), row, x)
            else:
                _add(carray(floats_at(frame.embeddings), shape), row, x)


@compiled()
def _fill(frame, source, stride, count, how, weight, own):
    """This member's copy of a linear's input, with zeros up to whole groups, at `own`.

    how: AS_IT_IS, NORMED by the weights at `weight`, or GATED (from twice as many numbers).
    """
    whole = padded(count)
    for slot in range(frame.slots):
        out = carray(floats_at(own + 4 * whole * slot), whole)
        given = carray(floats_at(source + stride * slot), 2 * count if how == GATED else count)
        if how == AS_IT_IS:
            out[:count] = given
        elif how == NORMED:
            _norm(given, carray(floats_at(weight), count), frame.eps, out[:count])
        else:
            _gate(given, out[:count])
        out[count:] = np.float32(0)


@compiled()
def _linear(
    frame, me, kind, weights, outputs, inputs, source, stride, how, norm, out, out_stride, fresh
):
    """out (+)= linear(prepared source), this member's blocks; then all meet."""
    own = frame.scratch + me * frame.scratch_size
    _fill(frame, source, stride, inputs, how, norm, own)
    small = own + 4 * padded(inputs) * frame.slots
    use_dot = frame.use_dot and kind >= INT8
    if use_dot:
        shrink(own, 4 * padded(inputs), inputs, frame.slots, small)
    project(
        kind, use_dot, weights, outputs, inputs, own, 4 * padded(inputs), small, frame.slots,
        out, out_stride, fresh, me, frame.team,
    )  # fmt: skip
    meet(frame.barrier, frame.team, frame.let_others)


@compiled()
def linear_alone(me, frames, kind, weights, outputs, inputs, times):
    """Member `me`'s part of one linear, from the frame's x to its wide buffer, `times` times."""
    frame = frames[0]
    for _ in range(times):
        _linear(
            frame, me, kind, weights, outputs, inputs, frame.x, frame.x_stride, AS_IT_IS, 0,
            frame.wide, frame.wide_stride, True,
        )  # fmt: skip


@compiled()
def _attention(frame, me, caches):
    """Self-attention of this member's (slot, key/value head) pairs; wide to mixed."""
    K, heads, groups = frame.head_dim, frame.heads, frame.groups
    positions = carray(longs_at(frame.positions), frame.slots)
    capacities = carray(longs_at(frame.capacities), frame.slots)
    own = frame.scratch + me * frame.scratch_size
    units = frame.slots * groups
    for unit in range(units * me // frame.team, units * (me + 1) // frame.team):
        slot, group = unit // groups, unit % groups
        place, cache = positions[slot], caches[slot]
        line = carray(floats_at(frame.wide + slot * frame.wide_stride), (heads + 2 * groups, K))
        out = carray(floats_at(frame.mixed + slot * frame.mixed_stride), (heads, K))
        cos = carray(floats_at(frame.cos + 4 * K * place), K)
        sin = carray(floats_at(frame.sin + 4 * K * place), K)
        scratch = carray(floats_at(own), K + place + 1)
        start, shape = group * capacities[slot] * K, (place + 1, K)
        if frame.half_cache:
            keys = carray(halves_at(cache.keys + 2 * start), shape)
            values = carray(halves_at(cache.values + 2 * start), shape)
            attend_self(line, group, heads, keys, values, cos, sin, scratch, out)
        else:
            keys32 = carray(floats_at(cache.keys + 4 * start), shape)
            values32 = carray(floats_at(cache.values + 4 * start), shape)
            attend_self(line, group, heads, keys32, values32, cos, sin, scratch, out)
    meet(frame.barrier, frame.team, frame.let_others)


@compiled()
def _text_attention(frame, me, caches):
    """Cross-attention of this member's (slot, key/value head) pairs; wide to mixed."""
    K, heads, groups = frame.cross_dim, frame.cross_heads, frame.cross_groups
    lengths = carray(longs_at(frame.text_lengths), frame.slots)
    own = frame.scratch + me * frame.scratch_size
    units = frame.slots * groups
    for unit in range(units * me // frame.team, units * (me + 1) // frame.team):
        slot, group = unit // groups, unit % groups
        cache, shape = caches[slot], (lengths[slot], K)
        start = group * lengths[slot] * K
        line = carray(floats_at(frame.wide + slot * frame.wide_stride), (heads, K))
        out = carray(floats_at(frame.mixed + slot * frame.mixed_stride), (heads, K))
        scores = carray(floats_at(own), lengths[slot])
        if frame.half_cache:
            keys = carray(halves_at(cache.text_keys + 2 * start), shape)
            values = carray(halves_at(cache.text_values + 2 * start), shape)
            attend_text(line, group, groups, keys, values, scores, out)
        else:
            keys32 = carray(floats_at(cache.text_keys + 4 * start), shape)
            values32 = carray(floats_at(cache.text_values + 4 * start), shape)
            attend_text(line, group, groups, keys32, values32, scores, out)
    meet(frame.barrier, frame.team, frame.let_others)


@compiled()
def decoder_step(me, frames, layers, caches):
    """Member `me`'s part of one step.

    frames: one FRAME; layers: LAYER [layers]; caches: CACHE [layers, slots]. Leaves the logits of
    all slots in the frame's buffer; every slot's keys and values have grown by one position.
    """
    frame = frames[0]
    D, x, x_stride = frame.width, frame.x, frame.x_stride
    wide, wide_stride = frame.wide, frame.wide_stride
    mixed, mixed_stride = frame.mixed, frame.mixed_stride
    own, cross = frame.heads * frame.head_dim, frame.cross_heads * frame.cross_dim
    qkv = own + 2 * frame.groups * frame.head_dim
    hidden = frame.hidden
    _embed(frame, me)
    meet(frame.barrier, frame.team, frame.let_others)
    for index in range(len(layers)):
        at = layers[index]
        _linear(
            frame, me, at.qkv_kind, at.qkv, qkv, D, x, x_stride, NORMED, at.self_norm, wide,
            wide_stride, True,
        )  # fmt: skip
        _attention(frame, me, caches[index])
        _linear(
            frame, me, at.o_kind, at.o, D, own, mixed, mixed_stride, AS_IT_IS, 0, x, x_stride, False
        )
        _linear(
            frame, me, at.cross_q_kind, at.cross_q, cross, D, x, x_stride, NORMED, at.cross_norm,
            wide, wide_stride, True,
        )  # fmt: skip
        _text_attention(frame, me, caches[index])
        _linear(
            frame, me, at.cross_o_kind, at.cross_o, D, cross, mixed, mixed_stride, AS_IT_IS, 0, x,
            x_stride, False,
        )  # fmt: skip
        _linear(
            frame, me, at.gate_up_kind, at.gate_up, 2 * hidden, D, x, x_stride, NORMED, at.mlp_norm,
            wide, wide_stride, True,
        )  # fmt: skip
        _linear(
            frame, me, at.down_kind, at.down, D, hidden, wide, wide_stride, GATED, 0, x, x_stride,
            False,
        )  # fmt: skip
    codes = frame.channels * frame.vocabulary
    _linear(
        frame, me, frame.logits_kind, frame.logits_weights, codes, D, x, x_stride, NORMED,
        frame.norm, frame.logits, frame.logits_stride, True,
    )  # fmt: skip
