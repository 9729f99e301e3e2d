"""How the codec's convolutions are computed, and in which precision: found by a short trial.

Rows of channels [T, C] lie in memory as a picture of one line, channels last, so a convolution
over time is one of oneDNN's over that line, and what it gives out is again rows of channels.

The trial runs every form on the decoder's heaviest layer, in float32 and, where the processor
multiplies it, bfloat16: a tenth of a second, once a start. A form whose error against float64 is
too large, or that does not run, is out. The gate for bfloat16 as a whole is 30 dB below the sound;
49 dB were measured on speech of the embedded voice.

Descript's full size on 2 cores of a Zen 5 server (AVX512_BF16), x realtime, all in one run: dac as
it loads 0.81, weight norm folded 0.79, folded in bfloat16 2.9; here in float32 unfolded 0.8, packed
2.3, in bfloat16 plain 2.6, unfolded 3.4, packed 4.4 (5.0 in a quieter run).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from dia_demo.processor import multiplies_bfloat16

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# Relative L2 error against float64 that one convolution may have.
LARGEST_ERROR = {torch.float32: 1e-5, torch.bfloat16: 1e-2}
# A codec this fast in float32 is no burden: then nothing is rounded to bfloat16.
FAST_ENOUGH = 20.0
# A trial is noisy: unless it is clearly slower, the first of FORMS is taken, and bfloat16 where
# float32 is not fast enough, so that a seed gives the same samples after every start.
SLOWER_BY = 1.3
# The trial: multiplications of one call, as many rows at most as a stream's longest block has, and
# calls. (A tiny codec would need millions of rows for so much work, and seconds.)
TRIAL_WORK = 2e8
TRIAL_MOST_ROWS = 2**14
TRIAL_REPEATS = 4

log = logging.getLogger(__name__)


class Convolution(Protocol):
    """Stride 1, unpadded: [T, I] to [T - reach, O]."""

    def __call__(self, x_TI: Tensor) -> Tensor: ...

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        """out += the convolution of x."""


class OneDnnConvolution:
    """The weights packed once in the order that oneDNN reads fastest on this processor."""

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
    """The inputs of every output side by side, times the weights as one matrix."""

    def __init__(self, weight_OIK: Tensor, bias_O: Tensor, dilation: int, rows: int) -> None:
        self.bias_O, self.dilation, self.kernel = bias_O, dilation, weight_OIK.shape[-1]
        self.weight = weight_OIK.permute(0, 2, 1).flatten(1).contiguous()

    def __call__(self, x_TI: Tensor) -> Tensor:
        count, width = len(x_TI) - self.dilation * (self.kernel - 1), x_TI.shape[1]
        steps = (width, self.dilation * width, 1)
        beside = x_TI.contiguous().as_strided((count, self.kernel, width), steps)
        return functional.linear(beside.reshape(count, -1), self.weight, self.bias_O)

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        out_TO += self(x_TI)


class PlainConvolution:
    """torch's own convolution, on channels first: it always runs, and is the reference."""

    def __init__(self, weight_OIK: Tensor, bias_O: Tensor, dilation: int, rows: int) -> None:
        self.weight_OIK, self.bias_O, self.dilation = weight_OIK, bias_O, dilation

    def __call__(self, x_TI: Tensor) -> Tensor:
        out_1OT = torch.conv1d(x_TI.t()[None], self.weight_OIK, self.bias_O, dilation=self.dilation)
        return out_1OT[0].t().contiguous()

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        out_TO += self(x_TI)


FORMS: dict[str, Callable[[Tensor, Tensor, int, int], Convolution]] = {
    "oneDNN packed": OneDnnConvolution,
    "unfolded": UnfoldedConvolution,
    "plain": PlainConvolution,
}


def _line(x_TC: Tensor) -> Tensor:
    return x_TC.t()[None, :, None, :]


def _rows(x_1C1T: Tensor) -> Tensor:
    return x_1C1T[0, :, 0].t().contiguous()  # Channels last already: nothing moves.


