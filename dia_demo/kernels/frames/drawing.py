"""Drawing one code of Dia2 from the logits of a row's halves.

Guidance decides which codes may be drawn: those whose guided logit is at least the `filter_k`-th
largest. The logits with the text decide how likely these are; the `top_k` most likely ones remain.
Of equal logits the lower code comes first, and the uniform inverts the cumulative probabilities in
this order (nari-labs/dia2, runtime/guidance.py and sampler.py, which leaves both to torch).
"""

from __future__ import annotations

import numpy as np
from numba import carray

from dia_demo.kernels.intrinsics import float32_at
from dia_demo.kernels.jit import compiled, inlined
from dia_demo.kernels.sampling import (
    draw_place,
    is_finite,
    limit_of_top,
    scratch_arrays,
    sort_codes,
)

# How one row draws. cond, uncond: its slots, which follow each other, or are the same without
# guidance. scale: 1 is no guidance. temperature: 0 takes the most likely code.
DRAWING = np.dtype(
    [(name, np.int64) for name in "cond uncond top_k filter_k".split()]
    + [("scale", np.float32), ("temperature", np.float32)]
)
# The code of a row whose logits are not all finite.
NOT_FINITE = -1
# More than every cumulative probability: Dia2 has no top p.
ALL = np.float32(2)


@inlined
def _guide(own, other, scale, guided):
    """Interpolate as torch.lerp does."""
    for i in range(len(own)):
        difference = own[i] - other[i]
        if scale < np.float32(0.5):
            guided[i] = other[i] + scale * difference
        else:
            guided[i] = own[i] - difference * (np.float32(1) - scale)


@compiled()
def draw_code(logits, stride, vocabulary, limit, drawing, uniform, scratch):
    """A row's next code; NOT_FINITE if its logits are not all finite.

    logits: the address of float32 [slots, vocabulary], with `stride` bytes from slot to slot. Only
    codes below `limit` are drawn; the others take part in the guidance. scratch: an address.
    """
    codes, sorted_codes, guided, keys, sorted_keys = scratch_arrays(scratch, vocabulary)
    own = carray(float32_at(logits + stride * drawing.cond), vocabulary)
    other = carray(float32_at(logits + stride * drawing.uncond), vocabulary)
    if not (is_finite(own) and is_finite(other)):
        return NOT_FINITE
    if drawing.cond == drawing.uncond:  # Codes that are not drawn do not count in the top k.
        size, wanted = limit, drawing.top_k
        for i in range(size):
            guided[i] = own[i]
    else:
        size, wanted = vocabulary, drawing.filter_k
        _guide(own, other, drawing.scale, guided)
    least = limit_of_top(guided[:size], min(wanted, size))
    count = 0
    for i in range(limit):
        keys[count], codes[count] = own[i], i
        count += guided[i] >= least
    if count == 0:
        return 0
    sort_codes(keys, codes, count, sorted_keys, sorted_codes)
    if drawing.temperature == 0:
        return sorted_codes[0]
    count = min(count, drawing.top_k)
    place = draw_place(sorted_keys, count, drawing.temperature, ALL, uniform)
    return sorted_codes[place]


@compiled()
def draw_codes(logits, stride, vocabulary, limit, drawings, uniforms, scratch, out):
    """out [rows] = the next code of every row: see `draw_code`. drawings: DRAWING [rows]; uniforms:
    float32 [rows]."""
    for row in range(len(drawings)):
        out[row] = draw_code(
            logits, stride, vocabulary, limit, drawings[row], uniforms[row], scratch
        )
