"""A device behind a narrow interface: tensors in and out, which card it is, its memory.

Everything that an accelerator does for this program goes through a `Backend`, so that tests can
inject faults. Nothing here depends on a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from dia_demo.errors import DiaDemoError


@dataclass(frozen=True)
class Card:
    """Identifies a device. `integrated` is None where the driver does not report it."""

    device: str
    name: str
    driver: str
    integrated: bool | None = None


@dataclass(frozen=True)
class Memory:
    """Bytes on the device; `free` is None where the driver does not report it."""

    used: int
    free: int | None


class Backend:
    """A torch device: "xpu", or another accelerator such as "cuda" behind the same calls."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        if self.device.type != "cpu":
            self.device = torch.device(self.device.type, self.device.index or 0)

    def active(self) -> AbstractContextManager[None]:
        """Everything the device computes runs inside: no gradients, attention in its plain form.

        The fused forms of attention are reported to return NaN now and then on Intel GPUs, the
        plain one (MATH) never.
        """
        return _plain_inference()

    def put(self, tensor: Tensor) -> Tensor:
        """A copy on the device."""
        return tensor.to(self.device, copy=True)

    def fetch(self, tensor: Tensor) -> Tensor:
        """A copy on the CPU, made after the device has finished all its work."""
        return tensor.to("cpu", copy=True)

    def location(self, tensor: Tensor) -> str:
        """The device on which a tensor really is."""
        return str(tensor.device)

    def synchronize(self) -> None:
        """Wait until the device has finished all its work."""
        self._module.synchronize()

    def allocate(self, size: int) -> Tensor:
        """`size` bytes on the device, not initialised."""
        return torch.empty(size, dtype=torch.uint8, device=self.device)

    def release(self) -> None:
        """Return unused memory from torch's cache to the device."""
        if self.device.type != "cpu":
            self._module.empty_cache()

    def card(self) -> Card:
        """Which card this is."""
        if self.device.type == "cpu":
            return Card("cpu", "CPU", torch.__version__)
        properties = self._module.get_device_properties(self.device)
        driver = getattr(properties, "driver_version", None) or torch.version.cuda or "unknown"
        integrated = getattr(properties, "is_integrated", None)
        integrated = getattr(properties, "is_integrated_gpu", integrated)
        return Card(
            device=str(self.device),
            name=str(properties.name).strip(),
            driver=str(driver),
            integrated=None if integrated is None else bool(integrated),
        )

    def memory(self) -> Memory:
        """Used and free memory; the allocator's figure where the driver does not report it."""
        if self.device.type == "cpu":
            return Memory(_resident_bytes(), None)
        try:
            free, total = self._module.mem_get_info(self.device)
            return Memory(total - free, free)
        except (RuntimeError, AttributeError):
            # Seen on Arc with torch 2.7: the query raises.
            return Memory(self._module.memory_reserved(self.device), None)

    @property
    def _module(self) -> ModuleType:
        return getattr(torch, self.device.type)


@contextmanager
def _plain_inference() -> Iterator[None]:
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH):
        yield


def _resident_bytes() -> int:
    """Memory of this process, 0 where the system does not report it in /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * 4096


def explain(error: BaseException) -> str:
    """A device's error in plain words, followed by the driver's own."""
    message = " ".join(str(error).split())[:300] or type(error).__name__
    if isinstance(error, DiaDemoError | ArithmeticError):
        return message
    meanings = {
        "could not create a primitive": "its library does not support this operation on this card",
        "not implemented": "this operation does not exist on the device in this precision",
        "out of memory": "the device ran out of memory",
        "out_of_device_memory": "the device ran out of memory",
        "out_of_resources": "the device ran out of resources",
        "device_lost": "the driver lost the device",
    }
    for pattern, meaning in meanings.items():
        if pattern in message.lower():
            return f"{meaning} ({message})"
    return f"{type(error).__name__}: {message}"