@dataclass(frozen=True)
class Choice:
    """precision and form that the codec runs in, and why. `gflops` of each that passed."""

    precision: str
    form: str
    gflops: dict[tuple[str, str], float]
    reason: str

    @property
    def dtype(self) -> torch.dtype:
        return PRECISIONS[self.precision]

    def build(
        self, weight_OIK: Tensor, bias_O: Tensor, rows: int, dilation: int = 1
    ) -> Convolution:
        """rows: how many outputs it will usually be asked for."""
        weight_OIK = weight_OIK.to(self.dtype).contiguous()
        return FORMS[self.form](weight_OIK, bias_O.to(self.dtype), dilation, rows)


@torch.inference_mode()
def choose(weight_OIK: Tensor, gflop_per_second: float, precision: str = "auto") -> Choice:
    """Time every form on one of the codec's convolutions; what fails or errs too much is left out.

    gflop_per_second: the work of the whole decoder for one second of audio. "auto" takes float32
    where that is fast enough or clearly faster than bfloat16.
    """
    wanted = list(PRECISIONS) if precision == "auto" else [precision]
    if precision == "auto" and not multiplies_bfloat16():
        wanted.remove("bfloat16")
    gflops = {
        (name, form): speed
        for name in wanted
        for form in FORMS
        if (speed := _trial(weight_OIK.float(), PRECISIONS[name], form)) is not None
    }
    best = _best(gflops, FAST_ENOUGH * gflop_per_second)
    about = gflops[best] / gflop_per_second
    tried = ", ".join(f"{name} {form} {speed:.0f}" for (name, form), speed in gflops.items())
    reason = f"{best[0]}, {best[1]}: about {about:.1f}x realtime here (GFLOP/s: {tried})"
    return Choice(*best, gflops, reason)


def _best(gflops: dict[tuple[str, str], float], enough: float) -> tuple[str, str]:
    fastest: dict[str, float] = {}
    for (name, _), speed in gflops.items():
        fastest[name] = max(speed, fastest.get(name, 0.0))
    exact, halved = fastest.get("float32", 0.0), fastest.get("bfloat16", 0.0)
    # A busy machine measures too little of everything: only what is clearly faster counts.
    needs_speed = exact < enough and exact < SLOWER_BY * halved
    precision = "bfloat16" if needs_speed or not exact else "float32"
    return next(
        key
        for key, speed in gflops.items()
        if key[0] == precision and SLOWER_BY * speed >= fastest[precision]
    )


def _trial(weight_OIK: Tensor, dtype: torch.dtype, form: str) -> float | None:
    """GFLOP/s of the best of a few calls; None where the form does not run or is off."""
    kernel = weight_OIK.shape[-1]
    rows = min(TRIAL_MOST_ROWS, max(64, int(TRIAL_WORK / weight_OIK.numel())))
    generator = torch.Generator().manual_seed(0)
    x_TI = torch.randn(rows + kernel - 1, weight_OIK.shape[1], generator=generator).to(dtype)
    weight_OIK = weight_OIK.to(dtype)
    bias_O = torch.zeros(len(weight_OIK), dtype=dtype)
    few = x_TI[: 8 + kernel - 1].double()
    expected = torch.conv1d(few.t()[None], weight_OIK.double())[0].t()
    try:
        convolution = FORMS[form](weight_OIK, bias_O, 1, rows)
        error = (convolution(x_TI)[:8].double() - expected).norm() / expected.norm()
    except (RuntimeError, AttributeError, NotImplementedError) as reason:
        log.info("the codec's form %s does not run here in %s: %s", form, dtype, reason)
        return None
    if not error <= LARGEST_ERROR[dtype] and form != "plain":
        log.warning("the codec's form %s is off by %.1e here and is not used", form, error)
        return None
    times = []
    for _ in range(TRIAL_REPEATS):
        began = perf_counter()
        convolution(x_TI)
        times.append(perf_counter() - began)
    return 2 * weight_OIK.numel() * rows / min(times) / 1e9
