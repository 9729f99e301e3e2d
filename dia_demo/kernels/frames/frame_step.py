"""The two parts of a frame of Dia2, each as one call of the pool.

The temporal part is a step as Dia's (kernels/decoder_step.py), with text that comes in two streams
and a norm of every query and key. The depth part draws the codes of all further codebooks one after
another: each of its stages ends with drawing a code, whose embedding is the next stage's input, so
nothing returns to Python between stages.

A slot is one sequence: a row has a conditional one and, with guidance, an unconditional one.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from dia_demo.kernels.attention import rotate, store_kv
from dia_demo.kernels.decoder_step import LINEAR, OP, add_embedding, linear, rms_norm
from dia_demo.kernels.frames.drawing import draw_code
from dia_demo.kernels.intrinsics import (
    barrier_wait,
    bfloat16_at,
    call,
    float32_at,
    int64_at,
)
from dia_demo.kernels.jit import compiled, inlined

# Addresses and sizes of a part of a frame. Widths are in numbers, strides in bytes; buffers of
# activations are float32 [slots, stride], padded with zeros to whole blocks.
FRAME_ARGS = np.dtype(
    [
        (name, np.int64)
        for name in (
            "threads barrier yield_core slots rows "
            "width heads kv_heads head_dim "
            "number_size attend "  # as in STEP_ARGS
            "cos sin "  # 0: queries and keys are not rotated
            # int64 [slots]: the angle of the rotation, the place in the cache and its size.
            "positions lengths capacities "
            "x x_stride qkv qkv_stride attn_out attn_out_stride "
            # Of the temporal part: its input, int64 [slots, 2] and [slots, channels], the address
            # of every channel's embeddings, int64 [channels], and the embeddings of the text, which
            # are copied to `text` [slots, 2, text_stride]; text_pad: no second token.
            "tokens codes channels embeddings text_embeddings text_width text_pad "
            "text text_stride "
            # Of the depth part: float32 [rows, stages], and int64 [rows, stages + 1] with the codes
            # of codebook 0 in the first column; the logits of a stage.
            "uniforms stages drawn logits logits_stride vocabulary "
            "scratch scratch_size "  # bytes of each thread
            "block_counters"  # int64 [operations], all 0
        ).split()
    ]
    + [("eps", np.float32), ("", np.float32)]
)
# An operation: of a linear as in a step. position: the stage of the depth part; -1: that of the
# slots. query_norm, key_norm: addresses of the weights of an attention's norms.
FRAME_OP = np.dtype(
    [*OP.descr, *((name, np.int64) for name in ("position", "query_norm", "key_norm"))]
)
# Kinds of operations beside LINEAR. NORM: out = source, normed. START: the input of the first
# stage, with the code that is drawn already; DRAW: a stage's code, and the input of the next one.
FRAME_EMBED, ATTENTION, NORM, START, DRAW = range(LINEAR + 1, LINEAR + 6)


@inlined
def _embed(args, thread_index):
    """x = the codes' embeddings, text = those of both streams, for this thread's slots."""
    channels, width, text_width = args.channels, args.width, args.text_width
    tokens = carray(int64_at(args.tokens), (args.slots, 2))
    codes = carray(int64_at(args.codes), (args.slots, channels))
    tables = carray(int64_at(args.embeddings), channels)
    for slot in range(thread_index, args.slots, args.threads):
        x = carray(float32_at(args.x + slot * args.x_stride), width)
        x[:] = np.float32(0)
        for channel in range(channels):
            _add_row(args.number_size, tables[channel], codes[slot, channel], x)
        for stream in range(2):
            place = args.text + (2 * slot + stream) * args.text_stride
            text = carray(float32_at(place), text_width)
            text[:] = np.float32(0)
            if stream == 0 or tokens[slot, 1] != args.text_pad:
                _add_row(args.number_size, args.text_embeddings, tokens[slot, stream], text)


@inlined
def _add_row(number_size, table, row, out):
    """Add a row of the embeddings at an address."""
    width = len(out)
    if number_size == 2:
        add_embedding(carray(bfloat16_at(table + 2 * width * row), (1, width)), 0, out)
    else:
        add_embedding(carray(float32_at(table + 4 * width * row), (1, width)), 0, out)


@inlined
def _attention(args, thread_index, op, caches):
    """Attention of this thread's (slot, kv head) pairs, from qkv to attn_out."""
    K, heads, kv_heads = args.head_dim, args.heads, args.kv_heads
    queries, size = heads // kv_heads, args.number_size
    positions = carray(int64_at(args.positions), args.slots)
    lengths = carray(int64_at(args.lengths), args.slots)
    capacities = carray(int64_at(args.capacities), args.slots)
    query_norm = carray(float32_at(op.query_norm), K)
    key_norm = carray(float32_at(op.key_norm), K)
    scratch = args.scratch + thread_index * args.scratch_size
    prepared = carray(float32_at(scratch), (queries, K))
    normed = carray(float32_at(scratch + 4 * queries * K), K)
    pairs = args.slots * kv_heads
    for pair in range(
        pairs * thread_index // args.threads, pairs * (thread_index + 1) // args.threads
    ):
        slot, kv_head = pair // kv_heads, pair % kv_heads
        position = op.position if op.position >= 0 else positions[slot]
        length = op.position if op.position >= 0 else lengths[slot]
        qkv = carray(float32_at(args.qkv + slot * args.qkv_stride), (heads + 2 * kv_heads, K))
        start = size * kv_head * capacities[slot] * K
        keys, values = caches[slot].keys + start, caches[slot].values + start
        _prepare(args, qkv[heads + kv_head], key_norm, position, normed, prepared[0])
        store_kv(size, prepared[0], keys + size * length * K)
        store_kv(size, qkv[heads + kv_heads + kv_head], values + size * length * K)
        for query in range(queries):
            head = qkv[kv_head * queries + query]
            _prepare(args, head, query_norm, position, normed, prepared[query])
        out = args.attn_out + slot * args.attn_out_stride + 4 * K * kv_head * queries
        scores = scratch + 4 * (queries + 1) * K
        call(args.attend, (scratch, queries, K, keys, values, length + 1, scores, out))


