"""Estimates of a model's memory in each precision, and whether this machine has that much.

Made before anything is loaded; `bench` measures (docs/performance.md). GB is 1e9 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.machine import system

# Bytes of one weight, including scales: in the linears that a step reads, and elsewhere, where a
# weight has at least 8 bits (in embeddings 16).
STEP_BYTES = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.002, "int8+int5": 0.98, "int4": 0.534}
OTHER_BYTES = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.1, "int8+int5": 1.1, "int4": 1.1}
# Python with torch and the app's other imports.
PROGRAM = 450_000_000
# Of the memory that is free once a model is loaded, the share that rows may fill together, and the
# positions of a long take.
FREE_SHARE, LONG_TAKE = 0.75, 1600


def model_bytes(info: ModelInfo, precision: str) -> int:
    """Bytes of a loaded model's weights."""
    config, weights = info.config, info.family.weights
    step = weights.step(config) * STEP_BYTES[precision]
    others = weights.text(config) + weights.tables(config)
    return round(step + others * OTHER_BYTES[precision])


def needed_bytes(info: ModelInfo, precision: str) -> int:
    """The peak memory of a take, including program and codec."""
    weights = info.family.weights
    working = weights.working_bytes(info.config) + weights.codec_bytes(info.codec)
    return model_bytes(info, precision) + working + PROGRAM


def rows_that_fit(info: ModelInfo, precision: str, most: int) -> int:
    """How many long takes at once a loaded model has memory for, from one to `most`."""
    free = system.available_bytes()
    if free is None:
        return most
    positions = info.config.steps_within(LONG_TAKE)
    row = info.family.weights.cache_bytes(info.config, precision, positions)
    return min(most, max(1, int(FREE_SHARE * free) // row))


def calibration_bytes(info: ModelInfo) -> int:
    """The peak memory of calibrating int4 (model/calibration), including the program."""
    return (
        model_bytes(info, "bfloat16") + info.family.weights.calibration_bytes(info.config) + PROGRAM
    )


def why_not_calibrated(info: ModelInfo, precision: str) -> str:
    """Why a format of few bits cannot be calibrated now, as a note for the user; "" if it can."""
    free, needed = system.available_bytes(), calibration_bytes(info)
    if free is None or needed - PROGRAM <= free:
        return ""
    return (
        f"{precision} is not calibrated, which makes it less exact: calibrating needs about "
        f"{gb(needed)} of memory once, and {gb(free)} are free now. The next start tries again."
    )


def fitting_precisions(info: ModelInfo, available: int | None) -> list[str]:
    """The precisions in which the model fits into `available` bytes (None: unknown, so all that
    its weights can be loaded in), most bits first."""
    if available is None:
        return list(info.config.precisions)
    return [name for name in info.config.precisions if needed_bytes(info, name) <= available]


def check_granted(info: ModelInfo, precision: str) -> None:
    """InputError where the model needs more than the machine (or container) has in total."""
    granted = system.memory_bytes()
    if granted is not None and needed_bytes(info, precision) > granted:
        raise _memory_error(info, precision, granted, f"this machine has {gb(granted)} in total")


def check_free(info: ModelInfo, precision: str) -> None:
    """InputError where the model needs more than is free now. Called before loading."""
    free = system.available_bytes()
    if free is not None and needed_bytes(info, precision) - PROGRAM > free:
        raise _memory_error(info, precision, free, f"{gb(free)} are free now")


def _memory_error(info: ModelInfo, precision: str, available: int, has: str) -> InputError:
    needed = gb(needed_bytes(info, precision))
    return InputError(
        f"Not enough memory: in {precision} this model needs about {needed}, and {has}. "
        f"{_remedy(info, fitting_precisions(info, available))}"
    )


def _remedy(info: ModelInfo, fits: Sequence[str]) -> str:
    if fits:
        choices = ", ".join(f"{name} ({gb(needed_bytes(info, name))})" for name in fits)
        return f"Choose a precision that fits: {choices}; or close other programs."
    smallest = min(info.config.precisions, key=lambda name: needed_bytes(info, name))
    least = gb(needed_bytes(info, smallest))
    return (
        f"Even {smallest} needs {least}: close other programs, give the container more memory, or "
        "choose the embedded nano voice."
    )


def gb(size: float) -> str:
    """Bytes for a person: "2.6 GB"."""
    return f"{size / 1e9:.1f} GB"
