"""Dia: a text encoder and an audio decoder. Only forward passes: sampling is in engine/.

Sizes come from `ModelConfig`; shape letters are explained in model/layers.py. The architecture is
that of nari-labs/Dia-1.6B-0626, as published by Nari Labs and in transformers (models/dia).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from dia_demo.config import DecoderConfig, EncoderConfig, ModelConfig
from dia_demo.model.kv_cache import RowCache
from dia_demo.model.layers import (
    CrossAttention,
    Embedding,
    GatedMLP,
    Linear,
    RMSNorm,
    Rotary,
    SelfAttention,
    activation_dtype,
    attend,
)

# Of each layer, the keys and values [1, G, S, K] of an encoded text.
TextState = list[tuple[Tensor, Tensor]]
# The text of the unconditional branch, and that branch's number.
EMPTY_TEXT, UNCONDITIONAL = b"\0", 1


class EncoderLayer(nn.Module):
    """Self-attention and MLP, each after an RMSNorm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.norm_eps
        self.pre_sa_norm = RMSNorm(width, eps)
        self.self_attention = SelfAttention(
            width, config.num_heads, config.num_kv_heads, config.head_dim
        )
        self.post_sa_norm = RMSNorm(width, eps)
        self.mlp = GatedMLP(width, config.intermediate_size)

    def forward(self, x_BTD: Tensor, rotation, dtype: torch.dtype) -> Tensor:
        q, k, v = self.self_attention.project(self.pre_sa_norm(x_BTD, dtype), rotation)
        mixed = attend(q, k.transpose(1, 2), v.transpose(1, 2))
        x_BTD = x_BTD + self.self_attention.o_proj(mixed)
        return x_BTD + self.mlp(self.post_sa_norm(x_BTD, dtype))


