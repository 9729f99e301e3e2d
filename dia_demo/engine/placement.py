"""Where a model runs, in which precision and with how many threads, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import torch

from dia_demo import system
from dia_demo.accelerator.backend import Backend, Card, explain
from dia_demo.config import ModelConfig, RuntimeConfig
from dia_demo.engine.memory import (
    STEP_BYTES,
    check_granted,
    decoder_weights,
    fitting,
    gb,
    needed_bytes,
)
from dia_demo.errors import InputError
from dia_demo.model.linear import FLOATS, INTEGERS
from dia_demo.processor import byte_product_lanes, multiplies_bfloat16
from dia_demo.system import granted_cores, has_intel_graphics

# Below this many decoder weights a step is bound by its operations, not by reading weights.
SMALL_WEIGHTS = 30_000_000
# Weights of fewer bytes stay in a processor's cache. A second thread then gains little, and where
# other programs want its core, waiting for it makes a take ten times slower.
CACHED_BYTES = 32 * 2**20
# What an accelerator may run: float32, and bfloat16 after a check of its own.
ACCELERATOR_PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class XpuStatus:
    """Whether an accelerator may be tried at all, in plain words why not, and which card it is."""

    usable: bool
    reason: str
    card: Card | None = None


@dataclass(frozen=True)
class Placement:
    """How a model runs here. `reason` tells the person why this precision, `why_threads` why so
    many."""

    device: str
    precision: str
    threads: int
    reason: str
    why_threads: str = ""


def xpu_status() -> XpuStatus:
    """What keeps an Intel GPU from being used, if anything does."""
    if getattr(torch.version, "xpu", None) is None:
        version = torch.__version__.split("+")[0]
        return XpuStatus(
            False,
            f"this build of torch ({torch.__version__}) has no XPU support. With an Intel GPU, "
            f"install the XPU build of torch {version} (pytorch.org, “Get started”, Intel GPU) in "
            "place of this one and start again.",
        )
    if not _is_available("xpu"):
        return XpuStatus(False, _why_no_xpu(has_intel_graphics()))
    status = _card_status("xpu")
    if status.card is not None and status.card.integrated:
        return XpuStatus(
            False,
            f"only an integrated GPU is here ({status.card.name}): it reads the same memory as the "
            "CPU, so it cannot be faster, and nobody has heard it speak right.",
            status.card,
        )
    return status


def device_status(device: str) -> XpuStatus:
    """Like `xpu_status`, for any accelerator: "xpu" or "cuda"."""
    if device == "xpu":
        return xpu_status()
    if not _is_available(device):
        return XpuStatus(False, f"torch finds no {device} device here.")
    return _card_status(device)


def _is_available(device: str) -> bool:
    try:
        return bool(getattr(torch, device).is_available())
    except (RuntimeError, AttributeError, OSError):
        return False


def _card_status(device: str) -> XpuStatus:
    try:
        return XpuStatus(True, "", Backend(device).card())
    except Exception as error:  # Chips exist that are "available" and fail at the first question.
        return XpuStatus(
            False, f"torch finds a {device} device that does not answer: {explain(error)}."
        )


def _why_no_xpu(intel_graphics: bool | None) -> str:
    if intel_graphics is None:
        return (
            "torch finds no Intel GPU: either there is none, or its driver is missing. Install "
            "Intel's graphics driver and start again."
        )
    if intel_graphics:
        return (
            "an Intel GPU is here, but torch finds no working driver for it: install "
            "intel-opencl-icd and libze-intel-gpu1 (Level Zero), and make sure that you may use "
            "/dev/dri (group render)."
        )
    return "there is no Intel GPU in this machine."


def place(
    runtime: RuntimeConfig, config: ModelConfig, status: XpuStatus | None = None
) -> Placement:
    """Decide device, precision and threads. InputError where what is asked cannot be had, or
    needs more memory than the machine has.

    status: of the accelerator asked for, looked up where it is not given. Whether that has passed
    its self-check is asked by `Accelerator.place`.
    """
    if runtime.device != "cpu":
        status = status or device_status(runtime.device)
        if not status.usable:
            name = runtime.device.upper()
            raise InputError(f"The {name} cannot be used: {status.reason} Use --device cpu.")
    cores = granted_cores()
    if (runtime.threads or 1) > cores:
        raise InputError(
            f"threads must be from 1 to {cores}, the cores granted here: {runtime.threads}."
        )
    choose = _precision if runtime.device == "cpu" else _accelerator_precision
    precision, reason = choose(runtime.precision, config)
    if runtime.device == "cpu":
        if runtime.precision == "auto":
            precision, reason = _within_memory(precision, reason, config)
        check_granted(config, precision)
    threads, why = _threads(runtime, precision, config, cores)
    return Placement(runtime.device, precision, threads, reason, why)


def _threads(
    runtime: RuntimeConfig, precision: str, config: ModelConfig, cores: int
) -> tuple[int, str]:
    """How many threads, and why."""
    if runtime.threads is not None:
        return runtime.threads, "as asked"
    small = decoder_weights(config) * STEP_BYTES[precision] < CACHED_BYTES
    if small and runtime.device == "cpu" and cores > 1:
        return 1, "a model this small gains little from a second, and loses much where it waits"
    return cores, "the cores granted here"


def _precision(asked: str, config: ModelConfig) -> tuple[str, str]:
    """The fastest precision without a measured loss: int8 is as well understood as float32. int4 is
    not (docs/performance.md, "What fewer bits cost"), so it is used only when asked for."""
    can_compile = find_spec("numba") is not None
    if asked in INTEGERS and not can_compile:
        raise InputError(
            f"{asked} needs numba, which is not installed: pip install numba, or choose "
            f"{' or '.join(FLOATS)}."
        )
    if asked != "auto":
        return asked, "as asked"
    if decoder_weights(config) < SMALL_WEIGHTS:
        return "float32", "a model this small is fast enough with all its bits"
    if can_compile and byte_product_lanes():
        return "int8", (
            "a quarter of float32's bytes are read, this CPU adds products of bytes, and a "
            "recogniser understands it as well"
        )
    if can_compile or multiplies_bfloat16():
        return "bfloat16", "half of float32's bytes are read"
    return "float32", "this CPU has no fast bfloat16, and numba is not installed"


def _within_memory(precision: str, reason: str, config: ModelConfig) -> tuple[str, str]:
    """The precision chosen, or the widest narrower one that fits. int4 is for who asks for it."""
    room = system.memory_bytes()
    fits = [one for one in fitting(config, room) if one != "int4"]
    if precision in fits or not fits or room is None:
        return precision, reason
    needed = gb(needed_bytes(config, precision))
    return fits[0], f"{precision} would need {needed} of the {gb(room)} that this machine has"


def _accelerator_precision(asked: str, config: ModelConfig) -> tuple[str, str]:
    if asked == "auto":
        return "float32", "the precision in which an accelerator is compared with the CPU"
    if asked not in ACCELERATOR_PRECISIONS:
        allowed = " or ".join(ACCELERATOR_PRECISIONS)
        raise InputError(f"An accelerator runs in {allowed}, not {asked}: choose auto or one.")
    return asked, "as asked"
