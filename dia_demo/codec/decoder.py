"""The codec's decoder over time as it comes: each layer keeps the rows that its next ones need.

So codes that arrive bit by bit cost no more than codes decoded whole: nothing is computed twice.
What a stream keeps lies outside the layers, in its `Kept`. Shapes: T rows of C channels (I in, O
out), a row lying together in memory; T counts frames at the decoder's start, samples at its end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import ceil, prod

import torch
from torch import Tensor

from dia_demo.codec.convolution import Choice, choose
from dia_demo.codec.snake import Snake, snake_kind

DILATIONS = (1, 3, 9)
# Weights are packed for blocks of this many frames. What comes at a take's ends is filled up with
# zeros to whole steps: oneDNN compiles for every new length, and for far shorter ones it would
# rearrange all weights at every call.
USUAL_FRAMES = 32
STEP_FRAMES = 16
# By layer: its rows for next time.
Kept = dict[object, Tensor]
Read = Callable[[str], Tensor]

log = logging.getLogger(__name__)


class OverTime:
    """A convolution along a stream, with zeros before its first row and after its last."""

    def __init__(
        self,
        choice: Choice,
        weight_OIK: Tensor,
        bias_O: Tensor,
        zeros: int,
        rows: int,
        dilation: int = 1,
        snake: Snake | None = None,
    ) -> None:
        self.outputs, self.inputs, kernel = weight_OIK.shape
        self.reach, self.zeros, self.snake = dilation * (kernel - 1), zeros, snake
        self.step = rows * STEP_FRAMES // USUAL_FRAMES
        self.convolution = choice.build(weight_OIK, bias_O, rows, dilation)

    def __call__(self, x_TI: Tensor, kept: Kept, last: bool) -> Tensor:
        """The rows that can be computed now, of the activated x where there is an activation."""
        out_TO, ready = self.compute(x_TI, kept, last)
        return out_TO[:ready]

    def compute(self, x_TI: Tensor, kept: Kept, last: bool) -> tuple[Tensor, int]:
        """Whole steps of rows, and how many of them are rows of the stream."""
        before = kept.get(self)
        if before is None:
            before = x_TI.new_zeros(self.zeros, self.inputs)
        start, end = len(before), len(before) + len(x_TI)
        stop = end + (self.zeros if last else 0)
        ready = max(0, stop - self.reach)
        steps = -(-ready // self.step)
        rows = x_TI.new_empty(max(stop, self.reach + steps * self.step), self.inputs)
        rows[:start] = before
        if self.snake is None:
            rows[start:end] = x_TI
        else:
            self.snake(x_TI, rows[start:end])
        rows[end:] = 0
        kept[self] = rows[ready:stop].clone()
        return (self.convolution(rows) if ready else x_TI.new_empty(0, self.outputs)), ready


class Upsample:
    """The transposed convolution of kernel 2 * stride, after its activation.

    An output depends on two neighbouring inputs, so all `stride` outputs between the two are one
    row of a convolution of kernel 2: [T, I] to [T, stride * O], which is [stride * T, O].
    """

    def __init__(
        self, choice: Choice, weight_IOK: Tensor, bias_O: Tensor, rows: int, snake: Snake
    ) -> None:
        stride = weight_IOK.shape[-1] // 2
        self.outputs, self.cut = weight_IOK.shape[1], ceil(stride / 2)
        # [I, O, tap, stride] to [stride, O, I, tap]; the first tap is the older input's.
        taps = weight_IOK.unflatten(-1, (2, stride)).flip(2).permute(3, 1, 0, 2)
        self.over_time = OverTime(
            choice, taps.flatten(0, 1), bias_O.repeat(stride), 1, rows, snake=snake
        )

    def __call__(self, x_TI: Tensor, kept: Kept, last: bool) -> Tensor:
        first = self.over_time not in kept
        out_TO = self.over_time(x_TI, kept, last).view(-1, self.outputs)
        return out_TO[self.cut if first else 0 : len(out_TO) - (self.cut if last else 0)]


class ResidualUnit:
    """x + a narrow convolution of a wide one, each after its activation."""

    def __init__(self, choice: Choice, read: Read, name: str, rows: int, dilation: int) -> None:
        weight, bias = read(f"{name}.1.weight"), read(f"{name}.1.bias")
        zeros = dilation * (weight.shape[-1] - 1) // 2
        snake = Snake(read(f"{name}.0.alpha").flatten())
        self.wide = OverTime(choice, weight, bias, zeros, rows, dilation, snake)
        self.snake = Snake(read(f"{name}.2.alpha").flatten())
        self.narrow = choice.build(read(f"{name}.3.weight"), read(f"{name}.3.bias"), rows)

    def __call__(self, x_TC: Tensor, kept: Kept, last: bool) -> Tensor:
        inner_TC, ready = self.wide.compute(x_TC, kept, last)
        before = kept.get(self, x_TC[:0])
        filling = x_TC.new_zeros(max(0, len(inner_TC) - len(before) - len(x_TC)), x_TC.shape[1])
        out_TC = torch.cat([before, x_TC, filling])
        kept[self] = out_TC[ready : len(before) + len(x_TC)].clone()
        if ready:
            self.snake(inner_TC)
            self.narrow.add(inner_TC, out_TC[: len(inner_TC)])
        return out_TC[:ready]


class Codebooks:
    """Codes to the decoder's input: the sum of every book's vector, widened; in float32."""

    def __init__(self, read: Read, num_codebooks: int) -> None:
        names = [f"quantizer.quantizers.{book}" for book in range(num_codebooks)]
        self.vectors_VD = [read(f"{name}.codebook.weight") for name in names]
        widen = [read(f"{name}.out_proj.weight").flatten(1) for name in names]
        self.widen_DL = torch.cat(widen, dim=1).t().contiguous()
        self.bias_L = sum(read(f"{name}.out_proj.bias") for name in names)

    def __call__(self, codes_TC: Tensor) -> Tensor:
        found = [vectors[codes_TC[:, book]] for book, vectors in enumerate(self.vectors_VD)]
        return torch.addmm(self.bias_L, torch.cat(found, dim=1), self.widen_DL)


class Decoder:
    """Codes to samples. `choice` says in which precision and form, and why."""

    def __init__(
        self,
        read: Read,
        work: dict[str, int],
        num_codebooks: int,
        num_blocks: int,
        frames_per_second: float,
        precision: str = "auto",
    ) -> None:
        """read: a tensor in float32 by dac.DAC's name, weight norm folded. work: `decoder_work`."""
        gflop_per_second = 2e-9 * sum(work.values()) * frames_per_second
        log.info("the codec's activation: %s", snake_kind())  # Compiled now, not in the first take.
        heaviest = max(work, key=work.get)  # One of kernel 7: they do nine tenths of the work.
        self.choice = choose(read(heaviest), gflop_per_second, precision)
        self.codebooks = Codebooks(read, num_codebooks)
        self.layers = list(_layers(read, self.choice, num_blocks))

    def __call__(self, codes_TC: Tensor, kept: Kept, last: bool) -> Tensor:
        """The samples, float32 [N], that can be computed now that these codes follow.

        kept: empty for a new stream, then what the call before left in it.
        """
        x_TC = self.codebooks(codes_TC).to(self.choice.dtype)
        for layer in self.layers:
            x_TC = layer(x_TC, kept, last)
        return x_TC[:, 0].float().tanh()


