"""How a model runs on this CPU: precision and number of threads, each with its reason."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec

from dia_demo.checkpoint_files import fingerprint
from dia_demo.config import ModelConfig, PreparedWeights, RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import (
    STEP_BYTES,
    check_granted,
    fitting_precisions,
    gb,
    needed_bytes,
)
from dia_demo.errors import InputError
from dia_demo.kernels.jit import digest
from dia_demo.machine import system
from dia_demo.machine.processor import byte_product_lanes, multiplies_bfloat16
from dia_demo.machine.system import granted_cores
from dia_demo.model.autotune import recall, remember
from dia_demo.model.linear import FLOATS, INTEGERS

# Below this many decoder weights a step is bound by its operations, not by reading weights.
TINY_WEIGHTS = 1_000_000
# Weights of fewer bytes stay in a processor's cache. A second thread then gains little, and where
# other programs use its core, waiting for it makes a take ten times slower.
CACHED_BYTES = 32 * 2**20
# The precisions without a measured loss, among which "auto" chooses: int8 is as well understood as
# float32. int4 is not (docs/performance.md, "What fewer bits cost"): only who asks for it gets it.
LOSSLESS = ("float32", "bfloat16", "int8")
# Formats of few bits whose loss `bench --quality` may find to be that of int8, model by model: its
# KL divergence is at most so many times as large.
COMPARED, SAME_LOSS = ("int8+int5",), 1.5


@dataclass(frozen=True)
class Placement:
    """How a model runs here. `reason` explains the precision, `why_threads` the number of threads,
    to a person. free_cores: those that its steps leave to the codec."""

    device: str
    precision: str
    threads: int
    reason: str
    why_threads: str = ""
    free_cores: int = 0


def place_on_cpu(runtime: RuntimeConfig, info: ModelInfo) -> Placement:
    """Choose precision and threads. InputError where the request is impossible, or needs more
    memory than the machine has."""
    assert runtime.device == "cpu", "other devices: accelerator/status.py"
    cores = cores_for(runtime)
    precision, reason = _precision(runtime.precision, info, runtime.threads or cores)
    if runtime.precision == "auto":
        precision, reason = _fit_memory(precision, reason, info)
    check_granted(info, precision)
    threads, why_threads = _threads(runtime, precision, info, cores)
    free_cores = cores - threads if runtime.threads is None else 0
    return Placement(runtime.device, precision, threads, reason, why_threads, free_cores)


def cores_for(runtime: RuntimeConfig) -> int:
    """The cores granted here. InputError where the runtime asks for more threads."""
    cores = granted_cores()
    if (runtime.threads or 1) > cores:
        raise InputError(
            f"threads must be from 1 to {cores}, the cores granted here, not {runtime.threads}."
        )
    return cores


def _threads(
    runtime: RuntimeConfig, precision: str, info: ModelInfo, cores: int
) -> tuple[int, str]:
    """The number of threads and its reason."""
    if runtime.threads is not None:
        return runtime.threads, "as asked"
    small = info.family.weights.step(info.config) * STEP_BYTES[precision] < CACHED_BYTES
    if small and cores > 1:
        return 1, (
            "a model this small gains little from a second thread, and loses much where that "
            "thread has to wait"
        )
    return cores, "the cores granted here"


def _precision(asked: str, info: ModelInfo, threads: int) -> tuple[str, str]:
    """The one asked for; else the fastest of LOSSLESS, as measured or expected here."""
    config = info.config
    can_compile = find_spec("numba") is not None
    if config.prepared is not None:
        asked, reason = _prepared_precision(asked, config.prepared)
    if config.prepared is None and asked not in ("auto", *config.precisions):
        raise InputError(
            f"{asked} is for models of two parts, such as Dia2, and {info.name} has one: choose "
            f"{', '.join(config.precisions)}."
        )
    if asked.startswith(INTEGERS) and not can_compile:
        other = f", or choose {' or '.join(FLOATS)}" if config.prepared is None else ""
        raise InputError(f"{asked} needs numba, which is not installed: pip install numba{other}.")
    if config.prepared is not None:
        return asked, reason
    if asked != "auto":
        return asked, "as asked"
    if info.family.weights.step(config) < TINY_WEIGHTS:
        return "float32", "a model this small is fast enough with all its bits"
    if (measured := _fastest_measured(info, threads)) is not None:
        return measured
    if can_compile and byte_product_lanes():
        return "int8", (
            "it reads a quarter of float32's bytes, this CPU adds products of bytes, and a speech "
            "recogniser understands it as well"
        )
    if can_compile or multiplies_bfloat16():
        return "bfloat16", "it reads half of float32's bytes"
    return "float32", "this CPU has no fast bfloat16, and numba is not installed"


def remember_steps(config: ModelConfig, threads: int, milliseconds: Mapping[str, float]) -> None:
    """Keep the decoder steps of one utterance that a benchmark measured, by precision: "auto"
    chooses by them. One precision alone says nothing of the others."""
    names = (*LOSSLESS, *COMPARED)
    known = {name: float(milliseconds[name]) for name in names if name in milliseconds}
    if len(known) > 1:
        remember(_steps_key(config, threads), known)


def remember_losses(info: ModelInfo, losses: Mapping[str, float]) -> None:
    """Keep the KL divergences that a benchmark measured of a model, by precision: "auto" may choose
    those of COMPARED that are as exact as int8. What was measured before of others stays."""
    known = recall(_losses_key(info)) or {}
    remember(_losses_key(info), known | {name: float(loss) for name, loss in losses.items()})


def _without_loss(info: ModelInfo) -> list[str]:
    """Those of COMPARED that a benchmark could not tell from int8 in this model."""
    losses = recall(_losses_key(info)) or {}
    most = SAME_LOSS * losses.get("int8", 0.0)
    return [name for name in COMPARED if losses.get(name, math.inf) <= most]


def _losses_key(info: ModelInfo) -> str:
    """The weights decide, not the processor."""
    known = fingerprint(info.folder) if info.folder is not None else info.name
    return json.dumps(["losses", known])


def _fastest_measured(info: ModelInfo, threads: int) -> tuple[str, str] | None:
    """The precision without a measured loss whose step a benchmark measured as the fastest here,
    and the reason; None where none was made with this processor, these threads and these
    libraries."""
    measured = recall(_steps_key(info.config, threads))
    if measured is None:
        return None
    allowed = (*LOSSLESS, *_without_loss(info))
    steps = {name: milliseconds for name, milliseconds in measured.items() if name in allowed}
    if len(steps) < 2:
        return None
    fastest, *others = sorted(steps, key=steps.__getitem__)
    rest = " and ".join(f"{steps[name]:.0f} ms in {name}" for name in others)
    return fastest, (
        f"its decoder step is the fastest of those without a measured loss: {steps[fastest]:.0f} "
        f"ms in a benchmark on this machine, {rest}"
    )


def _steps_key(config: ModelConfig, threads: int) -> str:
    """Everything that the time of a step depends on; not the weights' values."""
    versions = [_version(package) for package in ("torch", "numba")]
    shape = asdict(config.decoder)
    return json.dumps(["steps", platform.machine(), digest(), *versions, shape, threads])


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _prepared_precision(asked: str, weights: PreparedWeights) -> tuple[str, str]:
    """The one precision of prepared weights. InputError where another was asked for."""
    if asked in ("auto", weights.precision):
        return weights.precision, f"these weights of {weights.base} were prepared in it"
    raise InputError(
        f"These weights of {weights.base} were prepared in {weights.precision} and cannot run in "
        f"{asked}: choose {weights.precision} or auto, or use {weights.base} itself."
    )


def _fit_memory(precision: str, reason: str, info: ModelInfo) -> tuple[str, str]:
    """The precision chosen, or the widest narrower one that fits; never int4."""
    available = system.memory_bytes()
    fits = [name for name in fitting_precisions(info, available) if name != "int4"]
    if precision in fits or not fits or available is None:
        return precision, reason
    needed = gb(needed_bytes(info, precision))
    return fits[0], (
        f"{precision} would need {needed} of the {gb(available)} that this machine has"
    )
