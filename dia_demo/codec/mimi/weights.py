"""A Mimi's tensors: their names and shapes, opening its files strictly, random weights.

The names are those that transformers' MimiModel writes, as in kyutai/mimi's model.safetensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from dia_demo.codec.files import CodecSource
from dia_demo.codec.mimi.config import STRIDE, MimiConfig, read_mimi_config
from dia_demo.errors import InputError
from dia_demo.model.weights.tensor_files import (
    Shapes,
    shape_differences,
    tensor_shapes,
    unreadable_error,
    weight_fault,
)

# The least that a code was used, as it divides the sum of its vectors.
_LEAST_USAGE = 1e-5
# Sizes of a Mimi that is quick to build: kyutai/mimi's rates and codes, but narrow.
TINY_MIMI: dict[str, Any] = dict(
    hidden_size=32,
    num_filters=4,
    codebook_dim=8,
    num_hidden_layers=1,
    intermediate_size=32,
    num_attention_heads=2,
    head_dim=16,
)
# Of random weights: the loudness of the output, and of what a layer adds to its input.
_QUIET, _LAYER_SCALE = 0.1, 0.1


@dataclass(frozen=True)
class StoredMimi:
    """A Mimi whose weights are in a file. read: gives a tensor by name, in float32."""

    label: str
    config: MimiConfig
    read: Callable[[str], Tensor]

    @property
    def names(self) -> list[str]:
        """Of all tensors."""
        return list(mimi_shapes(self.config))

    def codebook(self, name: str) -> Tensor:
        """The vectors [V, D] of a codebook: what was sorted into a code, over how often."""
        usage_V = self.read(f"{name}.codebook.cluster_usage").clamp(min=_LEAST_USAGE)
        return self.read(f"{name}.codebook.embed_sum") / usage_V[:, None]


def codebook_names(config: MimiConfig) -> Iterator[tuple[str, list[str]]]:
    """The two quantizers, semantic and acoustic, each with the names of its codebooks."""
    semantic = config.num_semantic_quantizers
    for kind, count in (("semantic", semantic), ("acoustic", config.num_quantizers - semantic)):
        name = f"quantizer.{kind}_residual_vector_quantizer"
        yield name, [f"{name}.layers.{number}" for number in range(count)]


def layer_linears(stored: StoredMimi, name: str) -> dict[str, Tensor]:
    """The linears [O, I] of a layer of a transformer, those after which it is scaled with their
    scale."""

    def read_scaled(part: str, which: str) -> Tensor:
        scale_O = stored.read(f"{name}.{part}_layer_scale.scale")
        return scale_O[:, None] * stored.read(f"{name}.{part}.{which}.weight")

    parts = [stored.read(f"{name}.self_attn.{part}_proj.weight") for part in "qkv"]
    return {
        "qkv": torch.cat(parts),
        "out": read_scaled("self_attn", "o_proj"),
        "fc1": stored.read(f"{name}.mlp.fc1.weight"),
        "fc2": read_scaled("mlp", "fc2"),
    }


def open_stored_mimi(source: CodecSource) -> StoredMimi:
    """Open the Mimi of `source`; its weights are read later.

    Raises InputError for files that are damaged, describe no Mimi, or do not match it exactly.
    """
    assert source.config is not None, "a Mimi's files are its config and its weights"
    config = read_mimi_config(source.config)
    if differences := shape_differences(mimi_shapes(config), tensor_shapes([source.weights])):
        raise InputError(
            f"The codec from {source.label} does not match its config. {differences}. Fetch it "
            "again."
        )
    return StoredMimi(source.label, config, _reader(source.weights, source.label))


def _reader(file: Path, label: str) -> Callable[[str], Tensor]:
    def read(name: str) -> Tensor:
        try:
            # Opened for each tensor, since an open file keeps everything that was read from it.
            with safe_open(file, framework="pt") as opened:
                tensor = opened.get_tensor(name).to(torch.float32, copy=True)
        except Exception as error:  # safetensors raises many types for a damaged file.
            fault = "corrupted or not a codec"
            raise unreadable_error(file, error, fault, "Delete it and fetch it again.") from error
        if tensor.dim() > 1 and (reason := weight_fault(tensor)):
            raise InputError(f"{name} in the codec from {label} {reason}")
        return tensor

    return read


def random_stored_mimi(config: MimiConfig, seed: int = 0) -> StoredMimi:
    """A Mimi of random weights, which are made when they are read: quiet noise."""
    shapes = mimi_shapes(config)
    seeds = {name: seed * len(shapes) + index for index, name in enumerate(shapes)}
    stages = len(config.upsampling_ratios)
    transposed = {f"decoder.layers.{3 * stage + 2}.conv.weight" for stage in range(stages)}
    last = f"decoder.layers.{3 * stages + 2}.conv.weight"

    def read(name: str) -> Tensor:
        shape = shapes[name]
        noise = torch.randn(shape, generator=torch.Generator().manual_seed(seeds[name]))
        if name.endswith("norm.weight") or name.endswith("cluster_usage"):
            return 1 + 0.1 * noise.abs()
        if name.endswith("scale"):
            return _LAYER_SCALE * (1 + 0.1 * noise)
        if len(shape) == 1:
            return torch.ones(shape) if name.endswith("initialized") else 0.05 * noise
        if name.endswith("embed_sum"):
            return noise
        inputs = 2 * shape[0] if name in transposed else noise[0].numel()
        weight = noise / inputs**0.5
        return _QUIET * weight if name == last else weight

    return StoredMimi(f"random weights, seed {seed}", config, read)


def mimi_shapes(config: MimiConfig) -> Shapes:
    """The names and shapes of all tensors."""
    shapes: Shapes = {}
    hidden, window = config.hidden_size, 2 * STRIDE
    shapes |= _encoder(config) | _transformer(config, "encoder")
    shapes["downsample.conv.weight"] = (hidden, hidden, window)
    shapes |= _quantizers(config)
    shapes["upsample.conv.weight"] = (hidden, 1, window)
    return shapes | _transformer(config, "decoder") | _decoder(config)


def _convolution(name: str, *shape: int, bias: int | None = None) -> Shapes:
    """bias: its length where it is not that of the first axis."""
    return {f"{name}.conv.weight": shape, f"{name}.conv.bias": (bias or shape[0],)}


def _residual_unit(config: MimiConfig, name: str, width: int) -> Shapes:
    inner = width // config.compress
    return {
        **_convolution(f"{name}.block.1", inner, width, config.residual_kernel_size),
        **_convolution(f"{name}.block.3", width, inner, 1),
    }


def _encoder(config: MimiConfig) -> Shapes:
    width, name = config.num_filters, "encoder.layers"
    shapes = _convolution(f"{name}.0", width, 1, config.kernel_size)
    for stage, ratio in enumerate(reversed(config.upsampling_ratios)):
        shapes |= _residual_unit(config, f"{name}.{3 * stage + 1}", width)
        shapes |= _convolution(f"{name}.{3 * stage + 3}", 2 * width, width, 2 * ratio)
        width *= 2
    last = f"{name}.{3 * len(config.upsampling_ratios) + 2}"
    return shapes | _convolution(last, config.hidden_size, width, config.last_kernel_size)


def _decoder(config: MimiConfig) -> Shapes:
    name = "decoder.layers"
    width = config.num_filters * 2 ** len(config.upsampling_ratios)
    shapes = _convolution(f"{name}.0", width, config.hidden_size, config.kernel_size)
    for stage, ratio in enumerate(config.upsampling_ratios):
        up, narrow = f"{name}.{3 * stage + 2}", width // 2
        shapes |= _convolution(up, width, narrow, 2 * ratio, bias=narrow)
        shapes |= _residual_unit(config, f"{name}.{3 * stage + 3}", narrow)
        width = narrow
    last = f"{name}.{3 * len(config.upsampling_ratios) + 2}"
    return shapes | _convolution(last, 1, width, config.last_kernel_size)


def _transformer(config: MimiConfig, side: str) -> Shapes:
    hidden, shapes = config.hidden_size, Shapes()
    heads = config.num_attention_heads * config.head_dim
    for number in range(config.num_hidden_layers):
        name = f"{side}_transformer.layers.{number}"
        for part in ("self_attn", "mlp"):
            shapes[f"{name}.{part}_layer_scale.scale"] = (hidden,)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes |= {f"{name}.{norm}.{end}": (hidden,) for end in ("weight", "bias")}
        for part in ("q_proj", "k_proj", "v_proj"):
            shapes[f"{name}.self_attn.{part}.weight"] = (heads, hidden)
        shapes[f"{name}.self_attn.o_proj.weight"] = (hidden, heads)
        shapes[f"{name}.mlp.fc1.weight"] = (config.intermediate_size, hidden)
        shapes[f"{name}.mlp.fc2.weight"] = (hidden, config.intermediate_size)
    return shapes


def _quantizers(config: MimiConfig) -> Shapes:
    shapes: Shapes = {}
    for name, codebooks in codebook_names(config):
        shapes[f"{name}.input_proj.weight"] = (config.codebook_dim, config.hidden_size, 1)
        shapes[f"{name}.output_proj.weight"] = (config.hidden_size, config.codebook_dim, 1)
        for codebook in codebooks:
            shapes[f"{codebook}.codebook.initialized"] = (1,)
            shapes[f"{codebook}.codebook.cluster_usage"] = (config.codebook_size,)
            shapes[f"{codebook}.codebook.embed_sum"] = (config.codebook_size, config.codebook_dim)
    return shapes
