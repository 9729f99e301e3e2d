"""Mimi's decoder as a stream, by torch: k frames of codes in, k frames of samples out.

It is the reference of the compiled one (compiled_decoder.py), and runs where that does not. Every
layer is causal, so nothing is held back. The state of a stream is outside the layers, in its
`MimiState`. Shapes: T rows of C channels; T counts frames at the decoder's start, samples at its
end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from dia_demo.codec.mimi.config import STRIDE, MimiConfig
from dia_demo.codec.mimi.transformer import AttentionCache, StreamingTransformer, round_weight
from dia_demo.codec.mimi.weights import StoredMimi, codebook_names
from dia_demo.model.cpu_model import torch_threads


@dataclass
class MimiState:
    """What a stream keeps: the last input rows of each layer, and keys and values."""

    cache: AttentionCache
    rows: dict[object, Tensor] = field(default_factory=dict)


class TorchMimiDecoder:
    """Codes to samples by torch. precision: of the stored weights, float32 or bfloat16."""

    # One alone, since torch rounds a row differently beside others.
    most_frames = 1

    def __init__(self, stored: StoredMimi, precision: str) -> None:
        self._config = stored.config
        self._quantizer = _SplitQuantizer(stored, precision)
        self._upsample = _Upsample(stored)
        self._transformer = StreamingTransformer(stored, precision)
        self._layers = list(_layers(stored, precision))

    def new_state(self) -> MimiState:
        """The state of a stream at its beginning."""
        return MimiState(AttentionCache.from_config(self._config))

    def __call__(self, codes_TC: Tensor, state: MimiState) -> Tensor:
        """Feed the stream's next frames, at most `most_frames`; returns their samples [N]."""
        with torch_threads(1):  # With another number, torch rounds differently.
            x = self._transformer(self._upsample(self._quantizer(codes_TC), state), state.cache)
            for layer in self._layers:
                x = layer(x, state)
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
        self._projection = round_weight(torch.cat(projections, dim=1), precision).t()

    def __call__(self, codes_TC: Tensor) -> Tensor:
        vectors = [table[codes_TC[:, c]] for c, table in enumerate(self._tables_CVD)]
        semantic, acoustic = vectors[: self._semantic], vectors[self._semantic :]
        sums = [sum(part[1:], start=part[0]) for part in (semantic, acoustic)]
        return torch.cat(sums, dim=1) @ self._projection


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
        self._weight_OIK = round_weight(stored.read(f"{name}.conv.weight"), precision)
        self._bias_O = stored.read(f"{name}.conv.bias")
        self._has_elu = has_elu

    def __call__(self, x_TC: Tensor, state: MimiState) -> Tensor:
        x_TC = functional.elu(x_TC) if self._has_elu else x_TC
        x_TC = _with_history(self, x_TC, self._weight_OIK.shape[2] - 1, state)
        return functional.conv1d(x_TC.t()[None], self._weight_OIK, self._bias_O)[0].t()


class _ConvTranspose:
    """A causal transposed convolution of kernel 2 * stride, after an ELU: the outputs after an
    input depend on it and the one before."""

    def __init__(self, stored: StoredMimi, name: str, precision: str) -> None:
        self._weight_IOK = round_weight(stored.read(f"{name}.conv.weight"), precision)
        self._bias_O = stored.read(f"{name}.conv.bias")
        self._stride = self._weight_IOK.shape[2] // 2

    def __call__(self, x_TC: Tensor, state: MimiState) -> Tensor:
        x_TC = _with_history(self, functional.elu(x_TC), 1, state)
        out = functional.conv_transpose1d(
            x_TC.t()[None], self._weight_IOK, self._bias_O, self._stride
        )
        return out[0].t()[self._stride : -self._stride]


class _ResidualUnit:
    """x + a convolution of kernel 1 of another one, each after an ELU."""

    def __init__(self, stored: StoredMimi, name: str, precision: str) -> None:
        self._wide = _Convolution(stored, f"{name}.block.1", precision, has_elu=True)
        self._pointwise = _Convolution(stored, f"{name}.block.3", precision, has_elu=True)

    def __call__(self, x_TC: Tensor, state: MimiState) -> Tensor:
        return x_TC + self._pointwise(self._wide(x_TC, state), state)


def _with_history(layer: object, x_TC: Tensor, count: int, state: MimiState) -> Tensor:
    """The last `count` rows that the layer got before, zeros at first, and those of now."""
    if not count:
        return x_TC
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
