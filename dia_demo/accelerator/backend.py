"""A device behind one narrow border: tensors in, tensors out, which card it is, its memory.

Everything an accelerator does for this program goes through a `Backend`, so that tests can put
faults in its place. Nothing here knows a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from dia_demo.errors import DiaDemoError


@dataclass(frozen=True)
class Card:
    """Which device this is. `integrated` is None where the device does not tell."""

    device: str
    name: str
    driver: str
    integrated: bool | None = None


@dataclass(frozen=True)
class Memory:
    """Bytes on the device; `free` is None where it does not tell."""

    used: int
    free: int | None


class Backend:
    """A torch device: "xpu", or any other accelerator such as "cuda" behind the same calls."""

    def __init__(self, device: str) -> None:
        wanted = torch.device(device)
        index = None if wanted.type == "cpu" else wanted.index or 0
        self.device = torch.device(wanted.type, index)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Whatever the device computes happens inside: no gradient, attention in its plain form.

        The fused forms of attention are reported to give NaN now and then on Intel GPUs, the plain
        one (MATH) never.
        """
        with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH):
            yield

    def put(self, tensor: Tensor) -> Tensor:
        """A copy on the device."""
        return tensor.to(self.device, copy=True)

    def fetch(self, tensor: Tensor) -> Tensor:
        """A copy on the CPU, as it is once the device has done all its work."""
        return tensor.to("cpu", copy=True)

    def location(self, tensor: Tensor) -> str:
        """Where a tensor really lies."""
        return str(tensor.device)

    def synchronize(self) -> None:
        """Wait until the device has done all its work."""
        self._module.synchronize()

    def allocate(self, size: int) -> Tensor:
        """`size` bytes on the device, not written."""
        return torch.empty(size, dtype=torch.uint8, device=self.device)

    def release(self) -> None:
        """Give memory that nobody holds back to the device."""
        if self.device.type != "cpu":
            self._module.empty_cache()

    def card(self) -> Card:
        """Which card answers."""
        if self.device.type == "cpu":
            return Card("cpu", "CPU", torch.__version__)
        found = self._module.get_device_properties(self.device)
        driver = getattr(found, "driver_version", None) or torch.version.cuda or "unknown"
        integrated = getattr(found, "is_integrated_gpu", getattr(found, "is_integrated", None))
        return Card(
            device=str(self.device),
            name=str(found.name).strip(),
            driver=str(driver),
            integrated=None if integrated is None else bool(integrated),
        )

    def memory(self) -> Memory:
        """What is taken and what is free. Drivers that do not tell leave the allocator's figure."""
        if self.device.type == "cpu":
            return Memory(_resident_bytes(), None)
        try:
            free, total = self._module.mem_get_info(self.device)
            return Memory(total - free, free)
        except (RuntimeError, AttributeError):
            # Seen on Arc with torch 2.7: the figure raises instead of coming.
            return Memory(self._module.memory_reserved(self.device), None)

    @property
    def _module(self):
        return getattr(torch, self.device.type)


def _resident_bytes() -> int:
    """Memory of this process, 0 where the system does not tell in /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * 4096


def explain(error: BaseException) -> str:
    """What a device's error means, in plain words before the driver's own."""
    own = " ".join(str(error).split())[:300] or type(error).__name__
    if isinstance(error, DiaDemoError | ArithmeticError):
        return own
    known = {
        "could not create a primitive": "its library has no form of this operation for this card",
        "not implemented": "this operation does not exist on the device in this precision",
        "out of memory": "the device ran out of memory",
        "out_of_device_memory": "the device ran out of memory",
        "out_of_resources": "the device ran out of resources",
        "device_lost": "the driver lost the device",
    }
    for sign, meaning in known.items():
        if sign in own.lower():
            return f"{meaning} ({own})"
    return f"{type(error).__name__}: {own}"