@inlined
def _prepare(args, head, weight, position, normed, out):
    """A query or key: normed, and rotated to its position."""
    K = args.head_dim
    if args.cos == 0:
        rms_norm(head, weight, args.eps, out)
    else:
        rms_norm(head, weight, args.eps, normed)
        cos = carray(float32_at(args.cos + 4 * K * position), K)
        sin = carray(float32_at(args.sin + 4 * K * position), K)
        rotate(normed, cos, sin, out)


@inlined
def _norm(args, thread_index, op):
    """op.out = op.source normed, for this thread's slots."""
    weight = carray(float32_at(op.norm_weight), op.inputs)
    for slot in range(thread_index, args.slots, args.threads):
        source = carray(float32_at(op.source + slot * op.source_stride), op.inputs)
        out = carray(float32_at(op.out + slot * op.out_stride), op.inputs)
        rms_norm(source, weight, args.eps, out)


@inlined
def _next_stage(args, thread_index, op, drawings):
    """Draw this thread's rows' codes from the logits, and add their embeddings to op.source: the
    input of the next stage. START's op draws nothing, the last DRAW's has no source."""
    uniforms = carray(float32_at(args.uniforms), (args.rows, args.stages))
    drawn = carray(int64_at(args.drawn), (args.rows, args.stages + 1))
    for row in range(thread_index, args.rows, args.threads):
        drawing = drawings[row]
        if op.kind == DRAW:
            scratch = args.scratch + thread_index * args.scratch_size
            uniform = uniforms[row, op.position]
            size = args.vocabulary
            code = draw_code(args.logits, args.logits_stride, size, size, drawing, uniform, scratch)
            drawn[row, op.position + 1] = code
        else:
            code = drawn[row, 0]
        if op.source != 0:
            for slot in range(drawing.cond, drawing.uncond + 1):
                x = carray(float32_at(args.x + slot * args.x_stride), args.width)
                source = carray(float32_at(op.source + slot * op.source_stride), args.width)
                for i in range(args.width):
                    x[i] = source[i]
                _add_row(args.number_size, op.weights, max(code, 0), x)


@compiled()
def run_part(thread_index, frame_args, ops, caches, drawings):
    """Run one thread's share of a part's operations, with a barrier after each.

    frame_args: FRAME_ARGS [1], its block_counters all 0; ops: FRAME_OP [operations]; caches: CACHE
    [layers, slots]; drawings: DRAWING [rows].
    """
    args = frame_args[0]
    for index in range(len(ops)):
        op = ops[index]
        if op.kind == LINEAR:
            linear(args, thread_index, op, args.block_counters + 8 * index)
        elif op.kind == ATTENTION:
            _attention(args, thread_index, op, caches[op.layer])
        elif op.kind == FRAME_EMBED:
            _embed(args, thread_index)
        elif op.kind == NORM:
            _norm(args, thread_index, op)
        else:
            _next_stage(args, thread_index, op, drawings)
        barrier_wait(args.barrier, args.threads, args.yield_core)
