"""One decoder step for all slots, from codes to logits, on a pool of threads.

A step is limited by reading the weights, and nothing is read during a call from Python or the start
of a thread. So the whole step is one function that each thread calls once. It runs a list of
operations: each thread computes its share of a linear's blocks or of an attention's heads, and
waits at a barrier after each operation. A norm or an activation is small, so every thread computes
it for itself instead of waiting for it.

A slot is one sequence of the batch: a row has a conditional and, with guidance, an unconditional
one. README.md in this folder has pictures of the weights' layout and of the microkernels.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from dia_demo.kernels.attention import rotate, store_kv
from dia_demo.kernels.intrinsics import (
    barrier_wait,
    bfloat16_at,
    call,
    exp,
    float32_at,
    int64_at,
    sum_of_squares,
    to_float32,
)
from dia_demo.kernels.jit import ANY_ORDER, compiled, inlined
from dia_demo.kernels.matmul.linear import FLOATS, convert_input, linear_share, padded_size

# Addresses and sizes of one step. Widths are in numbers, strides in bytes. Buffers of activations
# are float32 [slots, stride], padded with zeros to whole blocks.
STEP_ARGS = np.dtype(
    [
        (name, np.int64)
        for name in (
            "threads barrier yield_core slots "
            "width heads kv_heads head_dim cross_heads cross_kv_heads cross_head_dim "
            "channels vocabulary "
            "number_size "  # of embeddings, keys and values: 4 float32, 2 bfloat16
            "attend "  # attention.attend_function
            "embeddings cos sin "  # tables
            "codes positions capacities text_lengths "  # of this step: int64 [slots, ...]
            "x x_stride offset offset_stride "
            "qkv_or_gate qkv_or_gate_stride attn_out attn_out_stride "
            "scratch scratch_size "  # bytes of each thread
            "block_counters"  # int64 [operations], all 0: unassigned blocks taken so far
        ).split()
    ]
    + [("eps", np.float32), ("", np.float32)]
)
# One operation of a step. LINEAR: out (+)= the linear of prologue(source); both are buffers of
# [slots, stride]. compute: the function of its blocks, of `block_size` bytes each, and what it
# reads (matmul/linear.py).
OP = np.dtype(
    [
        (name, np.int64)
        for name in (
            "kind layer "
            "compute input_kind block_size weights outputs inputs "
            "source source_stride prologue norm_weight out out_stride overwrite"
        ).split()
    ]
)
EMBED, LINEAR, SELF_ATTENTION, CROSS_ATTENTION = range(4)  # Kinds of operations.
NONE, RMSNORM, SILU_MUL = range(3)  # Prologues: how a linear's input is prepared.
# Addresses of one layer's keys and values of one slot, [kv_heads, capacity, K] each.
CACHE = np.dtype([(name, np.int64) for name in ("keys", "values", "text_keys", "text_values")])


@compiled(fastmath={"contract"}, forceinline=True)
def rms_norm(x, weight, eps, out):
    """out = x over its root mean square, times the weight."""
    mean_square = sum_of_squares(x, np.float32(0)) / np.float32(len(x))
    scale = np.float32(1) / np.sqrt(mean_square + eps)
    for i in range(len(x)):
        out[i] = x[i] * weight[i] * scale


@compiled(fastmath=ANY_ORDER, forceinline=True)
def _silu_mul(gate_up, out):
    """out = silu(gate) * up; gate_up contains gate, then up."""
    count = len(gate_up) // 2
    for i in range(count):
        out[i] = gate_up[i] / (np.float32(1) + exp(-gate_up[i])) * gate_up[count + i]


@compiled(fastmath=ANY_ORDER, forceinline=True)
def add_embedding(table, index, out):
    """Add a row of a table of float32 or bfloat16."""
    for i in range(len(out)):
        out[i] += to_float32(table[index, i])


@inlined
def _embed(args, thread_index):
    """x = offset + sum of the codes' embeddings, for this thread's share of the slots."""
    width, count = args.width, args.channels
    codes = carray(int64_at(args.codes), (args.slots, count))
    shape = (count * args.vocabulary, width)
    for slot in range(thread_index, args.slots, args.threads):
        x = carray(float32_at(args.x + slot * args.x_stride), width)
        offset = carray(float32_at(args.offset + slot * args.offset_stride), width)
        for i in range(width):
            x[i] = offset[i]
        for channel in range(count):
            index = channel * args.vocabulary + codes[slot, channel]
            if args.number_size == 2:
                add_embedding(carray(bfloat16_at(args.embeddings), shape), index, x)
            else:
                add_embedding(carray(float32_at(args.embeddings), shape), index, x)


@inlined
def _run_prologue(args, op, scratch):
    """Write this thread's copy of a linear's input, padded to whole groups, to `scratch`."""
    count = op.inputs
    whole = padded_size(count)
    for slot in range(args.slots):
        out = carray(float32_at(scratch + 4 * whole * slot), whole)
        address = op.source + op.source_stride * slot
        source = carray(float32_at(address), 2 * count if op.prologue == SILU_MUL else count)
        if op.prologue == NONE:
            for i in range(count):
                out[i] = source[i]
        elif op.prologue == RMSNORM:
            rms_norm(source, carray(float32_at(op.norm_weight), count), args.eps, out)
        else:
            _silu_mul(source, out)
        for i in range(count, whole):
            out[i] = np.float32(0)


@inlined
def linear(args, thread_index, op, block_counter):
    """One linear: the blocks that this thread computes."""
    x, x_stride = args.scratch + thread_index * args.scratch_size, 4 * padded_size(op.inputs)
    _run_prologue(args, op, x)
    if op.input_kind != FLOATS:
        floats, x = x, x + x_stride * args.slots
        x_stride = convert_input(op.input_kind, floats, x_stride, op.inputs, args.slots, x)
    linear_share(args, op, x, x_stride, thread_index, block_counter)


@inlined
def _self_attention(args, thread_index, caches):
    """Self-attention of this thread's (slot, kv head) pairs, from qkv_or_gate to attn_out."""
    K, heads, kv_heads = args.head_dim, args.heads, args.kv_heads
    queries, size = heads // kv_heads, args.number_size
    positions = carray(int64_at(args.positions), args.slots)
    capacities = carray(int64_at(args.capacities), args.slots)
    scratch = args.scratch + thread_index * args.scratch_size
    rotated = carray(float32_at(scratch), (queries, K))
    pairs = args.slots * kv_heads
    for pair in range(
        pairs * thread_index // args.threads, pairs * (thread_index + 1) // args.threads
    ):
        slot, kv_head = pair // kv_heads, pair % kv_heads
        position, cache = positions[slot], caches[slot]
        qkv = carray(
            float32_at(args.qkv_or_gate + slot * args.qkv_or_gate_stride), (heads + 2 * kv_heads, K)
        )
        cos = carray(float32_at(args.cos + 4 * K * position), K)
        sin = carray(float32_at(args.sin + 4 * K * position), K)
        start = size * kv_head * capacities[slot] * K
        keys, values = cache.keys + start, cache.values + start
        rotate(qkv[heads + kv_head], cos, sin, rotated[0])
        store_kv(size, rotated[0], keys + size * position * K)
        store_kv(size, qkv[heads + kv_heads + kv_head], values + size * position * K)
        for query in range(queries):
            rotate(qkv[kv_head * queries + query], cos, sin, rotated[query])
        out = args.attn_out + slot * args.attn_out_stride + 4 * K * kv_head * queries
        scores = scratch + 4 * queries * K
        call(args.attend, (scratch, queries, K, keys, values, position + 1, scores, out))


