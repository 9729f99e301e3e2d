"""Attention of a few heads of one slot over what is filled of its cache.

Keys and values are float32, or bfloat16 as uint16; everything else is float32.
"""

from __future__ import annotations

import numpy as np

from dia_demo.kernels.jit import ANY_ORDER, compiled
from dia_demo.kernels.scalars import exp, like, to_float


@compiled(fastmath=ANY_ORDER)
def attend(q, keys, values, scores, out):
    """out [K] = softmax(keys [S, K] @ q [K]) @ values [S, K]; Dia has no scale. scores [>= S]."""
    count, width = keys.shape
    best = np.float32(-1e30)
    for s in range(count):
        total = np.float32(0)
        for i in range(width):
            total += q[i] * to_float(keys[s, i])
        scores[s] = total
        best = max(best, total)
    whole = np.float32(0)
    for s in range(count):
        scores[s] = exp(scores[s] - best)
        whole += scores[s]
    for i in range(width):
        out[i] = np.float32(0)
    for s in range(count):
        share = scores[s] / whole
        for i in range(width):
            out[i] += share * to_float(values[s, i])


@compiled(fastmath=ANY_ORDER)
def _rotate(x, cos, sin, out):
    """Rotary positions: a head's first half against its second; the sines carry the signs."""
    half = len(x) // 2
    for i in range(half):
        out[i] = x[i] * cos[i] + x[half + i] * sin[i]
        out[half + i] = x[half + i] * cos[half + i] + x[i] * sin[half + i]


@compiled()
def attend_self(line, group, heads, keys, values, cos, sin, scratch, out):
    """Key/value head `group` of one slot: append its newest, then the query heads that share it.

    line [heads + 2 groups, K]: the slot's q, k and v; keys, values [positions so far, K], the last
    of them not yet written; scratch [K + positions]; out [heads, K].
    """
    place, width = keys.shape[0] - 1, keys.shape[1]
    groups = (len(line) - heads) // 2
    turned, scores = scratch[:width], scratch[width:]
    _rotate(line[heads + group], cos, sin, turned)
    value = line[heads + groups + group]
    for i in range(width):
        keys[place, i] = like(keys[place, i], turned[i])
        values[place, i] = like(values[place, i], value[i])
    share = heads // groups
    for head in range(group * share, (group + 1) * share):
        _rotate(line[head], cos, sin, turned)
        attend(turned, keys, values, scores, out[head])


@compiled()
def attend_text(line, group, groups, keys, values, scores, out):
    """The query heads, of line [heads, K], that share key/value head `group`; out [heads, K]."""
    share = len(line) // groups
    for head in range(group * share, (group + 1) * share):
        attend(line[head], keys, values, scores, out[head])
