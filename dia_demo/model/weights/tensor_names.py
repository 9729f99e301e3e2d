"""The tensors of a checkpoint in both public namings, and the parameter that each fills."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from dia_demo.config import DecoderConfig, EncoderConfig, ModelConfig


@dataclass(frozen=True)
class TensorSlice:
    """The part of a model's parameter that one tensor of a file fills: rows `start` and following.

    shape: of the tensor in the file. inputs: how many of its leading axes are inputs, where it is
    stored [in, out...] (nari-labs/dia) and has to be flattened and transposed; else 0.
    """

    name: str
    start: int
    shape: tuple[int, ...]
    inputs: int = 0

    def rows_of(self, tensor: Tensor) -> Tensor:
        """The tensor as rows of the parameter."""
        if not self.inputs:
            return tensor
        width = math.prod(self.shape[: self.inputs])
        return tensor.reshape(width, -1).t()


def expected_tensors(config: ModelConfig, names: set[str]) -> dict[str, TensorSlice]:
    """Every tensor that a checkpoint must contain, by name, and where it goes.

    names: those in its files, which tell the two naming schemes apart.
    """
    if any(name.startswith("model.") for name in names) or "logits_dense.weight" in names:
        return dict(transformers_tensors(config))
    return dict(nari_tensors(config))


def _projections(config: ModelConfig) -> Iterator[tuple[str, str, int, tuple[int, int], int, int]]:
    """(name in files, parameter, first row, (heads, head dim), inputs, outputs) of each."""
    text_width = config.encoder.hidden_size
    parts: tuple[tuple[str, EncoderConfig | DecoderConfig], ...]
    parts = ("encoder", config.encoder), ("decoder", config.decoder)
    for part, sizes in parts:
        width = sizes.hidden_size
        for index in range(sizes.num_layers):
            block = f"{part}.layers.{index}.self_attention"
            heads, kv_heads, dim = sizes.num_heads, sizes.num_kv_heads, sizes.head_dim
            kinds = (("q", heads, 0), ("k", kv_heads, heads), ("v", kv_heads, heads + kv_heads))
            for letter, count, before in kinds:
                own = f"{block}.qkv_proj"
                shape = (count, dim)
                yield f"{block}.{letter}_proj", own, before * dim, shape, width, count * dim
            yield f"{block}.o_proj", f"{block}.o_proj", 0, (heads, dim), heads * dim, width
            if not isinstance(sizes, DecoderConfig):
                continue
            block = f"{part}.layers.{index}.cross_attention"
            heads, kv_heads = sizes.cross_num_heads, sizes.cross_num_kv_heads
            dim = sizes.cross_head_dim
            kinds = (("q", heads, width), ("k", kv_heads, text_width), ("v", kv_heads, text_width))
            for letter, count, inner in kinds:
                name = f"{block}.{letter}_proj"
                yield name, name, 0, (count, dim), inner, count * dim
            yield f"{block}.o_proj", f"{block}.o_proj", 0, (heads, dim), heads * dim, width


def _vectors(config: ModelConfig) -> Iterator[tuple[str, int]]:
    """(name, width) of each norm; the same in both namings and here."""
    norms = {
        "encoder": ("pre_sa_norm", "post_sa_norm"),
        "decoder": ("pre_sa_norm", "pre_ca_norm", "pre_mlp_norm"),
    }
    for part, sizes in (("encoder", config.encoder), ("decoder", config.decoder)):
        for index in range(sizes.num_layers):
            for norm in norms[part]:
                yield f"{part}.layers.{index}.{norm}.weight", sizes.hidden_size
        yield f"{part}.norm.weight", sizes.hidden_size
    for block in _next_frame_blocks(config):
        yield f"{block}.pre_mlp_norm.weight", config.decoder.hidden_size
        yield f"{block}.norm.weight", config.decoder.hidden_size


def _guidance(config: ModelConfig) -> Iterator[tuple[str, TensorSlice]]:
    """The vectors of the CFG scales where guidance is distilled; the same in both namings."""
    if config.guidance_scales:
        name = "decoder.guidance_embedding.weight"
        shape = (len(config.guidance_scales), config.decoder.hidden_size)
        yield name, TensorSlice(name, 0, shape)


def _next_frames(config: ModelConfig) -> Iterator[tuple[str, TensorSlice]]:
    """Tables and heads of the further frames of a step; the same in both namings."""
    decoder = config.decoder
    shape = (decoder.num_channels * decoder.vocab_size, decoder.hidden_size)
    for block in _next_frame_blocks(config):
        for name in (f"{block}.embeddings.weight", f"{block}.logits_dense.weight"):
            yield name, TensorSlice(name, 0, shape)


def _next_frame_blocks(config: ModelConfig) -> list[str]:
    return [f"decoder.next_frames.{number}" for number in range(config.frames_per_step - 1)]


def _mlps(config: ModelConfig) -> Iterator[tuple[str, int, int]]:
    """(name, width, hidden width) of each gated MLP."""
    for part, sizes in (("encoder", config.encoder), ("decoder", config.decoder)):
        for index in range(sizes.num_layers):
            yield f"{part}.layers.{index}.mlp", sizes.hidden_size, sizes.intermediate_size
    for block in _next_frame_blocks(config):
        yield f"{block}.mlp", config.decoder.hidden_size, config.decoder.intermediate_size


def transformers_tensors(config: ModelConfig) -> Iterator[tuple[str, TensorSlice]]:
    """transformers: linears [out, in], names start with "model.", one table for all channels."""
    encoder, decoder = config.encoder, config.decoder
    codes = decoder.num_channels * decoder.vocab_size
    for name, own, start, _, inner, outer in _projections(config):
        yield f"model.{name}.weight", TensorSlice(f"{own}.weight", start, (outer, inner))
    for name, width in _vectors(config):
        yield f"model.{name}", TensorSlice(name, 0, (width,))
    for name, width, hidden in _mlps(config):
        up, down = f"{name}.gate_up_proj.weight", f"{name}.down_proj.weight"
        yield f"model.{up}", TensorSlice(up, 0, (2 * hidden, width))
        yield f"model.{down}", TensorSlice(down, 0, (width, hidden))
    text = "encoder.embedding.weight"
    yield f"model.{text}", TensorSlice(text, 0, (encoder.vocab_size, encoder.hidden_size))
    tables = (config.frames_per_step * codes, decoder.hidden_size)
    audio = TensorSlice("decoder.embeddings.weight", 0, tables)
    yield "model.decoder.embeddings.embed.weight", audio
    for name, target in (*_guidance(config), *_next_frames(config)):
        yield f"model.{name}", target
    head = TensorSlice("decoder.logits_dense.weight", 0, (codes, decoder.hidden_size))
    yield "logits_dense.weight", head


def nari_tensors(config: ModelConfig) -> Iterator[tuple[str, TensorSlice]]:
    """nari-labs/dia: linears [in, out...] with an axis for the heads, one table per channel."""
    encoder, decoder = config.encoder, config.decoder
    channels, vocab, width = decoder.num_channels, decoder.vocab_size, decoder.hidden_size
    for name, own, start, heads, inner, outer in _projections(config):
        if name.endswith("o_proj"):
            yield f"{name}.weight", TensorSlice(f"{own}.weight", start, (*heads, outer), inputs=2)
        else:
            yield f"{name}.weight", TensorSlice(f"{own}.weight", start, (inner, *heads), inputs=1)
    for name, norm_width in _vectors(config):
        yield name, TensorSlice(name, 0, (norm_width,))
    for name, inner, hidden in _mlps(config):
        up, down = f"{name}.gate_up_proj.weight", f"{name}.down_proj.weight"
        yield f"{name}.wi_fused.weight", TensorSlice(up, 0, (inner, 2, hidden), inputs=1)
        yield f"{name}.wo.weight", TensorSlice(down, 0, (hidden, inner), inputs=1)
    text = "encoder.embedding.weight"
    yield text, TensorSlice(text, 0, (encoder.vocab_size, encoder.hidden_size))
    for number in range(config.codes_per_step):
        table = TensorSlice("decoder.embeddings.weight", number * vocab, (vocab, width))
        yield f"decoder.embeddings.{number}.weight", table
    yield from _guidance(config)
    yield from _next_frames(config)
    head = TensorSlice("decoder.logits_dense.weight", 0, (width, channels, vocab), inputs=1)
    yield "decoder.logits_dense.weight", head