class Encoder(nn.Module):
    """Text bytes to states. All texts of a batch have the same length, so nothing is masked."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.embedding = Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.norm_eps)

    def forward(self, text_BS: Tensor, rotary: Rotary) -> Tensor:
        """Text bytes [B, S] to states [B, S, D] of the activations' dtype."""
        dtype = activation_dtype(self.embedding.weight)
        rotation = rotary.at(torch.arange(text_BS.shape[1], device=text_BS.device)[None])
        x_BSD = self.embedding(text_BS).float()
        for layer in self.layers:
            x_BSD = layer(x_BSD, rotation, dtype)
        return self.norm(x_BSD, dtype)


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention to the text and MLP, each after an RMSNorm."""

    def __init__(self, config: DecoderConfig, text_width: int) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.norm_eps
        self.pre_sa_norm = RMSNorm(width, eps)
        self.self_attention = SelfAttention(
            width, config.num_heads, config.num_kv_heads, config.head_dim
        )
        self.pre_ca_norm = RMSNorm(width, eps)
        self.cross_attention = CrossAttention(
            width,
            text_width,
            config.cross_num_heads,
            config.cross_num_kv_heads,
            config.cross_head_dim,
        )
        self.pre_mlp_norm = RMSNorm(width, eps)
        self.mlp = GatedMLP(width, config.intermediate_size)

    def forward(
        self, x_BTD: Tensor, rotation, caches: Sequence[RowCache], index: int, dtype: torch.dtype
    ) -> Tensor:
        q, k, v = self.self_attention.project(self.pre_sa_norm(x_BTD, dtype), rotation)
        mixed = self._attend_self(q, k, v, caches, index)
        x_BTD = x_BTD + self.self_attention.o_proj(mixed)
        q = self.cross_attention.queries(self.pre_ca_norm(x_BTD, dtype))
        for cache, (q_row,) in _split_rows(caches, q):
            cache.set_text_queries(q_row[0, -1])  # At last those of the last layer.
        texts = (layers[index] for cache in caches for layers in cache.cross)
        mixed = _join(attend(q_slot, *text) for q_slot, text in zip(q.split(1), texts, strict=True))
        x_BTD = x_BTD + self.cross_attention.o_proj(mixed)
        return x_BTD + self.mlp(self.pre_mlp_norm(x_BTD, dtype))

    def _attend_self(self, q, k, v, caches: Sequence[RowCache], index: int) -> Tensor:
        causal = q.shape[1] > 1
        outputs = []
        for cache, (q_row, k_row, v_row) in _split_rows(caches, q, k, v):
            k_cached, v_cached = cache.write(index, k_row, v_row)
            outputs.append(attend(q_row, k_cached, v_cached, causal=causal))
        return _join(outputs)


class NextFrame(nn.Module):
    """A further frame of a step, from what the step has computed and the frame before it."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        width, codes = config.hidden_size, config.num_channels * config.vocab_size
        self.embeddings = Embedding(codes, width)
        self.pre_mlp_norm = RMSNorm(width, config.norm_eps)
        self.mlp = GatedMLP(width, config.intermediate_size)
        self.norm = RMSNorm(width, config.norm_eps)
        self.logits_dense = Linear(width, codes)

    def forward(
        self, x_BTD: Tensor, codes_BTC: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """(x, logits [B, T, C * V]) of the next frame, from those of the frame before it.

        x: float32, what the step's last layer, or the block before this one, has given.
        """
        x_BTD = x_BTD + _sum_of_embeddings(self.embeddings, codes_BTC)
        x_BTD = x_BTD + self.mlp(self.pre_mlp_norm(x_BTD, dtype))
        return x_BTD, self.logits_dense(self.norm(x_BTD, dtype))


class Decoder(nn.Module):
    """Codes to the logits of the next ones. The slots of a row are adjacent in the batch.

    With F frames a step (`ModelConfig.frames_per_step`) a step reads the F frames before it, its
    `forward` gives the first of the next F, and `next_frame` each of the others.
    """

    def __init__(
        self,
        config: DecoderConfig,
        text_width: int,
        guidance_scales: Sequence[float] = (),
        frames_per_step: int = 1,
    ) -> None:
        super().__init__()
        self.config = config
        self.guidance_scales = guidance_scales
        codes = config.num_channels * config.vocab_size
        # One table for all channels of all frames: channel c of frame f starts at (f * C + c) * V.
        self.embeddings = Embedding(frames_per_step * codes, config.hidden_size)
        if guidance_scales:
            self.guidance_embedding = Embedding(len(guidance_scales), config.hidden_size)
        layers = (DecoderLayer(config, text_width) for _ in range(config.num_layers))
        self.layers = cast(Sequence[DecoderLayer], nn.ModuleList(layers))
        self.norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.logits_dense = Linear(config.hidden_size, codes)
        blocks = nn.ModuleList(NextFrame(config) for _ in range(frames_per_step - 1))
        self.next_frames = cast(Sequence[NextFrame], blocks)

    def forward(self, codes_BTC: Tensor, caches: Sequence[RowCache], rotary: Rotary) -> Tensor:
        """Feed the codes of T more steps to each slot; the caches grow by T.

        codes_BTC int64: B is the sum of the caches' branches, C the codes that a step reads. T > 1
        only with empty caches (a voice prompt). Returns float32 logits [B, T, C, V] of the step's
        first frame.
        """
        B, T, _ = codes_BTC.shape
        assert T == 1 or all(cache.length == 0 for cache in caches)
        dtype, device = activation_dtype(self.embeddings.weight), codes_BTC.device
        x_BTD = self.embed(codes_BTC, caches)
        starts = [[cache.length] for cache in caches for _ in range(cache.branches)]
        positions_BT = torch.tensor(starts, device=device)
        if T > 1:
            positions_BT = positions_BT + torch.arange(T, device=device)
        rotation = rotary.at(positions_BT)
        for cache in caches:
            cache.reserve(T)
        for index, layer in enumerate(self.layers):
            x_BTD = layer(x_BTD, rotation, caches, index, dtype)
        for cache in caches:
            cache.advance(T)
        if self.next_frames:
            _keep_states(caches, x_BTD[:, -1])
        logits = self.logits_dense(self.norm(x_BTD, dtype))
        return self._split_channels(logits)

    def next_frame(self, codes_BC: Tensor, caches: Sequence[RowCache], number: int) -> Tensor:
        """Logits float32 [B, C, V] of frame `number` (1, 2, ...) of the step that these caches
        made last, after the frame before it: codes int64 [B, C]."""
        dtype = activation_dtype(self.embeddings.weight)
        x_BTD = join_states(caches).unsqueeze(1)
        x_BTD, logits = self.next_frames[number - 1](x_BTD, codes_BC.unsqueeze(1), dtype)
        _keep_states(caches, x_BTD[:, 0])
        return self._split_channels(logits)[:, 0]

    def _split_channels(self, logits: Tensor) -> Tensor:
        """Float32 [B, T, C, V] of logits [B, T, C * V]."""
        return logits.unflatten(-1, (-1, self.config.vocab_size)).float()

    def embed(self, codes_BTC: Tensor, caches: Sequence[RowCache] = ()) -> Tensor:
        """What the first layer reads, float32 [B, T, D]: the sum of the channels' embeddings, and
        the vector of each row's CFG scale where guidance is distilled."""
        x_BTD = _sum_of_embeddings(self.embeddings, codes_BTC)
        vectors = [cache.scale_vector for cache in caches if cache.scale_vector is not None]
        return x_BTD + torch.stack(vectors).unsqueeze(1) if vectors else x_BTD

    def scale_vector(self, cfg_scale: float) -> Tensor | None:
        """What is added to every input of a row with this CFG scale, float32 [D]: between the
        checkpoint's scales interpolated. None where guidance is not distilled."""
        if not self.guidance_scales:
            return None
        scales = self.guidance_scales
        above = min(max(bisect_right(scales, cfg_scale), 1), len(scales) - 1)
        low, high = scales[above - 1 : above + 1]
        before, after = self.guidance_embedding.weight[above - 1 : above + 1].float()
        return torch.lerp(before, after, (cfg_scale - low) / (high - low))


class Dia(nn.Module):
    """Encoder and decoder of a checkpoint."""

    # A row may be encoded in one thread while another runs the steps of other rows.
    can_prefill_ahead = True

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config.encoder)
        self.decoder = Decoder(
            config.decoder,
            config.encoder.hidden_size,
            config.guidance_scales,
            config.frames_per_step,
        )
        self._rotaries: tuple[Rotary, Rotary] | None = None

    @property
    def device(self) -> torch.device:
        return self.decoder.embeddings.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.decoder.embeddings.weight.dtype

    @property
    def rotaries(self) -> tuple[Rotary, Rotary]:
        """The rotary tables of encoder and decoder, computed once on the weights' device."""
        if self._rotaries is None:
            config = self.config
            steps = config.steps_within(config.decoder.max_positions)
            self._rotaries = (
                self._rotary(config.encoder, config.encoder.max_positions),
                self._rotary(config.decoder, steps, config.frames_per_step),
            )
        return self._rotaries

    def _rotary(
        self, part: EncoderConfig | DecoderConfig, positions: int, stride: int = 1
    ) -> Rotary:
        return Rotary(part.head_dim, part.rope_theta, positions, self.device, stride)

    @torch.inference_mode()
    def encode(self, text: bytes, cfg_scale: float, max_positions: int) -> RowCache:
        """Encode a row's text; returns the row's cache for the first codes.

        The unconditional branch, if there is one, reads zeros of the same length. The encoder gives
        equal states for equal bytes, at any position, and attention to many equal states is
        attention to one: so only one is encoded. Cutting the text to its true length is equivalent
        to the reference's padding to 1024 with a mask.
        """
        texts = [text, EMPTY_TEXT][: self.config.branches(cfg_scale)]
        return self.cache_of(list(map(self.read_text, texts)), cfg_scale, max_positions)

    def cache_of(self, texts: list[TextState], cfg_scale: float, max_positions: int) -> RowCache:
        """An empty cache of a row that attends to these texts, one for each branch."""
        vector = self.decoder.scale_vector(cfg_scale)
        voices = self.config.voices
        text_head = None if voices is None else voices.text_head
        return RowCache(self.config.decoder, texts, max_positions, vector, text_head)

    @torch.inference_mode()
    def read_text(self, text: bytes) -> TextState:
        """Encode a text; its keys and values for the cross-attention of each decoder layer."""
        numbers = torch.tensor([list(text)], device=self.device)
        states = self.encoder(numbers, self.rotaries[0])
        return [
            layer.cross_attention.keys_values(states, self.dtype) for layer in self.decoder.layers
        ]

    @torch.inference_mode()
    def forward(self, codes_BTC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        """Logits [B, T, C, V] float32 after feeding codes [B, T, C]; the caches grow by T."""
        return self.decoder(codes_BTC, caches, self.rotaries[1])

    @torch.inference_mode()
    def next_frame(self, codes_BC: Tensor, caches: Sequence[RowCache], number: int) -> Tensor:
        """See `Decoder.next_frame`."""
        return self.decoder.next_frame(codes_BC, caches, number)


def _sum_of_embeddings(table: Embedding, codes_BTC: Tensor) -> Tensor:
    """Float32 [B, T, D]: the sum over the codes, each from its own part of the table."""
    count = codes_BTC.shape[-1]
    starts = range(0, len(table.weight), len(table.weight) // count)
    offsets = torch.tensor(starts, device=codes_BTC.device)
    return table(codes_BTC + offsets).sum(dim=2, dtype=torch.float32)


def join_states(caches: Sequence[RowCache]) -> Tensor:
    """What the last step of these rows has computed, float32 [B, D]."""
    return _join(cache.state for cache in caches if cache.state is not None)


def _keep_states(caches: Sequence[RowCache], x_BD: Tensor) -> None:
    for cache, state in zip(caches, x_BD.split([each.branches for each in caches]), strict=True):
        cache.state = state


def _split_rows(caches: Sequence[RowCache], *tensors: Tensor) -> Iterator[tuple]:
    """Yield (cache, the row's slots of each tensor) for each row."""
    if len(caches) == 1:
        yield caches[0], tensors
        return
    branches = [cache.branches for cache in caches]
    slots = zip(*(tensor.split(branches) for tensor in tensors), strict=True)
    yield from zip(caches, slots, strict=True)


def _join(parts: Iterable[Tensor]) -> Tensor:
    tensors = list(parts)
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)