@inlined
def _cross_attention(args, thread_index, caches):
    """Cross-attention of this thread's (slot, kv head) pairs, from qkv_or_gate to attn_out."""
    K, kv_heads = args.cross_head_dim, args.cross_kv_heads
    queries, size = args.cross_heads // kv_heads, args.number_size
    lengths = carray(int64_at(args.text_lengths), args.slots)
    scratch = args.scratch + thread_index * args.scratch_size
    pairs = args.slots * kv_heads
    for pair in range(
        pairs * thread_index // args.threads, pairs * (thread_index + 1) // args.threads
    ):
        slot, kv_head = pair // kv_heads, pair % kv_heads
        cache, count = caches[slot], lengths[slot]
        start, first = size * kv_head * count * K, 4 * K * kv_head * queries
        keys, values = cache.text_keys + start, cache.text_values + start
        q = args.qkv_or_gate + slot * args.qkv_or_gate_stride + first
        out = args.attn_out + slot * args.attn_out_stride + first
        call(args.attend, (q, queries, K, keys, values, count, scratch, out))


@compiled()
def run_ops(thread_index, step_args, ops, caches):
    """Run one thread's share of a step's operations, with a barrier after each.

    step_args: STEP_ARGS [1], its block_counters all 0; ops: OP [operations]; caches: CACHE [layers,
    slots]. Keys and values of every slot grow by one position.
    """
    args = step_args[0]
    for index in range(len(ops)):
        op = ops[index]
        if op.kind == EMBED:
            _embed(args, thread_index)
        elif op.kind == LINEAR:
            linear(args, thread_index, op, args.block_counters + 8 * index)
        elif op.kind == SELF_ATTENTION:
            _self_attention(args, thread_index, caches[op.layer])
        else:
            _cross_attention(args, thread_index, caches[op.layer])
        barrier_wait(args.barrier, args.threads, args.yield_core)
