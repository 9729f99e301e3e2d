"""Sampling in one call, for all rows and channels: see engine/sampling.py.

Its arrays are so small that as separate operations they take longer to call than to compute. Every
channel of a row is sampled by itself: a bisection finds the top k, comparing all with all sorts
them, and the uniform inverts their cumulative probabilities. Both have few branches that depend on
the logits: a heap took three times as long, mostly for branches that were predicted wrongly.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from dia_demo.kernels.intrinsics import float32_at, int64_at
from dia_demo.kernels.jit import compiled, inlined

INT, ZERO, HALF = np.int32, np.float32(0), np.float32(0.5)


def scratch_bytes(vocabulary: int) -> int:
    """Of one code after another: three float32 and two int64 for each, and for two more."""
    return 28 * (vocabulary + 2)


@inlined
def scratch_arrays(scratch, vocabulary):
    """Its arrays: codes, sorted codes, guided logits, keys, sorted keys."""
    space = vocabulary + 2
    return (
        carray(int64_at(scratch), space),
        carray(int64_at(scratch + 8 * space), space),
        carray(float32_at(scratch + 16 * space), vocabulary),
        carray(float32_at(scratch + 20 * space), space),
        carray(float32_at(scratch + 24 * space), space),
    )


@inlined
def is_finite(numbers):
    """Whether all numbers are."""
    count = INT(0)
    for i in range(len(numbers)):
        count += INT(numbers[i] - numbers[i] == ZERO)
    return count == len(numbers)


@inlined
def _count_from(numbers, limit):
    """How many are at least `limit`."""
    count = INT(0)
    for i in range(len(numbers)):
        count += INT(numbers[i] >= limit)
    return count


@inlined
def _is_highest(numbers, place):
    """Whether the number there is more than all before it."""
    count = INT(0)
    for i in range(place):
        count += INT(numbers[i] >= numbers[place])
    return count == 0


@inlined
def limit_of_top(numbers, top_k):
    """The least of the `top_k` largest numbers, or a number between it and the next one."""
    limit, beyond = numbers[0], numbers[0]
    for i in range(len(numbers)):
        limit, beyond = min(limit, numbers[i]), max(beyond, numbers[i])
    if top_k == len(numbers):
        beyond = limit
    elif _count_from(numbers, beyond) >= top_k:
        limit = beyond
    middle = HALF * limit + HALF * beyond
    while limit < middle < beyond:  # At least top_k reach `limit`, fewer reach `beyond`.
        count = _count_from(numbers, middle)
        if count < top_k:
            beyond = middle
        else:
            limit = middle
            if count == top_k:
                beyond = limit
        middle = HALF * limit + HALF * beyond
    return limit


@inlined
def _top(numbers, top_k, codes):
    """Write the places of the `top_k` largest numbers, in order; of equal ones the first. The
    place after them in `codes` is overwritten, too."""
    limit = limit_of_top(numbers, top_k)
    equal = top_k
    for i in range(len(numbers)):
        equal -= INT(numbers[i] > limit)
    count = 0
    for i in range(len(numbers)):
        codes[count] = i
        is_equal = numbers[i] == limit and equal > 0
        equal -= is_equal
        count += is_equal or numbers[i] > limit


@inlined
def sort_codes(keys, codes, count, sorted_keys, sorted_codes):
    """The largest first; of equal keys the first."""
    for i in range(count):
        place = INT(0)
        for j in range(count):
            place += INT(keys[j] > keys[i])
        for j in range(i):
            place += INT(keys[j] == keys[i])
        sorted_keys[place], sorted_codes[place] = keys[i], codes[i]


@inlined
def _remove_code(code, keys, codes, count):
    """Take a code out of `count` ones, if it is there; how many are left."""
    left = 0
    for i in range(count):
        keys[left], codes[left] = keys[i], codes[i]
        left += codes[i] != code
    return left


@inlined
def draw_place(scores, count, temperature, top_p, uniform):
    """The place that a uniform draws among logits in descending order; they are overwritten.

    Only the smallest set of codes whose probability reaches top p is drawn from. Sums are float64,
    so that a uniform just below 1 cannot round into a code of probability 0."""
    highest, total = scores[0] / temperature, ZERO
    for i in range(count):
        scores[i] = np.exp(scores[i] / temperature - highest)
        total += scores[i]
    before, cumulative = ZERO, 0.0
    for i in range(count):
        probability = scores[i] / total
        scores[i] = probability if before < top_p else ZERO
        before += probability
        cumulative += scores[i]
    target = np.float64(uniform) * cumulative
    cumulative, drawn = 0.0, 0
    for i in range(count):
        if cumulative <= target and scores[i] > ZERO:
            drawn = i
        cumulative += scores[i]
    return drawn


@compiled()
def sample(
    logits, slot_bytes, cond, uncond, uniforms, temperature, cfg_scale, top_p, top_k, eos,
    vocabulary, scratch, out,
):  # fmt: skip
    """out [R, C] = the next codes, int64; -1 in a row whose logits are not all finite.

    logits: the address of float32 [slots, C, V], with `slot_bytes` from slot to slot. cond and
    uncond: each row's slots, int64 [R]. uniforms: float32 [R, C]. temperature (0: take the most
    likely code), cfg_scale and top_p: float32 [R]. top_k: int64 [R]. scratch: the address of
    `scratch_bytes`, zeros at first, so that no place is ever an address beyond the logits.
    """
    rows, channels = out.shape
    codes, sorted_codes, guided, keys, sorted_keys = scratch_arrays(scratch, vocabulary)
    for row in range(rows):
        scale = cfg_scale[row]
        for channel in range(channels):
            first = logits + 4 * vocabulary * channel
            own = carray(float32_at(first + slot_bytes * cond[row]), vocabulary)
            other = carray(float32_at(first + slot_bytes * uncond[row]), vocabulary)
            if not (is_finite(own) and is_finite(other)):
                out[row] = -1
                break
            for code in range(vocabulary):
                guided[code] = own[code] + scale * (own[code] - other[code])
            limit = eos + 1 if channel == 0 else eos
            eligible = vocabulary if scale != 0 else limit
            if scale == 0 and channel == 0 and not _is_highest(guided, eos):
                eligible -= 1  # EOS, the last of them.
            kept = min(top_k[row], eligible)
            _top(guided[:eligible], kept, codes)
            count = 0
            for i in range(kept):
                if codes[i] < limit:
                    keys[count], codes[count] = own[codes[i]], codes[i]
                    count += 1
            sort_codes(keys, codes, count, sorted_keys, sorted_codes)
            if count == 0:
                out[row, channel] = 0
            elif sorted_codes[0] == eos or temperature[row] == 0:
                out[row, channel] = sorted_codes[0]
            else:
                count = _remove_code(eos, sorted_keys, sorted_codes, count)
                place = draw_place(
                    sorted_keys, count, temperature[row], top_p[row], uniforms[row, channel]
                )
                out[row, channel] = sorted_codes[place]
