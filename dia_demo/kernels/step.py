"""One decoder step for all slots, from codes to logits, by a team of threads.

A step is bound by reading the weights, and every call from Python and every start of a thread is
time in which nothing is read. So the whole step is one function that each member of the team calls
once: it takes its share of every linear's blocks and of every attention's heads, and meets the
others where one part needs all of the one before. What is small, a norm or the activation, each
member computes for itself rather than wait.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import carray

from dia_demo.kernels.attention import attend, keep, rotate
from dia_demo.kernels.formats import FLOAT32
from dia_demo.kernels.jit import ANY_ORDER, compiled, inlined
from dia_demo.kernels.linear import padded, project, shrink
from dia_demo.kernels.scalars import exp, floats_at, halves_at, longs_at, meet, to_float

# Addresses and sizes of one step. Widths are in numbers, strides in bytes. Buffers of activations
# are float32 [slots, stride], filled up with zeros to whole blocks.
FRAME = np.dtype(
    [
        (name, np.int64)
        for name in (
            "team barrier let_others slots "  # who computes, and how
            "width heads groups head_dim cross_heads cross_groups cross_dim "
            "channels vocabulary "
            "embeddings cos sin "  # tables
            "codes positions capacities text_lengths "  # of this step: int64 [slots, ...]
            "x x_stride wide wide_stride mixed mixed_stride "
            "scratch scratch_size "  # of each member: bytes
            "claims"  # int64 [parts], all 0: blocks of each part that were given away
        ).split()
    ]
    + [("eps", np.float32), ("", np.float32)]
)
# One part of a step. LINEAR: out (+)= the linear of the prepared source, both [slots, stride].
PART = np.dtype(
    [
        (name, np.int64)
        for name in (
            "what layer "
            "kind weights outputs inputs source source_stride how norm out out_stride fresh"
        ).split()
    ]
)
EMBED, LINEAR, SELF_ATTENTION, TEXT_ATTENTION = range(4)  # What a part does.
AS_IT_IS, NORMED, GATED = range(3)  # How a linear's input is prepared.
# Of one layer and slot: addresses of keys and values, [groups, capacity, K] each.
CACHE = np.dtype([(name, np.int64) for name in ("keys", "values", "text_keys", "text_values")])


@compiled(fastmath=ANY_ORDER)
def _norm(x, weight, eps, out):
    total = np.float32(0)
    for i in range(len(x)):
        total += x[i] * x[i]
    scale = np.float32(1) / np.sqrt(total / np.float32(len(x)) + eps)
    for i in range(len(x)):
        out[i] = x[i] * scale * weight[i]


@compiled(fastmath=ANY_ORDER)
def _gate(wide, out):
    """silu(gate) * up; wide holds gate, then up."""
    count = len(wide) // 2
    for i in range(count):
        out[i] = wide[i] / (np.float32(1) + exp(-wide[i])) * wide[count + i]


@compiled(fastmath=ANY_ORDER)
def _add(table, row, out):
    for i in range(len(out)):
        out[i] += to_float(table[row, i])


@inlined
def _embed(frame, me, half):
    """x = the sum of the codes' embeddings, for this member's part of the slots' widths."""
    width, count = frame.width, frame.channels
    codes = carray(longs_at(frame.codes), (frame.slots, count))
    shape = (count * frame.vocabulary, width)
    for slot in range(me, frame.slots, frame.team):
        x = carray(floats_at(frame.x + slot * frame.x_stride), width)
        for i in range(width):
            x[i] = np.float32(0)
        for channel in range(count):
            row = channel * frame.vocabulary + codes[slot, channel]
            if half:
                _add(carray(halves_at(frame.embeddings), shape), row, x)
            else:
                _add(carray(floats_at(frame.embeddings), shape), row, x)


@inlined
def _prepare(frame, part, own):
    """This member's copy of a linear's input, with zeros up to whole groups, at `own`."""
    count = part.inputs
    whole = padded(count)
    for slot in range(frame.slots):
        out = carray(floats_at(own + 4 * whole * slot), whole)
        source = part.source + part.source_stride * slot
        given = carray(floats_at(source), 2 * count if part.how == GATED else count)
        if part.how == AS_IT_IS:
            for i in range(count):
                out[i] = given[i]
        elif part.how == NORMED:
            _norm(given, carray(floats_at(part.norm), count), frame.eps, out)
        else:
            _gate(given, out)
        for i in range(count, whole):
            out[i] = np.float32(0)


