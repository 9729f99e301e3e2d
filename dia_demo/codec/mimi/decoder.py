"""Mimi's decoder as a stream: k frames of codes in, k frames of samples out.

Every layer is causal, so nothing is held back. The state of a stream is outside the layers, in its
`MimiState`. Shapes: T rows of P channels, P a width in whole blocks (linear.py); T counts frames at
the decoder's start, samples at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from dia_demo.codec.mimi.config import STRIDE, MimiConfig
from dia_demo.codec.mimi.linear import WindowLinear, windows_kind
from dia_demo.codec.mimi.transformer import AttentionCache, StreamingTransformer
from dia_demo.codec.mimi.weights import StoredMimi, codebook_names
from dia_demo.kernels.packing import padded
from dia_demo.model.cpu_model import torch_threads

# Frames that are decoded together, so that weights are read once for them; by torch one alone,
# since torch rounds a row differently beside others.
_MOST_FRAMES = {"compiled": 4, "torch": 1}


@dataclass
class MimiState:
    """What a stream keeps: the last input rows of each layer, and keys and values."""

    cache: AttentionCache
    rows: dict[object, Tensor] = field(default_factory=dict)


class MimiDecoder:
    """Codes to samples. precision: of the stored weights, float32 or bfloat16."""

    def __init__(self, stored: StoredMimi, precision: str) -> None:
        config = stored.config
        self.most_frames = _MOST_FRAMES[windows_kind()]
        self._quantizer = _SplitQuantizer(stored, precision)
        self._upsample = _Upsample(stored)
        self._transformer = StreamingTransformer(stored, precision)
        self._layers = list(_layers(stored, precision))
        self._hidden = config.hidden_size

    def new_state(self) -> MimiState:
        return MimiState(self._transformer.new_cache())

    def __call__(self, codes_TC: Tensor, state: MimiState) -> Tensor:
        """Feed the stream's next frames, at most `most_frames`; returns their samples [N]."""
        threads = torch.get_num_threads()
        with torch_threads(1):
            x = self._quantizer(codes_TC, threads)[:, : self._hidden]
            x = self._upsample(x, state)
            x = self._transformer(x, state.cache, threads)
            x = functional.pad(x, (0, padded(self._hidden) - self._hidden))
            for layer in self._layers:
                x = layer(x, state, threads)
            return x[:, 0].clone()


class _SplitQuantizer:
    """The sums of the semantic and of the acoustic codebooks' vectors, each projected."""

    def __init__(self, stored: StoredMimi, precision: str) -> None:
        self._semantic = stored.config.num_semantic_quantizers
        tables, projections = [], []
        for name, codebooks in codebook_names(stored.config):
            tables += [stored.codebook(codebook) for codebook in codebooks]
            projections.append(stored.read(f"{name}.output_proj.weight").flatten(1))
        self._tables_CVD = torch.stack(tables)
        self._project = WindowLinear(torch.cat(projections, dim=1).unsqueeze(1), None, precision)

    def __call__(self, codes_TC: Tensor, threads: int) -> Tensor:
        vectors = [table[codes_TC[:, c]] for c, table in enumerate(self._tables_CVD)]
        semantic, acoustic = vectors[: self._semantic], vectors[self._semantic :]
        sums = [sum(part[1:], start=part[0]) for part in (semantic, acoustic)]
        x = torch.cat(sums, dim=1)
        return self._project(functional.pad(x, (0, self._project.width - x.shape[1])), threads)


class _Upsample:
    """A transposed convolution of each channel by itself: STRIDE rows of every frame and the one
    before it."""

    def __init__(self, stored: StoredMimi) -> None:
        # [C, 1, 2 * stride] to the factors of the newer and of the older frame, [stride, C] each.
        weight_CK = stored.read("upsample.conv.weight")[:, 0]
        self._new, self._old = weight_CK.t().contiguous().split(STRIDE)

    def __call__(self, x_TC: Tensor, state: MimiState) -> Tensor:
        x_TC = _with_history(self, x_TC, 1, state)
        new, old = x_TC[1:, None] * self._new, x_TC[:-1, None] * self._old
        return (new + old).flatten(0, 1)


