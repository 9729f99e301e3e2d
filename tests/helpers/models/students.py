"""What tests of distilled checkpoints share: kernels to run them, and how far logits may differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch import Tensor

from dia_demo.config import ModelConfig
from dia_demo.model.cpu_model import CpuModel
from dia_demo.model.dia import Dia
from dia_demo.model.linear import KERNELS
from dia_demo.model.weights import checkpoint, packed_cache
from dia_demo.task import result_of
from tests.helpers.models.checkpoints import SMALL, random_codes, threads_for

TEXT, CODES = b"\x01 Hello there.", random_codes(SMALL, 30)
CASES = [(kernel, precision) for kernel in KERNELS for precision in kernel.precisions]
# The compiled kernel that every processor has.
ORDINARY = next(kernel for kernel in KERNELS if kernel.compiled and not kernel.use_dot)
# Nats. The rounding of random weights that are 32 wide changes much; the vector of another scale
# changes 2 nats.
LARGEST_KL = {"float32": 1e-6, "bfloat16": 0.01, "int8": 0.1, "int4": 0.8}


def build(folder: Path, kernel, precision: str) -> CpuModel:
    """The checkpoint in `folder` with this kernel; skips the test where this machine lacks it."""
    try:
        dia = result_of(checkpoint.load(folder, precision, kernel=kernel))
        return kernel.install(dia, threads_for(kernel))
    except NotImplementedError as reason:
        pytest.skip(str(reason))


def prepared_twice(folder: Path, config: ModelConfig, precision: str, file: Path) -> list[CpuModel]:
    """The checkpoint as it was prepared, and as it was read again from `file`."""
    packed: Dia = result_of(checkpoint.load(folder, precision, kernel=ORDINARY))
    packed_cache.write_packed(packed, file, precision, "student")
    again = result_of(packed_cache.read_packed(file, config, precision))
    return [ORDINARY.install(dia, 1) for dia in (packed, again)]


def step_inputs(codes: np.ndarray, config: ModelConfig) -> np.ndarray:
    """Codes [steps, F * C] that the steps of a take read, for those of positions [P, C]."""
    frames = config.frames_per_step
    whole = np.concatenate((np.full((frames - 1, codes.shape[1]), config.decoder.bos), codes))
    steps = len(whole) // frames
    return whole[: steps * frames].reshape(steps, -1)


def divergence(expected: Tensor, logits: Tensor) -> float:
    """Mean KL divergence in nats."""
    log_p, log_q = (x.double().log_softmax(-1) for x in (expected, logits))
    return float((log_p.exp() * (log_p - log_q)).sum(-1).mean())