@inlined
def _linear(frame, me, part, claims, precision, use_dot):
    """This member's blocks of one linear."""
    own, stride = frame.scratch + me * frame.scratch_size, 4 * padded(part.inputs)
    _prepare(frame, part, own)
    small = own + stride * frame.slots
    if use_dot:
        shrink(precision, own, stride, part.inputs, frame.slots, small)
    project(
        precision, use_dot, part.kind, part.weights, part.outputs, part.inputs, own, stride, small,
        frame.slots, part.out, part.out_stride, part.fresh, me, frame.team, claims,
    )  # fmt: skip


@inlined
def _attention(frame, me, caches, half):
    """Self-attention of this member's (slot, key/value head) pairs; wide to mixed."""
    K, heads, groups = frame.head_dim, frame.heads, frame.groups
    share, size = heads // groups, 2 if half else 4
    positions = carray(longs_at(frame.positions), frame.slots)
    capacities = carray(longs_at(frame.capacities), frame.slots)
    own = frame.scratch + me * frame.scratch_size
    turned = carray(floats_at(own), (share, K))
    units = frame.slots * groups
    for unit in range(units * me // frame.team, units * (me + 1) // frame.team):
        slot, group = unit // groups, unit % groups
        place, cache = positions[slot], caches[slot]
        line = carray(floats_at(frame.wide + slot * frame.wide_stride), (heads + 2 * groups, K))
        cos = carray(floats_at(frame.cos + 4 * K * place), K)
        sin = carray(floats_at(frame.sin + 4 * K * place), K)
        start = size * group * capacities[slot] * K
        keys, values = cache.keys + start, cache.values + start
        rotate(line[heads + group], cos, sin, turned[0])
        keep(half, turned[0], keys + size * place * K)
        keep(half, line[heads + groups + group], values + size * place * K)
        for head in range(share):
            rotate(line[group * share + head], cos, sin, turned[head])
        out = frame.mixed + slot * frame.mixed_stride + 4 * K * group * share
        attend(half, own, share, K, keys, values, place + 1, own + 4 * share * K, out)


@inlined
def _text_attention(frame, me, caches, half):
    """Cross-attention of this member's (slot, key/value head) pairs; wide to mixed."""
    K, groups = frame.cross_dim, frame.cross_groups
    share, size = frame.cross_heads // groups, 2 if half else 4
    lengths = carray(longs_at(frame.text_lengths), frame.slots)
    own = frame.scratch + me * frame.scratch_size
    units = frame.slots * groups
    for unit in range(units * me // frame.team, units * (me + 1) // frame.team):
        slot, group = unit // groups, unit % groups
        cache, count = caches[slot], lengths[slot]
        start, first = size * group * count * K, 4 * K * group * share
        keys, values = cache.text_keys + start, cache.text_values + start
        q = frame.wide + slot * frame.wide_stride + first
        out = frame.mixed + slot * frame.mixed_stride + first
        attend(half, q, share, K, keys, values, count, own, out)


@cache
def step_function(precision: int, use_dot: bool) -> Callable:
    """The function that every member of a team calls for a step, compiled at its first call.

    precision: the format of the decoder's linears (int4's logits may be INT8), which float32 caches
    and embeddings go with where it is FLOAT32, bfloat16 ones else; use_dot: the route of its
    products (tiles.py). Both are constants of the function: what a decoder does not need is not
    compiled for it, which is most of a first start.
    """
    half = precision != FLOAT32

    @compiled()
    def run_parts(me, frames, parts, caches):
        """Member `me`'s share of a step's parts, one after another; all meet after each.

        frames: one FRAME, its claims all 0; parts: PART [parts]; caches: CACHE [layers, slots].
        Every slot's keys and values grow by one position.
        """
        frame = frames[0]
        for index in range(len(parts)):
            part = parts[index]
            if part.what == EMBED:
                _embed(frame, me, half)
            elif part.what == LINEAR:
                _linear(frame, me, part, frame.claims + 8 * index, precision, use_dot)
            elif part.what == SELF_ATTENTION:
                _attention(frame, me, caches[part.layer], half)
            else:
                _text_attention(frame, me, caches[part.layer], half)
            meet(frame.barrier, frame.team, frame.let_others)

    return run_parts
