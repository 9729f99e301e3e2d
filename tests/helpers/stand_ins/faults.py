"""A CPU that misbehaves like an accelerator: one known fault at a time, behind the Backend's calls.

A fault changes what a function returns while the device is active. The CPU's own reference is
computed outside of that, so it stays right.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from dia_demo.accelerator.backend import Backend, Card, Memory
from dia_demo.accelerator.process import DeviceProcess

CARD = Card("cpu", "Stand-in", "1.0", False)
MIB = 2**20
# torch sets the form of attention for the whole process. Of two threads that overlap, the later one
# would restore what the other had set, for ever.
_ACTIVE = threading.RLock()
# Decoder steps taken before a fault that needs warming up begins.
LATE = 1000


@dataclass(frozen=True)
class Fault:
    """change(backend, func, args, run) gives the result of every function on the device;
    memory says how many bytes have leaked after so many linears."""

    change: Callable = lambda backend, func, args, run: run()
    location: str = ""
    out_of_memory: bool = False
    leak: int = 0
    card: Card = CARD


class FaultyBackend(Backend):
    """The CPU with a fault. `linears` and `heads` (final linears, one a step) count calls."""

    def __init__(self, name: str, late: int = LATE) -> None:
        super().__init__("cpu")
        self.fault, self.late = FAULTS[name], late
        self.linears = self.steps = self.writes = 0

    @contextmanager
    def active(self):
        with _ACTIVE, super().active(), _Injector(self):
            yield

    def card(self) -> Card:
        return self.fault.card

    def location(self, tensor: Tensor) -> str:
        return self.fault.location or super().location(tensor)

    def allocate(self, size: int) -> Tensor:
        if self.fault.out_of_memory:
            raise torch.OutOfMemoryError("XPU out of memory. Tried to allocate 256.00 MiB")
        return super().allocate(size)

    def memory(self) -> Memory:
        """Steady but for the leak: the size of this very process would be noise."""
        return Memory(1000 * MIB + self.fault.leak * self.linears, 8000 * MIB)


class _Injector(TorchFunctionMode):
    def __init__(self, backend: FaultyBackend) -> None:
        super().__init__()
        self.backend = backend

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is functional.linear:
            self.backend.linears += 1
            self.backend.steps += args[0].dim() == 3 and args[1].shape[0] == HEAD
        return self.backend.fault.change(
            self.backend, func, args, lambda: func(*args, **(kwargs or {}))
        )


# Outputs of the last linear of checkpoints.SMALL: its calls count steps.
HEAD = 3 * 68


def on_linear(wrong: Callable) -> Callable:
    """A fault of linears alone: wrong(backend, args, out) is what they give."""

    def change(backend, func, args, run):
        return wrong(backend, args, run()) if func is functional.linear else run()

    return change


def zeros_at_one_shape(backend, args, out):
    return torch.zeros_like(out) if out.shape[-1] == 96 and len(out) == 8 else out


def now_and_then_nan(backend, args, out):
    return out * torch.nan if backend.linears % 31 == 0 else out


def drift(backend, args, out):
    return out * (1 + 1e-3) if backend.steps > backend.late else out


def late_nan(backend, args, out):
    return out * torch.nan if backend.steps > backend.late else out


def late_abort(backend, args, out):
    if backend.steps > backend.late:
        os.abort()
    return out


def late_hang(backend, args, out):
    if backend.steps > backend.late:
        time.sleep(1000)
    return out


def late_error(backend, args, out):
    if backend.steps > backend.late:
        raise RuntimeError("level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)")
    return out


def slow(backend, args, out):
    time.sleep(0.002)
    return out


def no_primitive(backend, args, out):
    raise RuntimeError("could not create a primitive")


def no_bfloat16(backend, args, out):
    if out.dtype == torch.bfloat16:
        raise RuntimeError("\"addmm_impl_xpu_\" not implemented for 'BFloat16'")
    return out


def nan_from_fused(backend, func, args, run):
    attending = func is functional.scaled_dot_product_attention
    fused = attending and torch.backends.cuda.flash_sdp_enabled()
    return run() * torch.nan if fused else run()


def one_head_off(backend, func, args, run):
    out = run()
    if func is functional.scaled_dot_product_attention:
        out = out.clone()
        out[:, -1] *= 1.01
    return out


def norm_off(backend, func, args, run):
    return run() * 1.01 if func is functional.layer_norm else run()


def topk_swapped(backend, func, args, run):
    out = run()
    if func is not Tensor.topk:
        return out
    indices = torch.cat([out.indices[..., :2].flip(-1), out.indices[..., 2:]], dim=-1)
    return torch.return_types.topk((out.values, indices))


def stale_cache(backend, func, args, run):
    """Every ninth write of one position puts there what stood in the slot before it."""
    slot = args[0] if func is Tensor.copy_ else None
    if slot is None or slot.dim() != 4 or slot.shape[2] != 1:
        return run()
    backend.writes += 1
    before = slot.storage_offset() - slot.stride(2)
    if backend.writes % 9 == 0 and before >= 0:
        return slot.copy_(slot.as_strided(slot.shape, slot.stride(), before).clone())
    return run()


def ignores_strides(backend, func, args, run):
    """A dense but transposed tensor is copied in the order in which it lies in memory."""
    out = run()
    if func not in (Tensor.contiguous, Tensor.reshape) or args[0].is_contiguous():
        return out
    dense = args[0].untyped_storage().nbytes() == args[0].nbytes
    return args[0].as_strided((args[0].numel(),), (1,)).clone().view(out.shape) if dense else out


def dilation_fails(backend, func, args, run):
    if func is torch.conv1d:
        raise RuntimeError("could not create a primitive descriptor for convolution forward")
    return run()


def late_rotation(backend, func, args, run):
    """Right for a while, then wrong where only the whole model shows it: in the embeddings."""
    out = run()
    return out.flip(-1) if func is functional.embedding and backend.steps > 3 else out


FAULTS = {
    "healthy": Fault(),
    "zeros from linears at one shape only": Fault(on_linear(zeros_at_one_shape)),
    "NaN every n-th call": Fault(on_linear(now_and_then_nan)),
    "NaN only from fused attention": Fault(nan_from_fused),
    "one head's values wrong by 1%": Fault(one_head_off),
    "norm wrong by 1%": Fault(norm_off),
    "topk indices swapped": Fault(topk_swapped),
    "stale cache write": Fault(stale_cache),
    "transposed non-contiguous copy": Fault(ignores_strides),
    "bf16 op not implemented": Fault(on_linear(no_bfloat16)),
    "could not create a primitive": Fault(on_linear(no_primitive)),
    "codec convolution fails": Fault(dilation_fails),
    "out of memory": Fault(out_of_memory=True),
    "abort of the process": Fault(on_linear(late_abort)),
    "hang": Fault(on_linear(late_hang)),
    "slow device": Fault(on_linear(slow)),
    "wrong device index": Fault(location="xpu:1"),
    "a different card responds": Fault(card=Card("cpu", "Integrated", "1.0", True)),
    "growth of memory": Fault(leak=MIB),
    "drift that starts after 1,000 steps": Fault(on_linear(drift)),
    "wrong in the whole model only": Fault(late_rotation),
    "NaN mid-take": Fault(on_linear(late_nan)),
    "device lost mid-take": Fault(on_linear(late_error)),
}


def as_written(file: Path) -> FaultyBackend:
    """The fault that a file names just now, as "NAME@STEPS": steps before a late one begins."""
    name, late = file.read_text().split("@")
    return FaultyBackend(name, int(late))


class ThreadProcess(DeviceProcess):
    """The same protocol with a thread on the other side: no interpreter to start. For devices that
    do not hang: a thread cannot be killed."""

    def __init__(self, target: Callable, *args: object) -> None:
        self._pipe, child_pipe = multiprocessing.Pipe()
        self._process = _Thread(target=target, args=(child_pipe, *args), daemon=True)
        self._process.start()


class _Thread(threading.Thread):
    exitcode = 0

    def kill(self) -> None:
        """A thread cannot be killed; closing the pipe lets it end."""

    def join(self, timeout: float | None = None) -> None:
        super().join(min(timeout or 0, 0.05))
