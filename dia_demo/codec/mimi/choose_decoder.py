"""Which of the two decoders is used: the compiled one where it runs and agrees with torch."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, Protocol

import torch
from torch import Tensor

from dia_demo.codec.mimi.config import MimiConfig
from dia_demo.codec.mimi.decoder import TorchMimiDecoder
from dia_demo.codec.mimi.weights import TINY_MIMI, StoredMimi, random_stored_mimi
from dia_demo.model.linear import can_compile

log = logging.getLogger(__name__)
# Relative L2 difference of the samples that the two may have.
_LARGEST_DIFFERENCE = 1e-4


class MimiDecoder(Protocol):
    """Codes to samples, for any number of streams. precision: of the stored weights, float32 or
    bfloat16."""

    def __init__(self, stored: StoredMimi, precision: str) -> None: ...

    @property
    def most_frames(self) -> int:
        """Those of one call."""

    def new_state(self) -> Any:
        """The state of a stream at its beginning."""

    def __call__(self, codes_TC: Tensor, state: Any) -> Tensor:
        """Feed the stream's next frames; returns their samples [N]."""


def new_decoder(stored: StoredMimi, precision: str) -> MimiDecoder:
    """The decoder of a Mimi."""
    if decoder_kind() == "torch":
        return TorchMimiDecoder(stored, precision)
    from dia_demo.codec.mimi.compiled_decoder import CompiledMimiDecoder

    return CompiledMimiDecoder(stored, precision)


@cache
def decoder_kind() -> str:
    """Which of the two this process uses: "compiled" or "torch"."""
    if not can_compile():
        return "torch"
    try:
        _check()
    except Exception as error:  # numba, its compiler and a damaged cache raise any type of error.
        log.warning("no compiled Mimi, using torch: %s: %s", type(error), error)
        return "torch"
    return "compiled"


def _check() -> None:
    """Compile the kernel, and compare it with torch on a small Mimi."""
    from dia_demo.codec.mimi.compiled_decoder import CompiledMimiDecoder

    stored = random_stored_mimi(MimiConfig(**TINY_MIMI))
    codes_TC = torch.arange(3 * stored.config.num_quantizers).view(3, -1)
    kinds: list[type[MimiDecoder]] = [CompiledMimiDecoder, TorchMimiDecoder]
    samples = []
    with torch.inference_mode():
        for kind in kinds:
            decoder = kind(stored, "float32")
            state = decoder.new_state()
            parts = codes_TC.split(decoder.most_frames)
            samples.append(torch.cat([decoder(part, state) for part in parts]))
    difference = float((samples[0] - samples[1]).norm() / samples[1].norm())
    if not difference <= _LARGEST_DIFFERENCE:
        raise ArithmeticError(f"samples have a difference of {difference:.1e}")
