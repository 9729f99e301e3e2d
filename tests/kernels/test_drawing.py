"""One code of Dia2 from two halves' logits, as torch draws it step by step."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("numba")

from dia_demo.kernels.frames.drawing import DRAWING, NOT_FINITE, draw_codes
from dia_demo.kernels.sampling import scratch_bytes

pytestmark = pytest.mark.processor


def draw(logits, limit, drawing, uniform) -> int:
    """By the kernel. logits: float32 [slots, vocabulary]."""
    vocabulary = logits.shape[1]
    drawings, out = np.zeros(1, DRAWING), np.zeros(1, np.int64)
    drawings[0] = drawing
    scratch = np.zeros(scratch_bytes(vocabulary), np.uint8)
    logits = logits.contiguous()
    uniforms = np.array([uniform], np.float32)
    draw_codes(
        logits.data_ptr(), 4 * vocabulary, vocabulary, limit, drawings, uniforms,
        scratch.ctypes.data, out,
    )  # fmt: skip
    return int(out[0])


def expected(logits, limit, drawing, uniform) -> int:
    """The same by sorting all codes."""
    cond, uncond, top_k, filter_k, scale, temperature = drawing
    own = logits[cond].clone()
    if cond != uncond:
        guided = torch.lerp(logits[uncond], own, scale)
        least = guided.topk(min(filter_k, len(guided))).values[-1]
        own[guided < least] = -torch.inf
    own[limit:] = -torch.inf
    if temperature == 0:
        return int(own.argmax())
    scores, codes = torch.softmax(own.double() / temperature, 0).sort(descending=True, stable=True)
    cumulative = scores[:top_k].cumsum(0)
    place = int((cumulative <= float(np.float32(uniform)) * cumulative[-1]).sum())
    return int(codes[min(place, top_k - 1)])


def test_codes_are_those_of_sorting_them_all():
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    for _ in range(300):
        vocabulary = int(rng.integers(60, 2051))
        logits = torch.randn(2, vocabulary) * float(rng.choice([0.3, 3, 10]))
        drawing = (
            0, int(rng.integers(0, 2)), int(rng.integers(1, 60)), 50,
            float(rng.choice([0.3, 1.5, 2, 6])), float(rng.choice([0, 0.6, 0.8, 1.2])),
        )  # fmt: skip
        limit, uniform = vocabulary - int(rng.integers(0, 3)), float(rng.random())
        case = logits, limit, drawing, uniform
        assert draw(*case) == expected(*case)


def test_of_equal_logits_the_lower_code_comes_first_and_all_at_the_limit_stay():
    logits = torch.zeros(2, 100)
    codes = [
        draw(logits, 100, (0, 1, 100, 50, 2.0, 1.0), (code + 0.5) / 100) for code in range(100)
    ]
    assert codes == list(range(100))
    assert draw(logits, 100, (0, 1, 100, 50, 2.0, 0.0), 0.9) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("slot", [0, 1])
def test_logits_that_are_not_finite_give_no_code(bad, slot):
    logits = torch.randn(2, 100)
    logits[slot, 70] = bad
    assert draw(logits, 100, (0, 1, 50, 50, 2.0, 1.0), 0.5) == NOT_FINITE


def test_a_row_of_which_guidance_leaves_only_excluded_codes_gets_the_first():
    logits = torch.zeros(2, 100)
    logits[0, 98:] = 5.0
    assert draw(logits, 98, (0, 1, 50, 2, 2.0, 1.0), 0.5) == 0
