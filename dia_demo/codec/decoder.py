"""The codec's decoder as a stream: each layer keeps the input rows that its next outputs need.

Codes that arrive in pieces cost no more than codes decoded whole, since nothing is computed twice.
The state of a stream is outside the layers, in its `StreamState`. Shapes: T rows of C channels (I
in, O out), a row contiguous in memory; T counts frames at the decoder's start, samples at its end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from math import ceil, prod

import torch
from torch import Tensor

from dia_demo.codec.convolution import BackendChoice, choose_backend, realtime
from dia_demo.codec.pieces import piece_threads
from dia_demo.codec.snake import Snake, snake_kind

DILATIONS = (1, 3, 9)
# Weights are packed for blocks of this many frames. Shorter blocks, at a take's ends, are padded
# with zeros to multiples of STEP_FRAMES: oneDNN compiles for every new length, and for much shorter
# ones it would reorder all weights at every call.
USUAL_FRAMES = 32
STEP_FRAMES = 16
# The input rows that each layer keeps for its next outputs.
StreamState = dict[object, Tensor]
Read = Callable[[str], Tensor]

log = logging.getLogger(__name__)


class StreamingConv1d:
    """A convolution over a stream, padded with zeros at its beginning and end.

    padding: rows of zeros at each end. rows: the usual number of outputs of a block.
    """

    def __init__(
        self,
        choice: BackendChoice,
        weight_OIK: Tensor,
        bias_O: Tensor,
        padding: int,
        rows: int,
        dilation: int = 1,
        snake: Snake | None = None,
    ) -> None:
        self.outputs, self.inputs, kernel = weight_OIK.shape
        self.reach, self.padding, self.snake = dilation * (kernel - 1), padding, snake
        self.step = rows * STEP_FRAMES // USUAL_FRAMES
        self.convolution = choice.build(weight_OIK, bias_O, rows, dilation)

    def __call__(self, x_TI: Tensor, state: StreamState, last: bool) -> Tensor:
        """The outputs that can be computed now, of snake(x) where there is an activation."""
        out_TO, available = self.compute(x_TI, state, last)
        return out_TO[:available]

    def compute(self, x_TI: Tensor, state: StreamState, last: bool) -> tuple[Tensor, int]:
        """Outputs padded to whole steps, and how many of them belong to the stream."""
        # Lengths by `shape`: `len` of a tensor takes a microsecond.
        before = state.get(self)
        if before is None:
            before = x_TI.new_zeros(self.padding, self.inputs)
        start, end = before.shape[0], before.shape[0] + x_TI.shape[0]
        stop = end + (self.padding if last else 0)
        available = max(0, stop - self.reach)
        steps = -(-available // self.step)
        rows = x_TI.new_empty(max(stop, self.reach + steps * self.step), self.inputs)
        rows[:start] = before
        if self.snake is None:
            rows[start:end] = x_TI
        else:
            self.snake(x_TI, rows[start:end])
        rows[end:] = 0
        state[self] = rows[available:stop].clone()
        out_TO = self.convolution(rows) if available else x_TI.new_empty(0, self.outputs)
        return out_TO, available


class StreamingConvTranspose1d:
    """A transposed convolution of kernel 2 * stride over a stream, after its activation.

    An output depends on two neighbouring inputs, so the `stride` outputs between the two are one
    row of a convolution of kernel 2: [T, I] to [T, stride * O], viewed as [stride * T, O].
    """

    def __init__(
        self, choice: BackendChoice, weight_IOK: Tensor, bias_O: Tensor, rows: int, snake: Snake
    ) -> None:
        stride = weight_IOK.shape[-1] // 2
        self.outputs, self.padding = weight_IOK.shape[1], ceil(stride / 2)
        # [I, O, tap, stride] to [stride, O, I, tap]; the first tap is the older input's.
        taps = weight_IOK.unflatten(-1, (2, stride)).flip(2).permute(3, 1, 0, 2)
        self.convolution = StreamingConv1d(
            choice, taps.flatten(0, 1), bias_O.repeat(stride), 1, rows, snake=snake
        )

    def __call__(self, x_TI: Tensor, state: StreamState, last: bool) -> Tensor:
        is_first = self.convolution not in state
        out_TO = self.convolution(x_TI, state, last).view(-1, self.outputs)
        start = self.padding if is_first else 0
        return out_TO[start : out_TO.shape[0] - (self.padding if last else 0)]


class ResidualUnit:
    """x + a convolution of kernel 1 of a dilated one, each after its activation."""

    def __init__(
        self, choice: BackendChoice, read: Read, name: str, rows: int, dilation: int
    ) -> None:
        weight, bias = read(f"{name}.1.weight"), read(f"{name}.1.bias")
        padding = dilation * (weight.shape[-1] - 1) // 2
        snake = Snake(read(f"{name}.0.alpha").flatten())
        self.dilated = StreamingConv1d(choice, weight, bias, padding, rows, dilation, snake)
        self.snake = Snake(read(f"{name}.2.alpha").flatten())
        self.pointwise = choice.build(read(f"{name}.3.weight"), read(f"{name}.3.bias"), rows)

    def __call__(self, x_TC: Tensor, state: StreamState, last: bool) -> Tensor:
        inner_TC, available = self.dilated.compute(x_TC, state, last)
        before = state.get(self, x_TC[:0])
        missing = max(0, inner_TC.shape[0] - before.shape[0] - x_TC.shape[0])
        out_TC = torch.cat([before, x_TC, x_TC.new_zeros(missing, x_TC.shape[1])])
        state[self] = out_TC[available : before.shape[0] + x_TC.shape[0]].clone()
        if available:
            self.snake(inner_TC)
            self.pointwise.add(inner_TC, out_TC[: inner_TC.shape[0]])
        return out_TC[:available]


class ResidualVQ:
    """Codes to the decoder's input: the sum of the codebooks' projected vectors, in float32."""

    def __init__(self, read: Read, num_codebooks: int) -> None:
        names = [f"quantizer.quantizers.{codebook}" for codebook in range(num_codebooks)]
        self.codebooks_VD = [read(f"{name}.codebook.weight") for name in names]
        projections = [read(f"{name}.out_proj.weight").flatten(1) for name in names]
        self.out_proj_DL = torch.cat(projections, dim=1).t().contiguous()
        biases = [read(f"{name}.out_proj.bias") for name in names]
        self.bias_L = sum(biases[1:], start=biases[0])

    def __call__(self, codes_TC: Tensor) -> Tensor:
        vectors = [table[codes_TC[:, c]] for c, table in enumerate(self.codebooks_VD)]
        return torch.addmm(self.bias_L, torch.cat(vectors, dim=1), self.out_proj_DL)


class StreamingDecoder:
    """Codes to samples. `choice`: the precision and backend of its convolutions, and why."""

    def __init__(
        self,
        read: Read,
        macs: dict[str, int],
        num_codebooks: int,
        num_blocks: int,
        frames_per_second: float,
        precision: str = "auto",
    ) -> None:
        """read: gives a tensor of dac.DAC by name, in float32, weight norm folded.

        macs: of `macs_per_frame`.
        """
        # Compiles the activation now, not during the first take.
        log.info("the codec's activation: %s", snake_kind())
        self.choice = choose(read, macs, frames_per_second, precision)
        self.quantizer = ResidualVQ(read, num_codebooks)
        self.layers = list(_layers(read, self.choice, num_blocks))

    def __call__(self, codes_TC: Tensor, state: StreamState, last: bool) -> Tensor:
        """Feed the stream's next codes; returns the samples, float32 [N], that are complete.

        state: of the stream, empty at its beginning; it is updated. last: no codes follow.
        """
        with piece_threads():
            x_TC = self.quantizer(codes_TC).to(self.choice.dtype)
            for layer in self.layers:
                x_TC = layer(x_TC, state, last)
            return x_TC[:, 0].float().tanh()


def choose(
    read: Read, macs: dict[str, int], frames_per_second: float, precision: str = "auto"
) -> BackendChoice:
    """How a decoder's convolutions are computed here, checked on the largest one."""
    return choose_backend(read(_largest(macs)), _gflop(macs, frames_per_second), precision)


