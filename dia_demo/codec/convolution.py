"""The codec's convolutions: five backends in two precisions, and the choice among them.

Rows of channels [T, C] are in memory what oneDNN takes for an image of one line, channels last. So
a convolution over time is a 2D convolution of oneDNN, and its result is again rows of channels.

Backends round differently, so that the samples depend on the choice: it is a fixed rule. bfloat16
where the processor multiplies it and the codec is large (49 dB below the sound were measured on
speech of the embedded voice; tests/codec/test_codec.py demands 30). Then the first of BACKENDS that
suits the processor and the convolution; their order is that of their speed (docs/performance.md).

Descript's full size on 2 cores of a Zen 5 server (AVX512_BF16), x realtime, all in one run: dac as
it loads 0.81, weight norm folded 0.79, folded in bfloat16 2.9; here in float32 unfolded 0.8, packed
2.3, in bfloat16 plain 2.6, unfolded 3.4, packed 4.4 (5.0 in a quieter run).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from dia_demo.codec.pieces import Convolution, Make, piece_threads, split_convolution
from dia_demo.codec.winograd import GroupedWinogradConvolution, WinogradConvolution
from dia_demo.machine.processor import has_avx512, is_x86, multiplies_bfloat16
from dia_demo.model.autotune import Case, choose_correct, milliseconds_of

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# Relative L2 error against float64 that one convolution may have.
LARGEST_ERROR = {torch.float32: 1e-5, torch.bfloat16: 1e-2}
# A codec with more work than this, in GFLOP for a second of audio, is computed in bfloat16. That of
# the embedded voice has 1, Descript's at 44.1 kHz 139.
LIGHT_GFLOP = 10.0
# Multiplications of a convolution whose speed is measured, and its most rows: those of a stream's
# longest block. (A tiny codec would need millions of rows for as much work, which takes seconds.)
MEASURED_WORK, MEASURED_MOST_ROWS = 2e8, 2**14
MEASURED_SECONDS, MEASURED_REPEATS = 0.05, 4
# So many rows of a result are compared with float64.
CHECKED_ROWS = 64


class OneDnnConvolution:
    """oneDNN's convolution, its weights packed once in the order that suits this processor."""

    def __init__(self, weight_OIK: Tensor, bias_O: Tensor, dilation: int, rows: int) -> None:
        self.bias_O, self.dilation = bias_O, [1, dilation]
        self.convolve = torch.ops.mkldnn._convolution_pointwise.default
        self.add_convolved = torch.ops.mkldnn._convolution_pointwise_.binary
        reach = dilation * (weight_OIK.shape[-1] - 1)
        line = [1, weight_OIK.shape[1], 1, rows + reach]
        self.packed = torch.ops.mkldnn._reorder_convolution_weight(
            weight_OIK.unsqueeze(2).contiguous(), [0, 0], [1, 1], self.dilation, 1, line
        )

    def __call__(self, x_TI: Tensor) -> Tensor:
        out_1O1T = self.convolve(
            _line(x_TI), self.packed, self.bias_O, [0, 0], [1, 1], self.dilation, 1, "none", [], ""
        )
        return _rows(out_1O1T)

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        self.add_convolved(
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
# For some convolutions alone (`supports`).
WINOGRAD = {"Winograd": WinogradConvolution, "Winograd grouped": GroupedWinogradConvolution}
BACKENDS: dict[str, Make] = {
    **WINOGRAD,
    "oneDNN packed": OneDnnConvolution,
    "unfolded": UnfoldedConvolution,
    REFERENCE: PlainConvolution,
}


def _suits(backend: str) -> bool:
    """Whether a backend may be the fastest on this class of processors."""
    if backend == "Winograd":  # MKL's products use half of the lanes of AVX-512 on AMD.
        return not has_avx512()
    if backend == "Winograd grouped":
        return has_avx512()
    return backend != "oneDNN packed" or is_x86()


def _line(x_TC: Tensor) -> Tensor:
    return x_TC.view(1, 1, *x_TC.shape).permute(0, 3, 1, 2)


def _rows(x_1C1T: Tensor) -> Tensor:
    return x_1C1T.permute(0, 2, 3, 1).flatten(0, 2)  # Already channels last: no copy.


@dataclass(frozen=True)
class BackendChoice:
    """The precision and backend of a codec's convolutions, and why.

    general: the backend of convolutions that `backend` does not support.
    """

    precision: str
    backend: str
    general: str
    reason: str

    @property
    def dtype(self) -> torch.dtype:
        return PRECISIONS[self.precision]

    def build(
        self, weight_OIK: Tensor, bias_O: Tensor, rows: int, dilation: int = 1
    ) -> Convolution:
        """A convolution in pieces. rows: the usual number of its outputs."""
        weight_OIK = weight_OIK.to(self.dtype).contiguous()
        backend = self.backend
        if backend in WINOGRAD and not WINOGRAD[backend].supports(weight_OIK):
            backend = self.general
        make = BACKENDS.get(backend, PlainConvolution)
        return split_convolution(make, weight_OIK, bias_O.to(self.dtype), dilation, rows)


def choose_backend(
    weight_OIK: Tensor, gflop_per_second: float, precision: str = "auto"
) -> BackendChoice:
    """The backend and precision for a codec, checked on one of its convolutions.

    gflop_per_second: the work of the whole decoder for one second of audio.
    """
    why = "as asked"
    if precision == "auto":
        is_large = gflop_per_second > LIGHT_GFLOP
        precision = "bfloat16" if multiplies_bfloat16() and is_large else "float32"
        why = f"{gflop_per_second:.0f} GFLOP for a second of audio"
    cases = {
        backend: partial(_cases, weight_OIK.float(), PRECISIONS[precision], backend)
        for backend in BACKENDS
        if _suits(backend)
    }
    operation = f"the codec's convolutions in {precision}"
    best = choose_correct(operation, cases) or REFERENCE
    general = best
    if best in WINOGRAD:
        others = {backend: case for backend, case in cases.items() if backend not in WINOGRAD}
        general = choose_correct(f"{operation}, narrow", others) or REFERENCE
    reason = f"{precision} ({why}), {best}: by a fixed rule for this class of processors"
    return BackendChoice(precision, best, general, reason)


@torch.inference_mode()
def realtime(
    choice: BackendChoice, weight_OIK: Tensor, gflop_per_second: float, share: float
) -> float:
    """Seconds of audio a second at the speed of a codec's largest convolution, measured here.

    share: how much of the decoder's work is in convolutions that support the same backend.
    """
    rows = _measured_rows(weight_OIK)
    bias_O = torch.zeros(len(weight_OIK))
    x_TI = torch.randn(rows + weight_OIK.shape[-1] - 1, weight_OIK.shape[1]).to(choice.dtype)
    seconds = 0.0
    for backend, part in ((choice.backend, share), (choice.general, 1 - share)):
        convolution = replace(choice, backend=backend).build(weight_OIK, bias_O, rows)
        with piece_threads():
            ms = milliseconds_of(partial(convolution, x_TI), MEASURED_SECONDS, MEASURED_REPEATS)
        seconds += part * ms / 1000
    gflop = 2e-9 * weight_OIK.numel() * rows
    return gflop / seconds / gflop_per_second


def _cases(weight_OIK: Tensor, dtype: torch.dtype, backend: str) -> list[Case]:
    """The one check of a backend. NotImplementedError where it does not support the convolution."""
    weight_OIK = weight_OIK.to(dtype)
    if backend in WINOGRAD and not WINOGRAD[backend].supports(weight_OIK):
        raise NotImplementedError(f"{backend} is for wide float32 convolutions of kernel 7")
    kernel = weight_OIK.shape[-1]
    generator = torch.Generator().manual_seed(0)
    x_TI = torch.randn(CHECKED_ROWS + kernel - 1, weight_OIK.shape[1], generator=generator)
    x_TI = x_TI.to(dtype)
    bias_O = torch.zeros(len(weight_OIK), dtype=dtype)
    expected_TO = torch.conv1d(x_TI.double().t()[None], weight_OIK.double())[0].t()
    convolution = BACKENDS[backend](weight_OIK, bias_O, 1, CHECKED_ROWS)
    largest_error = None if backend == REFERENCE else LARGEST_ERROR[dtype]
    return [Case(partial(convolution, x_TI), expected_TO, largest_error)]


def _measured_rows(weight_OIK: Tensor) -> int:
    return min(MEASURED_MOST_ROWS, max(64, int(MEASURED_WORK / weight_OIK.numel())))
