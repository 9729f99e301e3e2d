"""Whether an accelerator can be used here, and how a model would run on it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dia_demo.accelerator.backend import Backend, Card, explain
from dia_demo.config import RuntimeConfig
from dia_demo.engine.loading.placement import Placement, cores_for
from dia_demo.errors import InputError
from dia_demo.machine.system import has_intel_graphics

# The precisions of an accelerator. Each needs a self-check of its own.
ACCELERATOR_PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class DeviceStatus:
    """Whether an accelerator can be tried at all, the reason if not, and which card it is."""

    usable: bool
    reason: str
    card: Card | None = None


def device_status(device: str) -> DeviceStatus:
    """The status of an accelerator: "xpu" or "cuda"."""
    if device == "xpu":
        return xpu_status()
    if not _is_available(device):
        return DeviceStatus(False, f"torch finds no {device} device here.")
    return _card_status(device)


def xpu_status() -> DeviceStatus:
    """The status of an Intel GPU. Its reason says which part of the set-up is missing."""
    if getattr(torch.version, "xpu", None) is None:
        version = torch.__version__.split("+")[0]
        return DeviceStatus(
            False,
            f"this build of torch ({torch.__version__}) has no XPU support. With an Intel GPU, "
            f"install the XPU build of torch {version} (pytorch.org, “Get started”, Intel GPU) in "
            "place of this one and start again.",
        )
    if not _is_available("xpu"):
        return DeviceStatus(False, _why_no_xpu(has_intel_graphics()))
    status = _card_status("xpu")
    if status.card is not None and status.card.integrated:
        return DeviceStatus(
            False,
            f"the only Intel GPU here is integrated ({status.card.name}): it shares the CPU's "
            "memory, so it cannot be faster, and its output has not been verified.",
            status.card,
        )
    return status


def place_on_device(runtime: RuntimeConfig, status: DeviceStatus) -> Placement:
    """Choose precision and threads. Raises InputError if the device or the request is impossible.

    Whether the device has passed its self-check is for `Accelerator.place` to decide.
    """
    if not status.usable:
        name = runtime.device.upper()
        raise InputError(f"{name} cannot be used here: {status.reason} Use the CPU, the default.")
    cores = cores_for(runtime)
    precision, reason = _precision(runtime.precision)
    if runtime.threads is not None:
        return Placement(runtime.device, precision, runtime.threads, reason, "as asked")
    return Placement(runtime.device, precision, cores, reason, "the cores granted here")


def _precision(asked: str) -> tuple[str, str]:
    if asked == "auto":
        return "float32", "the precision in which an accelerator is compared with the CPU"
    if asked not in ACCELERATOR_PRECISIONS:
        allowed = " or ".join(ACCELERATOR_PRECISIONS)
        raise InputError(f"An accelerator runs in {allowed}, not {asked}. Choose one, or auto.")
    return asked, "as asked"


def _is_available(device: str) -> bool:
    try:
        return bool(getattr(torch, device).is_available())
    except (RuntimeError, AttributeError, OSError):
        return False


def _card_status(device: str) -> DeviceStatus:
    try:
        return DeviceStatus(True, "", Backend(device).card())
    except Exception as error:  # Some chips are "available" and fail at the first query.
        return DeviceStatus(
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
            "this machine has an Intel GPU, but torch finds no working driver for it: install "
            "intel-opencl-icd and libze-intel-gpu1 (Level Zero), and make sure that you may use "
            "/dev/dri (group render)."
        )
    return "there is no Intel GPU in this machine."