def decoder_work(shapes: dict[str, tuple[int, ...]], rates: list[int]) -> dict[str, int]:
    """Multiplications for one frame by each of the decoder's convolutions, by its weight's name."""
    stages, rows = {"0": 1}, 1
    for number, rate in enumerate(rates, start=1):
        rows *= rate
        stages[str(number)] = rows
    stages[str(len(rates) + 2)] = rows
    work = {}
    for name, shape in shapes.items():
        if name.startswith("decoder.") and name.endswith(".weight"):
            work[name] = stages[name.split(".")[2]] * prod(shape)
    for number, rate in enumerate(rates, start=1):
        work[f"decoder.model.{number}.block.1.weight"] //= rate  # It runs on its input's rows.
    return work


def _layers(read: Read, choice: Choice, blocks: int):
    rows = USUAL_FRAMES

    def ends(name: str, snake: Snake | None = None) -> OverTime:
        weight = read(f"{name}.weight")
        return OverTime(
            choice, weight, read(f"{name}.bias"), weight.shape[-1] // 2, rows, snake=snake
        )

    yield ends("decoder.model.0")
    for number in range(1, blocks + 1):
        name = f"decoder.model.{number}.block"
        snake = Snake(read(f"{name}.0.alpha").flatten())
        weight = read(f"{name}.1.weight")
        yield Upsample(choice, weight, read(f"{name}.1.bias"), rows, snake)
        rows *= weight.shape[-1] // 2
        for unit, dilation in enumerate(DILATIONS, start=2):
            yield ResidualUnit(choice, read, f"{name}.{unit}.block", rows, dilation)
    snake = Snake(read(f"decoder.model.{blocks + 1}.alpha").flatten())
    yield ends(f"decoder.model.{blocks + 2}", snake)
