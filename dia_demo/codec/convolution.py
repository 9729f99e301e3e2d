"""The codec's convolutions: five backends in two precisions, and the choice among them.

Rows of channels [T, C] are in memory what oneDNN takes for an image of one line, channels last. So
a convolution over time is a 2D convolution of oneDNN, and its result is again rows of channels.

The trial (model/autotune.py) runs every backend on the decoder's largest layer, in float32 and, if
the processor multiplies it, bfloat16: a fraction of a second at each start. Decoding in bfloat16
must be within 30 dB of float32 (tests/codec/test_codec.py); 49 dB were measured on speech of the
embedded voice.

Descript's full size on 2 cores of a Zen 5 server (AVX512_BF16), x realtime, all in one run: dac as
it loads 0.81, weight norm folded 0.79, folded in bfloat16 2.9; here in float32 unfolded 0.8, packed
2.3, in bfloat16 plain 2.6, unfolded 3.4, packed 4.4 (5.0 in a quieter run).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from dia_demo.codec.winograd import GroupedWinogradConvolution, WinogradConvolution
from dia_demo.model.autotune import SLOWER_BY, Budget, Case, first_near_fastest, run_trial
from dia_demo.processor import multiplies_bfloat16

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# Relative L2 error against float64 that one convolution may have.
LARGEST_ERROR = {torch.float32: 1e-5, torch.bfloat16: 1e-2}
# A backend that is so many times slower is not chosen for its place in BACKENDS alone. The sounds
# of a precision's backends differ by less than can be heard, so this may be little.
BACKEND_SLOWER_BY = 1.15
# A codec that is this many times faster than realtime in float32 is not computed in bfloat16.
FAST_ENOUGH = 20.0
# Multiplications of one call of the trial, and its most rows: those of a stream's longest block. (A
# tiny codec would need millions of rows for as much work, which would take seconds.)
TRIAL_WORK = 2e8
TRIAL_MOST_ROWS = 2**14
TRIAL_BUDGET = Budget(seconds=0.05, repeats=4)
# So many rows of a result are compared with float64.
CHECKED_ROWS = 8


class Convolution(Protocol):
    """A convolution of stride 1 without padding: [T, I] to [T - reach, O]."""

    def __call__(self, x_TI: Tensor) -> Tensor: ...

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        """out += the convolution of x."""


class OneDnnConvolution:
    """oneDNN's convolution, its weights packed once in the order that suits this processor."""

    def __init__(self, weight_OIK: Tensor, bias_O: Tensor, dilation: int, rows: int) -> None:
        self.bias_O, self.dilation = bias_O, [1, dilation]
        reach = dilation * (weight_OIK.shape[-1] - 1)
        line = [1, weight_OIK.shape[1], 1, rows + reach]
        self.packed = torch.ops.mkldnn._reorder_convolution_weight(
            weight_OIK.unsqueeze(2).contiguous(), [0, 0], [1, 1], self.dilation, 1, line
        )

    def __call__(self, x_TI: Tensor) -> Tensor:
        out_1O1T = torch.ops.mkldnn._convolution_pointwise(
            _line(x_TI), self.packed, self.bias_O, [0, 0], [1, 1], self.dilation, 1, "none", [], ""
        )
        return _rows(out_1O1T)

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        torch.ops.mkldnn._convolution_pointwise_.binary(
            _line(out_TO), _line(x_TI), self.packed, self.bias_O,
            [0, 0], [1, 1], self.dilation, 1, "add", 1.0, None, [], None,
        )  # fmt: skip


class UnfoldedConvolution:
    """One matrix product: the inputs of every output are laid out side by side (im2col)."""

    def __init__(self, weight_OIK: Tensor, bias_O: Tensor, dilation: int, rows: int) -> None:
        self.bias_O, self.dilation, self.kernel = bias_O, dilation, weight_OIK.shape[-1]
        self.weight = weight_OIK.permute(0, 2, 1).flatten(1).contiguous()

    def __call__(self, x_TI: Tensor) -> Tensor:
        count, width = len(x_TI) - self.dilation * (self.kernel - 1), x_TI.shape[1]
        steps = (width, self.dilation * width, 1)
        windows = x_TI.contiguous().as_strided((count, self.kernel, width), steps)
        return functional.linear(windows.reshape(count, -1), self.weight, self.bias_O)

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        out_TO += self(x_TI)


class PlainConvolution:
    """torch's own convolution, channels first. It runs everywhere and is the reference."""

    def __init__(self, weight_OIK: Tensor, bias_O: Tensor, dilation: int, rows: int) -> None:
        self.weight_OIK, self.bias_O, self.dilation = weight_OIK, bias_O, dilation

    def __call__(self, x_TI: Tensor) -> Tensor:
        out_1OT = torch.conv1d(x_TI.t()[None], self.weight_OIK, self.bias_O, dilation=self.dilation)
        return out_1OT[0].t().contiguous()

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        out_TO += self(x_TI)


REFERENCE = "plain"
# For some convolutions alone (`WinogradConvolution.supports`).
WINOGRAD = {"Winograd": WinogradConvolution, "Winograd grouped": GroupedWinogradConvolution}
BACKENDS: dict[str, Callable[[Tensor, Tensor, int, int], Convolution]] = {
    "oneDNN packed": OneDnnConvolution,
    "unfolded": UnfoldedConvolution,
    **WINOGRAD,
    REFERENCE: PlainConvolution,
}


def _line(x_TC: Tensor) -> Tensor:
    return x_TC.t()[None, :, None, :]


