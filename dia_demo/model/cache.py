"""What the decoder remembers of one row: self-attention so far, cross-attention of its text.

Each row keeps its own tensors, for its one or two halves, exactly as long as they are filled. So
rows of any length share a step without padding or masks, and a row that leaves frees its memory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dia_demo.config import DecoderConfig

FIRST_POSITIONS = 256


class RowCache:
    """Keys and values of one row, all layers.

    halves is 2 with guidance (conditional, then unconditional), else 1. cross holds (k, v)
    [halves, G, S, K] a layer. Self-attention starts at FIRST_POSITIONS and doubles up to
    max_positions. Slots not yet written are NaN, so that reading one is loud.
    """

    def __init__(
        self, config: DecoderConfig, cross: list[tuple[Tensor, Tensor]], max_positions: int
    ) -> None:
        self.cross = cross
        self.halves = cross[0][0].shape[0]
        self.max_positions = max_positions
        self.length = 0
        like = cross[0][0]
        slots = min(FIRST_POSITIONS, max_positions)
        shape = (config.num_layers, 2, self.halves, config.num_kv_heads, slots, config.head_dim)
        self._kv = torch.full(shape, torch.nan, dtype=like.dtype, device=like.device)

    def reserve(self, count: int) -> None:
        """Make room for `count` more positions, before a forward pass writes them."""
        needed = self.length + count
        slots = self._kv.shape[4]
        if needed <= slots:
            return
        assert needed <= self.max_positions, "a row ran past its max_tokens"
        while slots < needed:
            slots = min(2 * slots, self.max_positions)
        shape = (*self._kv.shape[:4], slots, self._kv.shape[5])
        grown = self._kv.new_full(shape, torch.nan)
        grown[..., : self.length, :] = self._kv[..., : self.length, :]
        self._kv = grown

    def write(self, layer: int, k_BTGK: Tensor, v_BTGK: Tensor) -> tuple[Tensor, Tensor]:
        """Append this layer's positions; returns all of k and v so far, [halves, G, S, K]."""
        end = self.length + k_BTGK.shape[1]
        self._kv[layer, 0, :, :, self.length : end] = k_BTGK.transpose(1, 2)
        self._kv[layer, 1, :, :, self.length : end] = v_BTGK.transpose(1, 2)
        return self._kv[layer, 0, :, :, :end], self._kv[layer, 1, :, :, :end]

    def advance(self, count: int) -> None:
        """All layers have written `count` positions."""
        self.length += count
