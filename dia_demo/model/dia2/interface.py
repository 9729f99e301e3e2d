"""What Dia2's rows need of a model, however it computes it.

Rows with guidance have two branches, the conditional and the unconditional one, and so two slots
of a batch. Shape letters are those of model/layers.py, and N the depth stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from dia_demo.model.dia2.config import Dia2Config


@dataclass(frozen=True)
class Drawing:
    """How one row draws a code from its logits. temperature 0: take the most likely code."""

    cfg_scale: float
    temperature: float
    top_k: int


class FrameCache(Protocol):
    """What a model keeps of one row between steps.

    length: steps that were read. position: of the next step, for the rotary positions. It is one
    less than the length after a voice prompt, whose last position is read twice.
    """

    position: int

    @property
    def branches(self) -> int: ...

    @property
    def length(self) -> int: ...


class FrameModel(Protocol):
    """A Dia2 model. All tensors are on the CPU, and logits float32.

    can_prefill_ahead: `read` may run in one thread while another runs the steps of other rows.
    """

    @property
    def config(self) -> Dia2Config: ...

    @property
    def can_prefill_ahead(self) -> bool: ...

    def new_cache(self, branches: int, max_positions: int) -> FrameCache:
        """An empty cache for at most so many steps, the repeated one of a prompt included."""

    def read(self, text_BT2: Tensor, codes_BTC: Tensor, cache: Any) -> None:
        """Feed T known steps of one row to its empty cache: a voice prompt."""

    def step(
        self, text_B2: Tensor, codes_BC: Tensor, caches: Sequence[Any]
    ) -> tuple[Tensor, Tensor]:
        """Feed one step of each row; returns the logits of the action [B, A] and of the first
        codebook [B, V]. Both are overwritten by the next call.

        text_B2 int64: main and second stream. codes_BC int64: the delayed codes.
        """

    def depth(
        self,
        first_R: np.ndarray,
        uniforms_RN: np.ndarray,
        drawing: Sequence[Drawing],
        caches: Sequence[Any],
    ) -> np.ndarray:
        """The codes int64 [R, N] of the other codebooks, for the step that these rows made last.

        first_R int64: the codes of the first codebook. uniforms_RN: float32 in [0, 1). Each stage
        draws by model/dia2/drawing.py, and both branches continue with the code drawn. A row whose
        logits are not all finite has NOT_FINITE in all places.
        """
