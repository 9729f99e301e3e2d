"""From logits to codes, as Dia-1.6B-0626 does it.

The steps and their order are those of nari-labs/dia (June 2025) and of transformers' Dia logits
processors: guidance decides which codes may be drawn, the conditional logits how likely they are.
They are computed in one call (kernels/sampling.py), because as separate operations on small arrays
they take longer to call than to compute; those are the reference of the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from dia_demo.config import DecoderConfig, GenerationParams
from dia_demo.errors import RunError

# The code of a row whose logits are not all finite.
NOT_FINITE = -1
# What the reference draws in `check_sampler`.
EXPECTED = [[13, 14, 15], [11, 4, 5], [6, 7, 8], [NOT_FINITE] * 3]


class Sampler:
    """Samples the codes of R rows; made once for as long as the rows stay.

    branches: how many slots each row has in the logits, 2, or 1 (without guidance, or with
    distilled guidance), which is used for both.
    """

    def __init__(
        self, params: Sequence[GenerationParams], branches: Sequence[int], decoder: DecoderConfig
    ) -> None:
        from dia_demo.kernels.sampling import sample, scratch_bytes

        self._sample = sample
        self._slots = slots(branches)
        self._scratch = np.zeros(scratch_bytes(decoder.vocab_size), np.uint8)
        self._parameters = (
            _float32(row.temperature for row in params),
            _float32(row.cfg_scale for row in params),
            _float32(map(effective_top_p, params)),
            np.array([row.top_k for row in params], np.int64),
            decoder.eos,
            decoder.vocab_size,
            self._scratch.ctypes.data,
        )
        self._codes = np.empty((len(params), decoder.num_channels), np.int64)

    def __call__(self, logits_BCV: Tensor, uniforms_RC: np.ndarray) -> np.ndarray:
        """The next codes int64 [R, C], from the float32 logits of all slots and float32 uniforms in
        [0, 1). The next call overwrites them.

        Rows of temperature 0 take the most likely code. Rows whose logits are not all finite have
        NOT_FINITE.
        """
        if logits_BCV.stride()[1:] != (logits_BCV.shape[2], 1):
            logits_BCV = logits_BCV.contiguous()
        logits = logits_BCV.data_ptr(), 4 * logits_BCV.stride(0)
        self._sample(*logits, *self._slots, uniforms_RC, *self._parameters, self._codes)
        return self._codes


@cache
def check_sampler() -> None:
    """Compile the sampler, and compare it with known codes, once in a process.

    Raises RunError if it does not compile here, or is wrong.
    """
    decoder = DecoderConfig(num_channels=3, vocab_size=20, eos=16)
    guided = GenerationParams(temperature=1.0, cfg_scale=2.0, top_p=0.9, top_k=9)
    rows = [guided, replace(guided, cfg_scale=0.0), replace(guided, temperature=0.0), guided]
    logits = (torch.arange(7 * 3 * 20, dtype=torch.float32) * 37 % 97 / 16 - 3).view(7, 3, 20)
    logits[6, 1, 4] = torch.nan
    uniforms = np.linspace(0, 0.97, 12, dtype=np.float32).reshape(4, 3)
    try:
        codes = Sampler(rows, [2, 1, 2, 2], decoder)(logits, uniforms).tolist()
    except Exception as error:  # numba, its compiler and a damaged cache raise any type of error.
        what = f"{type(error).__name__}: {error}"
    else:
        if codes == EXPECTED:
            return
        what = f"it returns {codes} instead of {EXPECTED}"
    raise RunError(
        f"The sampler does not work on this machine: {what}. Install the packages of "
        "requirements.txt again, unset NUMBA_DISABLE_JIT, or delete the folder of DIA_CACHE."
    )


def slots(branches: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Each row's slots in the logits: with the text and without it, int64 [R]."""
    ends = np.cumsum(branches)
    return ends - branches, ends - 1


def effective_top_p(params: GenerationParams) -> float:
    """The code that crosses top p stays: from 1 on all do, whatever rounding says."""
    return params.top_p if params.top_p < 1 else 2.0


def _float32(values: Iterable[float]) -> np.ndarray:
    return np.array([float(value) for value in values], np.float32)