class _Convolution:
    """A causal convolution of a stream, after an ELU where there is one."""

    def __init__(self, stored: StoredMimi, name: str, precision: str, has_elu: bool) -> None:
        weight_OIK = stored.read(f"{name}.conv.weight")
        bias_O = stored.read(f"{name}.conv.bias")
        self._linear = WindowLinear(weight_OIK.transpose(1, 2), bias_O, precision)
        self._has_elu = has_elu

    def __call__(self, x_TP: Tensor, state: MimiState, threads: int) -> Tensor:
        x_TP = functional.elu(x_TP) if self._has_elu else x_TP
        x_TP = _with_history(self, x_TP, self._linear.window - 1, state)
        return self._linear(x_TP, threads)


class _ConvTranspose:
    """A causal transposed convolution of kernel 2 * stride, after an ELU.

    Its `stride` outputs after an input depend on that input and the one before: they are one row of
    a linear of windows of two.
    """

    def __init__(self, stored: StoredMimi, name: str, precision: str) -> None:
        weight_IOK = stored.read(f"{name}.conv.weight")
        stride, outputs = weight_IOK.shape[-1] // 2, weight_IOK.shape[1]
        self._outputs = padded(outputs)
        # [I, O, tap, stride] to [stride, O, tap, I]; the first tap is the older input's.
        taps = weight_IOK.unflatten(-1, (2, stride)).flip(2).permute(3, 1, 2, 0)
        taps = functional.pad(taps, (0, 0, 0, 0, 0, self._outputs - outputs))
        bias = functional.pad(stored.read(f"{name}.conv.bias"), (0, self._outputs - outputs))
        self._linear = WindowLinear(taps.flatten(0, 1), bias.repeat(stride), precision)

    def __call__(self, x_TP: Tensor, state: MimiState, threads: int) -> Tensor:
        x_TP = _with_history(self, functional.elu(x_TP), 1, state)
        return self._linear(x_TP, threads).view(-1, self._outputs)


class _ResidualUnit:
    """x + a convolution of kernel 1 of another one, each after an ELU."""

    def __init__(self, stored: StoredMimi, name: str, precision: str) -> None:
        self._wide = _Convolution(stored, f"{name}.block.1", precision, has_elu=True)
        self._pointwise = _Convolution(stored, f"{name}.block.3", precision, has_elu=True)

    def __call__(self, x_TP: Tensor, state: MimiState, threads: int) -> Tensor:
        return self._pointwise(self._wide(x_TP, state, threads), state, threads).add_(x_TP)


def _with_history(layer: object, x_TC: Tensor, count: int, state: MimiState) -> Tensor:
    """The last `count` rows that the layer got before, zeros at first, and those of now."""
    if not count:
        return x_TC.contiguous()
    before = state.rows.get(layer)
    if before is None:
        before = x_TC.new_zeros(count, x_TC.shape[1])
    joined = torch.cat([before, x_TC])
    state.rows[layer] = joined[len(joined) - count :].clone()
    return joined


def _layers(
    stored: StoredMimi, precision: str
) -> Iterator[_Convolution | _ConvTranspose | _ResidualUnit]:
    name, stages = "decoder.layers", len(stored.config.upsampling_ratios)
    yield _Convolution(stored, f"{name}.0", precision, has_elu=False)
    for stage in range(stages):
        yield _ConvTranspose(stored, f"{name}.{3 * stage + 2}", precision)
        yield _ResidualUnit(stored, f"{name}.{3 * stage + 3}", precision)
    yield _Convolution(stored, f"{name}.{3 * stages + 2}", precision, has_elu=True)


def macs_of_a_second(config: MimiConfig) -> float:
    """The decoder's multiply-adds for a second of audio."""
    frames, hidden = config.sampling_rate / config.hop_length, config.hidden_size
    heads = 4 * hidden * config.num_attention_heads * config.head_dim
    total = STRIDE * config.num_hidden_layers * (heads + 2 * hidden * config.intermediate_size)
    rows, width = STRIDE, config.num_filters * 2 ** len(config.upsampling_ratios)
    total += rows * hidden * width * config.kernel_size
    for ratio in config.upsampling_ratios:
        total += rows * width * (width // 2) * 2 * ratio
        rows, width = rows * ratio, width // 2
        total += rows * width * (width // config.compress) * (config.residual_kernel_size + 1)
    return frames * (total + rows * width * config.last_kernel_size)