def expected_realtime(read: Read, macs: dict[str, int], frames_per_second: float) -> float:
    """Seconds of audio a second if all of a decoder runs at the speed of its largest convolution,
    which is measured."""
    choice = choose(read, macs, frames_per_second)
    share = sum(work for name, work in macs.items() if _is_dilated(name)) / sum(macs.values())
    return realtime(choice, read(_largest(macs)), _gflop(macs, frames_per_second), share)


def _largest(macs: dict[str, int]) -> str:
    """One of the dilated convolutions, which do most of the work."""
    return max(macs, key=lambda name: macs[name])


def _gflop(macs: dict[str, int], frames_per_second: float) -> float:
    """The work for a second of audio."""
    return 2e-9 * sum(macs.values()) * frames_per_second


def macs_per_frame(shapes: dict[str, tuple[int, ...]], rates: list[int]) -> dict[str, int]:
    """Multiply-adds of each of the decoder's convolutions for one frame, by its weight's name."""
    stages, rows = {"0": 1}, 1
    for number, rate in enumerate(rates, start=1):
        rows *= rate
        stages[str(number)] = rows
    stages[str(len(rates) + 2)] = rows
    macs = {}
    for name, shape in shapes.items():
        if name.startswith("decoder.") and name.endswith(".weight"):
            macs[name] = stages[name.split(".")[2]] * prod(shape)
    for number, rate in enumerate(rates, start=1):
        # A transposed convolution runs on the rows of its input.
        macs[f"decoder.model.{number}.block.1.weight"] //= rate
    return macs


def _is_dilated(name: str) -> bool:
    """Whether this is the weight of a residual unit's dilated convolution."""
    return name.count(".block.") == 2 and name.endswith(".1.weight")


def _layers(
    read: Read, choice: BackendChoice, blocks: int
) -> Iterator[StreamingConv1d | StreamingConvTranspose1d | ResidualUnit]:
    rows = USUAL_FRAMES

    def outer(name: str, snake: Snake | None = None) -> StreamingConv1d:
        weight = read(f"{name}.weight")
        return StreamingConv1d(
            choice, weight, read(f"{name}.bias"), weight.shape[-1] // 2, rows, snake=snake
        )

    yield outer("decoder.model.0")
    for number in range(1, blocks + 1):
        name = f"decoder.model.{number}.block"
        snake = Snake(read(f"{name}.0.alpha").flatten())
        weight = read(f"{name}.1.weight")
        yield StreamingConvTranspose1d(choice, weight, read(f"{name}.1.bias"), rows, snake)
        rows *= weight.shape[-1] // 2
        for unit, dilation in enumerate(DILATIONS, start=2):
            yield ResidualUnit(choice, read, f"{name}.{unit}.block", rows, dilation)
    snake = Snake(read(f"decoder.model.{blocks + 1}.alpha").flatten())
    yield outer(f"decoder.model.{blocks + 2}", snake)
