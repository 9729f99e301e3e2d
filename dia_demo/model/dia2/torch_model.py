"""Runs Dia2's modules in torch: in float32, without kernels of its own (see `FrameModel`)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dia_demo.model.cpu_model import torch_threads
from dia_demo.model.dia2.config import Dia2Config
from dia_demo.model.dia2.drawing import NOT_FINITE, draw
from dia_demo.model.dia2.interface import Drawing
from dia_demo.model.dia2.network import Dia2, Pair
from dia_demo.model.layers import attend

FIRST_POSITIONS = 128
_SERIALS = itertools.count()


class StepCache:
    """Keys and values of one row, of all layers of the temporal transformer, and its last state.

    serial: different for every cache. Positions that are not written yet are NaN, so that reading
    one is noticed.
    """

    def __init__(
        self,
        config: Dia2Config,
        branches: int,
        max_positions: int,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        d = config.decoder
        self.serial = next(_SERIALS)
        self.branches, self.max_positions = branches, max_positions
        self.length = self.position = 0
        self.state: Tensor | None = None
        capacity = min(FIRST_POSITIONS, max_positions)
        shape = (d.num_layers, 2, branches, d.num_kv_heads, capacity, d.head_dim)
        self._pairs = torch.full(shape, torch.nan, dtype=dtype)

    def write(self, layer: int, k_BGTK: Tensor, v_BGTK: Tensor) -> Pair:
        """Append to a layer; returns all of its keys and values so far [branches, G, S, K]."""
        start, end = self.length, self.length + k_BGTK.shape[2]
        self.reserve(k_BGTK.shape[2])
        pair = self._pairs[layer]
        pair[0, :, :, start:end], pair[1, :, :, start:end] = k_BGTK, v_BGTK
        return pair[0, :, :, :end], pair[1, :, :, :end]

    def advance(self, count: int) -> None:
        """All layers have written so many steps."""
        self.length += count
        self.position += count

    @property
    def capacity(self) -> int:
        """Steps that fit without growing."""
        return self._pairs.shape[4]

    def addresses(self, layer: int, branch: int) -> tuple[int, int]:
        """Of a layer's keys and values of one branch; valid until the cache grows."""
        keys, values = self._pairs[layer, :, branch]
        return keys.data_ptr(), values.data_ptr()

    def reserve(self, count: int) -> None:
        """Grow if necessary for so many more steps, before they are written."""
        old, capacity, needed = self._pairs, self.capacity, self.length + count
        if needed <= capacity:
            return
        assert needed <= self.max_positions, "a row ran past its max_tokens"
        while capacity < needed:
            capacity = min(2 * capacity, self.max_positions)
        shape = (*old.shape[:4], capacity, old.shape[5])
        self._pairs = old.new_full(shape, torch.nan)
        self._pairs[..., : old.shape[4], :] = old


class TorchDia2:
    """Satisfies `FrameModel`. threads: of torch's operations."""

    can_prefill_ahead = True

    def __init__(self, network: Dia2, threads: int) -> None:
        self.network, self._threads = network, threads

    @property
    def config(self) -> Dia2Config:
        return self.network.config

    def new_cache(self, branches: int, max_positions: int) -> StepCache:
        return StepCache(self.config, branches, max_positions)

    @torch.inference_mode()
    def read(self, text_BT2: Tensor, codes_BTC: Tensor, cache: StepCache) -> None:
        with torch_threads(self._threads):
            self.states(text_BT2, codes_BTC, [cache])

    @torch.inference_mode()
    def step(
        self, text_B2: Tensor, codes_BC: Tensor, caches: Sequence[StepCache]
    ) -> tuple[Tensor, Tensor]:
        temporal = self.network.transformer
        with torch_threads(self._threads):
            states = self.states(text_B2[:, None], codes_BC[:, None], caches)[:, 0]
            for cache, state in zip(caches, states.split(_branches(caches)), strict=True):
                cache.state = state
            return temporal.action_head(states), temporal.cb0_head(states)

    @torch.inference_mode()
    def depth(
        self,
        first_R: np.ndarray,
        uniforms_RN: np.ndarray,
        drawing: Sequence[Drawing],
        caches: Sequence[StepCache],
    ) -> np.ndarray:
        branches = _branches(caches)
        state = torch.cat([cache.state for cache in caches if cache.state is not None])
        past: list[Pair | None] = [None] * len(self.network.depformer.layers)
        codes, drawn = first_R, np.empty(uniforms_RN.shape, np.int64)
        with torch_threads(self._threads):
            for stage in range(uniforms_RN.shape[1]):
                slots = torch.from_numpy(np.repeat(np.maximum(codes, 0), branches))
                logits = self.network.depformer.stage(stage, slots, state, past)
                for row, its in enumerate(logits.split(branches)):
                    code = draw(its.numpy(), drawing[row], uniforms_RN[row, stage])
                    drawn[row, stage] = code
                codes = drawn[:, stage]
        drawn[(drawn == NOT_FINITE).any(axis=1)] = NOT_FINITE
        return drawn

    def states(self, text_BT2: Tensor, codes_BTC: Tensor, caches: Sequence[StepCache]) -> Tensor:
        """The temporal transformer's states [B, T, D]; T > 1 only of one row with an empty cache.

        Rows have lengths of their own, so each attends by itself.
        """
        temporal, branches = self.network.transformer, _branches(caches)
        steps = text_BT2.shape[1]
        positions = [cache.position for cache in caches for _ in range(cache.branches)]
        rotation = temporal.rotary.at(torch.tensor(positions)[:, None] + torch.arange(steps))
        x = temporal.embed(text_BT2, codes_BTC)
        for index, layer in enumerate(temporal.layers):
            q, k, v = layer.attn.project(layer.pre_norm(x, x.dtype), rotation)
            parts = zip(q.split(branches), k.split(branches), v.split(branches), strict=True)
            attended = []
            for cache, (its_q, its_k, its_v) in zip(caches, parts, strict=True):
                keys, values = cache.write(index, its_k, its_v)
                attended.append(attend(its_q, keys, values, causal=steps > 1))
            x = x + layer.attn.o_proj(torch.cat(attended))
            x = x + layer.mlp(layer.post_norm(x, x.dtype))
        for cache in caches:
            cache.advance(steps)
        return temporal.norm(x, x.dtype)


def _branches(caches: Sequence[StepCache]) -> list[int]:
    return [cache.branches for cache in caches]
