"""From two branches' logits to one code, as Dia2 draws actions and codes.

The steps and their order are those of nari-labs/dia2 (runtime/guidance.py and sampler.py): guidance
decides which codes may be drawn, the conditional logits how likely they are. The uniform inverts
the cumulative probabilities from the most to the least likely code, so that one list of uniforms
gives the same codes here, in compiled kernels, and in upstream with its multinomial replaced.
"""

from __future__ import annotations

import numpy as np

from dia_demo.model.dia2.config import GUIDANCE_TOP
from dia_demo.model.dia2.interface import Drawing

# The code of a row whose logits are not all finite.
NOT_FINITE = -1


def draw(
    logits: np.ndarray, drawing: Drawing, uniform: float, excluded: tuple[int, ...] = ()
) -> int:
    """A code from float32 logits [branches, V]; NOT_FINITE where they are not all finite.

    excluded: codes that are excluded after the guidance, so that they still count there.
    """
    if not np.isfinite(logits).all():
        return NOT_FINITE
    conditional = logits[0]
    if len(logits) == 2:
        conditional = np.where(
            _guidance_mask(logits[0], logits[1], drawing.cfg_scale), conditional, -np.inf
        )
    if excluded:
        conditional = conditional.copy()
        conditional[list(excluded)] = -np.inf
    order = np.argsort(-conditional, kind="stable")[: drawing.top_k]
    if drawing.temperature == 0 or conditional[order[0]] == -np.inf:
        return int(order[0])
    scores = conditional[order]
    likely = np.exp((scores - scores[0]) / np.float32(drawing.temperature)).astype(np.float64)
    cumulative = np.cumsum(likely)
    place = np.searchsorted(cumulative, uniform * cumulative[-1], side="right")
    return int(order[min(place, np.flatnonzero(likely)[-1])])


def _guidance_mask(cond: np.ndarray, uncond: np.ndarray, scale: float) -> np.ndarray:
    """Which codes guidance allows, bool [V]: those whose guided logits are among the largest. The
    order of the operations is that of torch.lerp, because equal logits decide about a code."""
    weight, difference = np.float32(scale), cond - uncond
    guided = cond - difference * (1 - weight) if weight >= 0.5 else uncond + weight * difference
    top = min(GUIDANCE_TOP, len(guided))
    return guided >= np.partition(guided, len(guided) - top)[len(guided) - top]