def _rows(x_1C1T: Tensor) -> Tensor:
    return x_1C1T[0, :, 0].t().contiguous()  # Already channels last: no copy.


@dataclass(frozen=True)
class BackendChoice:
    """The precision and backend of a codec's convolutions, and why.

    general: the backend of convolutions that `backend` does not support. gflops: GFLOP/s of direct
    convolution to which the whole decoder's speed corresponds, for each (precision, backend) that
    passed the trial. realtime: seconds of audio a second at the chosen one's speed.
    """

    precision: str
    backend: str
    general: str
    gflops: dict[tuple[str, str], float]
    reason: str
    realtime: float

    @property
    def dtype(self) -> torch.dtype:
        return PRECISIONS[self.precision]

    def build(
        self, weight_OIK: Tensor, bias_O: Tensor, rows: int, dilation: int = 1
    ) -> Convolution:
        """A convolution. rows: the usual number of its outputs."""
        weight_OIK = weight_OIK.to(self.dtype).contiguous()
        backend = self.backend
        if backend in WINOGRAD and not WinogradConvolution.supports(weight_OIK):
            backend = self.general
        make = BACKENDS.get(backend, PlainConvolution)
        return make(weight_OIK, bias_O.to(self.dtype), dilation, rows)


def choose_backend(
    weight_OIK: Tensor, gflop_per_second: float, precision: str = "auto", share: float = 1.0
) -> BackendChoice:
    """The backend and precision for a codec, by a trial on one of its convolutions.

    gflop_per_second: the work of the whole decoder for one second of audio. share: how much of it
    is in convolutions that support the same backends as this one. "auto" takes float32 where that
    is fast enough or clearly faster than bfloat16.
    """
    precisions = list(PRECISIONS) if precision == "auto" else [precision]
    if precision == "auto" and not multiplies_bfloat16():
        precisions.remove("bfloat16")
    candidates = {
        (name, backend): partial(_cases, weight_OIK.float(), PRECISIONS[name], backend)
        for name in precisions
        for backend in BACKENDS
    }
    times = run_trial("the codec's convolutions", candidates, TRIAL_BUDGET)
    milliseconds = {key: ms for key, (ms,) in times.items()}
    gflop = 2e-9 * weight_OIK.numel() * _trial_rows(weight_OIK)
    gflops = {key: 1000 * gflop / ms for key, ms in milliseconds.items()}
    general = {name: _general(gflops, name) for name in precisions}
    for (name, backend), speed in gflops.items():
        rest = gflops.get((name, general[name]))
        if backend in WINOGRAD and rest:
            gflops[name, backend] = 1 / (share / speed + (1 - share) / rest)
    best = _best(gflops, FAST_ENOUGH * gflop_per_second)
    realtime = float(gflops[best] / gflop_per_second)
    tried = ", ".join(f"{name} {backend} {speed:.0f}" for (name, backend), speed in gflops.items())
    reason = f"{best[0]}, {best[1]}: about {realtime:.1f}x realtime here (GFLOP/s: {tried})"
    return BackendChoice(*best, general[best[0]], gflops, reason, realtime)


def _best(gflops: dict[tuple[str, str], float], enough: float) -> tuple[str, str]:
    fastest: dict[str, float] = {}
    for (name, _), speed in gflops.items():
        fastest[name] = max(speed, fastest.get(name, 0.0))
    float32, bfloat16 = fastest.get("float32", 0.0), fastest.get("bfloat16", 0.0)
    # On a busy machine every speed is too low: bfloat16 has to be clearly faster as well.
    needs_speed = float32 < enough and float32 < SLOWER_BY * bfloat16
    precision = "bfloat16" if needs_speed or not float32 else "float32"
    times = {key: [1 / speed] for key, speed in gflops.items() if key[0] == precision}
    return first_near_fastest(times, BACKEND_SLOWER_BY)


def _general(gflops: dict[tuple[str, str], float], precision: str) -> str:
    """The backend of a precision for convolutions of every size."""
    times = {
        backend: [1 / speed]
        for (name, backend), speed in gflops.items()
        if name == precision and backend not in WINOGRAD
    }
    return first_near_fastest(times) if times else REFERENCE


def _cases(weight_OIK: Tensor, dtype: torch.dtype, backend: str) -> list[Case]:
    """The trial's one case of a backend: as much work as a block of a large codec.

    Raises NotImplementedError where the backend does not support the convolution.
    """
    if backend in WINOGRAD and not WinogradConvolution.supports(weight_OIK.to(dtype)):
        raise NotImplementedError(f"{backend} is for wide float32 convolutions of kernel 7")
    kernel = weight_OIK.shape[-1]
    rows = _trial_rows(weight_OIK)
    generator = torch.Generator().manual_seed(0)
    x_TI = torch.randn(rows + kernel - 1, weight_OIK.shape[1], generator=generator).to(dtype)
    weight_OIK = weight_OIK.to(dtype)
    bias_O = torch.zeros(len(weight_OIK), dtype=dtype)
    first_TI = x_TI[: CHECKED_ROWS + kernel - 1].double()
    expected_TO = torch.conv1d(first_TI.t()[None], weight_OIK.double())[0].t()
    convolution = BACKENDS[backend](weight_OIK, bias_O, 1, rows)

    def run(times: int) -> Tensor:
        for _ in range(times):
            out_TO = convolution(x_TI)
        return out_TO

    return [Case(run, expected_TO, None if backend == REFERENCE else LARGEST_ERROR[dtype])]


def _trial_rows(weight_OIK: Tensor) -> int:
    return min(TRIAL_MOST_ROWS, max(64, int(TRIAL_WORK / weight_OIK.numel())))
