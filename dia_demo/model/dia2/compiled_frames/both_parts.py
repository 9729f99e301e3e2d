"""The compiled parts of a frame: their operations, and buffers for the rows that are bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from dia_demo.kernels.decoder_step import CACHE, RMSNORM
from dia_demo.kernels.frames.drawing import DRAWING
from dia_demo.kernels.frames.frame_step import ATTENTION, DRAW, FRAME_EMBED, NORM, START
from dia_demo.kernels.packing import padded_size
from dia_demo.kernels.sampling import scratch_bytes
from dia_demo.model.compiled_step import BYTES_OF_INPUT
from dia_demo.model.dia2.compiled_frames.part import FramePart, frame_op
from dia_demo.model.dia2.config import GUIDANCE_TOP, Dia2Config
from dia_demo.model.dia2.interface import Drawing
from dia_demo.model.dia2.network import Depth, Temporal
from dia_demo.model.dia2.torch_model import StepCache
from dia_demo.model.layers import RMSNorm, Rotary

_NO_DRAWINGS = np.zeros(0, DRAWING)


class TemporalPart(FramePart):
    """The temporal step: from tokens and codes to the states and the logits of both heads."""

    def __init__(self, temporal: Temporal, config: Dia2Config, threads: int, use_dot: bool) -> None:
        d = config.decoder
        super().__init__(threads, use_dot, _number_size(temporal.audio_embeds[0]), d.norm_eps)
        self._temporal, self._config = temporal, config
        tables = [table_address(table) for table in temporal.audio_embeds]
        text = temporal.text_embed
        self.set_arrays(embeddings=np.array(tables, np.int64))
        self.set(
            width=d.hidden_size,
            heads=d.num_heads,
            kv_heads=d.num_kv_heads,
            head_dim=d.head_dim,
            channels=d.num_channels,
            text_embeddings=table_address(text.embedding),
            text_width=config.text_width,
            text_pad=config.text_ids.pad,
            cos=temporal.rotary.cos.data_ptr(),
            sin=temporal.rotary.sin.data_ptr(),
        )
        self._bound: list[tuple[int, int]] = []
        self._caches = np.zeros((0, 0), CACHE)
        self._inputs: dict[str, np.ndarray] = {}

    def run_step(
        self, text_B2: Tensor, codes_BC: Tensor, caches: Sequence[StepCache]
    ) -> tuple[Tensor, Tensor]:
        """Logits [B, A] and [B, V], overwritten by the next step of these rows; sets the caches'
        states."""
        for cache in caches:
            cache.reserve(1)
        self._bind(caches)
        inputs = self._inputs
        inputs["tokens"][:] = text_B2.numpy()
        inputs["codes"][:] = codes_BC.numpy()
        slots = [cache for cache in caches for _ in range(cache.branches)]
        inputs["positions"][:] = [cache.position for cache in slots]
        inputs["lengths"][:] = [cache.length for cache in slots]
        self.run(self._caches, _NO_DRAWINGS)
        d = self._config.decoder
        states = self.buffers["state"][:, : d.hidden_size]
        branches = [cache.branches for cache in caches]
        for cache, state in zip(caches, states.split(branches), strict=True):
            cache.state = state
            cache.advance(1)
        action, first = self.buffers["action"], self.buffers["first"]
        return action[:, : self._config.actions], first[:, : d.vocab_size]

    def _bind(self, caches: Sequence[StepCache]) -> None:
        bound = [(cache.serial, cache.capacity) for cache in caches]
        if bound == self._bound:
            return
        self._bound = bound
        slots = [(cache, branch) for cache in caches for branch in range(cache.branches)]
        d, count = self._config.decoder, len(slots)
        inner = d.num_heads * d.head_dim
        text_width = padded_size(self._config.text_width)
        longest = max(cache.capacity for cache in caches)
        widest = padded_size(
            max(d.hidden_size, inner, d.intermediate_size, self._config.text_width)
        )
        scores = 4 * (d.num_heads // d.num_kv_heads) * (d.head_dim + longest) + 4 * d.head_dim
        widths = {
            "x": d.hidden_size,
            "state": d.hidden_size,
            "qkv": inner + 2 * d.num_kv_heads * d.head_dim,
            "attn_out": inner,
            "gate": 2 * d.intermediate_size,
            "text": 2 * text_width,
            "action": self._config.actions,
            "first": d.vocab_size,
        }
        self.make_buffers(count, widths, max(count * BYTES_OF_INPUT * widest, scores))
        self.set(text_stride=4 * text_width)
        self._inputs = {
            "tokens": np.zeros((count, 2), np.int64),
            "codes": np.zeros((count, d.num_channels), np.int64),
            "positions": np.zeros(count, np.int64),
            "lengths": np.zeros(count, np.int64),
        }
        capacities = np.array([cache.capacity for cache, _ in slots], np.int64)
        self.set_arrays(capacities=capacities, **self._inputs)
        self.set_program(self._program())
        self._caches = np.array(
            [
                [(*cache.addresses(layer, branch), 0, 0) for cache, branch in slots]
                for layer in range(d.num_layers)
            ],
            CACHE,
        )

    def _program(self) -> Iterator[np.ndarray]:
        temporal, buffers = self._temporal, self.buffers
        x, state, text = buffers["x"], buffers["state"], buffers["text"]
        embed = temporal.text_embed
        second = text[:, text.shape[1] // 2 :]
        yield frame_op(FRAME_EMBED)
        yield self.linear(embed.main_proj, text, x, add=True)
        yield self.linear(embed.second_proj, second, x, add=True)
        for index, layer in enumerate(temporal.layers):
            attn, qkv = layer.attn, buffers["qkv"]
            yield self.linear(attn.qkv_proj, x, qkv, RMSNORM, layer.pre_norm)
            yield attention_op(index, attn.q_norm, attn.k_norm)
            yield self.linear(attn.o_proj, buffers["attn_out"], x, add=True)
            yield from self.mlp(layer.mlp, x, buffers["gate"], layer.post_norm)
        yield norm_op(temporal.norm, x, state)
        yield self.linear(temporal.action_head, state, buffers["action"])
        yield self.linear(temporal.cb0_head, state, buffers["first"])


class DepthPart(FramePart):
    """All stages of the depth transformer, with the drawing of their codes."""

    def __init__(self, depth: Depth, config: Dia2Config, threads: int, use_dot: bool) -> None:
        shape = config.depth
        number_size = _number_size(depth.audio_embeds[0])
        super().__init__(threads, use_dot, number_size, config.decoder.norm_eps)
        self._depth, self._config = depth, config
        rotary: Rotary | None = depth.rotary
        self.set(
            width=shape.hidden_size,
            heads=shape.num_heads,
            kv_heads=shape.num_heads,
            head_dim=shape.head_dim,
            cos=rotary.cos.data_ptr() if rotary else 0,
            sin=rotary.sin.data_ptr() if rotary else 0,
            vocabulary=config.num_codes,
            stages=config.stages,
        )
        self._bound: list[int] = []
        self._pairs = torch.empty(0)
        self._caches = np.zeros((0, 0), CACHE)
        self._drawings = np.zeros(0, DRAWING)
        self._drawn = np.zeros((0, 0), np.int64)
        self._uniforms = np.zeros((0, 0), np.float32)

    def draw_codes(
        self,
        first_R: np.ndarray,
        uniforms_RN: np.ndarray,
        drawing: Sequence[Drawing],
        states: Sequence[Tensor],
    ) -> np.ndarray:
        """The codes int64 [R, N]; states: [branches, D] of each row."""
        self._bind([len(state) for state in states])
        torch.cat(list(states), out=self._input)
        self._drawn[:, 0] = first_R
        self._uniforms[:] = uniforms_RN
        for row, its in zip(self._drawings, drawing, strict=True):
            row["top_k"], row["filter_k"] = its.top_k, GUIDANCE_TOP
            row["scale"], row["temperature"] = its.cfg_scale, its.temperature
        self.run(self._caches, self._drawings)
        return self._drawn[:, 1:].copy()

    @property
    def logits(self) -> Tensor:
        """Those of the last stage [B, codes], of all slots."""
        return self.buffers["logits"][:, : self._config.num_codes]

    @property
    def _input(self) -> Tensor:
        return self.buffers["state"][:, : self._config.decoder.hidden_size]

    def _bind(self, branches: list[int]) -> None:
        if branches == self._bound:
            return
        self._bound = branches
        config, shape, count = self._config, self._config.depth, sum(branches)
        inner = shape.num_heads * shape.head_dim
        sizes = (config.decoder.hidden_size, shape.hidden_size, inner, shape.intermediate_size)
        scratch = max(
            count * BYTES_OF_INPUT * padded_size(max(sizes)),
            4 * (2 * shape.head_dim + config.stages),
            scratch_bytes(config.num_codes),
        )
        inputs = {f"in{name}": shape.hidden_size for name in self._depth.depformer_in}
        widths = {
            "x": shape.hidden_size,
            "state": config.decoder.hidden_size,
            "qkv": 3 * inner,
            "attn_out": inner,
            "gate": 2 * shape.intermediate_size,
            "logits": config.decoder.vocab_size,
            **inputs,
        }
        self.make_buffers(count, widths, scratch)
        ends = np.cumsum(branches)
        self._drawings = np.zeros(len(branches), DRAWING)
        self._drawings["cond"], self._drawings["uncond"] = ends - branches, ends - 1
        self._drawn = np.zeros((len(branches), config.stages + 1), np.int64)
        self._uniforms = np.zeros((len(branches), config.stages), np.float32)
        self.set_arrays(
            drawn=self._drawn,
            uniforms=self._uniforms,
            capacities=np.full(count, config.stages, np.int64),
            positions=np.zeros(count, np.int64),
            lengths=np.zeros(count, np.int64),
        )
        self.set(rows=len(branches))
        self.set_program(self._program())
        self._make_caches(count)

    def _make_caches(self, count: int) -> None:
        """Keys and values of the stages of one frame; every stage writes before it reads."""
        shape = self._config.depth
        is_float32 = self._depth.audio_embeds[0].weight.dtype == torch.float32
        self._pairs = torch.zeros(
            (shape.num_layers, count, 2, shape.num_heads, self._config.stages, shape.head_dim),
            dtype=torch.float32 if is_float32 else torch.bfloat16,
        )
        self._caches = np.array(
            [
                [(slot[0].data_ptr(), slot[1].data_ptr(), 0, 0) for slot in layer]
                for layer in self._pairs
            ],
            CACHE,
        )

    def _program(self) -> Iterator[np.ndarray]:
        depth, buffers, schedule = self._depth, self.buffers, self._config.depth.schedule
        x, state = buffers["x"], buffers["state"]
        inputs = [buffers[f"in{name}"] for name in schedule]
        for name, module in depth.depformer_in.items():  # The same for all stages of a set.
            yield self.linear(module, state, buffers[f"in{name}"])
        yield self._input_op(START, 0, inputs[0])
        for stage in range(self._config.stages):
            for index, layer in enumerate(depth.layers):
                attn, name = layer.self_attention, str(schedule[stage])
                yield self.linear(attn.in_proj[name], x, buffers["qkv"], RMSNORM, layer.pre_norm)
                yield attention_op(index, attn.q_norm, attn.k_norm, stage)
                yield self.linear(attn.out_proj[name], buffers["attn_out"], x, add=True)
                yield from self.mlp(layer.mlp, x, buffers["gate"], layer.post_norm)
            yield self.linear(depth.logits[stage], x, buffers["logits"], RMSNORM, depth.norm)
            if stage + 1 < self._config.stages:
                yield self._input_op(DRAW, stage, inputs[stage + 1], stage + 1)
            else:
                yield frame_op(DRAW, position=stage)

    def _input_op(self, kind: int, stage: int, source: Tensor, table: int = 0) -> np.ndarray:
        """START or DRAW of a stage: the next input is `source` and the embedding of a code."""
        return frame_op(
            kind,
            position=stage,
            source=source.data_ptr(),
            source_stride=4 * source.shape[1],
            weights=table_address(self._depth.audio_embeds[table]),
        )


def _number_size(table: nn.Module) -> int:
    """Bytes of a number of an embedding."""
    assert isinstance(table, nn.Embedding)
    return table.weight.element_size()


def table_address(table: nn.Module) -> int:
    """Of the rows of an embedding."""
    assert isinstance(table, nn.Embedding)
    return table.weight.data_ptr()


def attention_op(layer: int, query: RMSNorm, key: RMSNorm, position: int = -1) -> np.ndarray:
    """Attention from the buffer qkv to attn_out, at a stage or at the slots' own positions."""
    return frame_op(
        ATTENTION,
        layer=layer,
        position=position,
        query_norm=query.weight.data_ptr(),
        key_norm=key.weight.data_ptr(),
    )


def norm_op(norm: RMSNorm, source: Tensor, out: Tensor) -> np.ndarray:
    """out = source, normed."""
    return frame_op(
        NORM,
        inputs=len(norm.weight),
        source=source.data_ptr(),
        source_stride=4 * source.shape[1],
        norm_weight=norm.weight.data_ptr(),
        out=out.data_ptr(),
        out_stride=4 * out.shape[1],
    )
