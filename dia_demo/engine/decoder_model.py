"""The interface between the engine and a model, wherever the model runs.

`Dia` runs on this CPU; `DeviceModel`, `RemoteModel` and `GuardedModel` (accelerator/) on another
device. Tensors that cross the interface are on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor

from dia_demo.config import ModelConfig
from dia_demo.errors import RunError


class DeviceFailed(RunError):
    """The device that runs the model is at fault, not the request: the engine cannot be used again.

    The message is complete: what happened, and what to do.
    """


class DecoderCache(Protocol):
    """What a model keeps of one row between steps; `branches`: see `ModelConfig.branches`."""

    @property
    def branches(self) -> int: ...

    @property
    def text_place(self) -> int | None:
        """The byte of the row's text that its last step read, of models with voices by name (a head
        follows the text); of others None."""


class DecoderModel(Protocol):
    """A text encoder and a decoder that runs rows together.

    can_prefill_ahead: `encode`, and the call that reads a voice prompt, may run in one thread while
    another thread runs the steps of other rows.
    """

    @property
    def config(self) -> ModelConfig: ...

    @property
    def can_prefill_ahead(self) -> bool: ...

    def encode(self, text: bytes, cfg_scale: float, max_positions: int) -> DecoderCache:
        """Read a row's text; returns the row's cache, ready for the first codes.

        max_positions: the most steps that the row can take.
        """

    def __call__(self, codes_BTC: Tensor, caches: Sequence[Any]) -> Tensor:
        """Feed the codes of T more steps to each row; caches are those that `encode` returned.

        codes_BTC int64: B is the sum of the caches' branches, C `ModelConfig.codes_per_step`. T > 1
        only into empty caches (a voice prompt). Returns float32 logits [B, T, C, V] of each step's
        first frame, or only the last step's, [B, 1, C, V].
        """

    def next_frame(self, codes_BC: Tensor, caches: Sequence[Any], number: int) -> Tensor:
        """Logits float32 [B, C, V] of frame `number` (1, 2, ...) of the step that these rows made
        last, after the frame before it, codes int64 [B, C]. Only of models with several frames a
        step, and in the order of the frames.
        """
