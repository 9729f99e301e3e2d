"""The keys and values of one row: those of self-attention so far, and those of its text.

Each row has its own tensors, for its one or two halves, and attention reads exactly their filled
part. So rows of any length share a step without padding or masks, and a row that leaves the batch
frees its memory.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from dia_demo.config import DecoderConfig

FIRST_POSITIONS = 256
_SERIALS = itertools.count()


class RowCache:
    """Keys and values of one row, all layers.

    cross: for each half and layer, (k, v) [1, G, S, K] of the text; with guidance there are two
    halves, conditional and unconditional, else one. Self-attention has space for FIRST_POSITIONS at
    first and doubles up to max_positions. Positions not yet written are NaN, so that reading one is
    noticed. serial: different for every cache.
    """

    def __init__(
        self, config: DecoderConfig, cross: list[list[tuple[Tensor, Tensor]]], max_positions: int
    ) -> None:
        self.serial = next(_SERIALS)
        self.cross = cross
        self.halves = len(cross)
        self.max_positions = max_positions
        self.length = 0
        like = cross[0][0][0]
        capacity = min(FIRST_POSITIONS, max_positions)
        shape = (self.halves, config.num_kv_heads, capacity, config.head_dim)
        self._keys = [like.new_full(shape, torch.nan) for _ in range(config.num_layers)]
        self._values = [like.new_full(shape, torch.nan) for _ in range(config.num_layers)]

    @property
    def size_bytes(self) -> int:
        """Bytes of the keys and values of self- and cross-attention."""
        pairs = [*sum(self.cross, []), *zip(self._keys, self._values, strict=True)]
        return sum(k.nbytes + v.nbytes for k, v in pairs)

    @property
    def dtype(self) -> torch.dtype:
        return self._keys[0].dtype

    @property
    def capacity(self) -> int:
        """Positions that fit without growing."""
        return self._keys[0].shape[2]

    @property
    def text_lengths(self) -> list[int]:
        """Positions of the encoded text that each half attends to."""
        return [layers[0][0].shape[2] for layers in self.cross]

    def addresses(self, layer: int, half: int) -> tuple[int, int, int, int]:
        """Addresses of a layer's keys and values of one half, then of those of the text.

        Valid until the cache grows.
        """
        k_text, v_text = self.cross[half][layer]
        k, v = self._keys[layer][half], self._values[layer][half]
        return k.data_ptr(), v.data_ptr(), k_text.data_ptr(), v_text.data_ptr()

    def reserve(self, count: int) -> None:
        """Grow if necessary for `count` more positions, before a forward pass writes them."""
        needed = self.length + count
        capacity = self.capacity
        if needed <= capacity:
            return
        assert needed <= self.max_positions, "a row ran past its max_tokens"
        while capacity < needed:
            capacity = min(2 * capacity, self.max_positions)
        for tensors in (self._keys, self._values):
            for layer, old in enumerate(tensors):
                grown = old.new_full((*old.shape[:2], capacity, old.shape[3]), torch.nan)
                grown[:, :, : self.length] = old[:, :, : self.length]
                tensors[layer] = grown

    def write(self, layer: int, k_BTGK: Tensor, v_BTGK: Tensor) -> tuple[Tensor, Tensor]:
        """Append this layer's positions; returns all of k and v so far, [halves, G, S, K]."""
        count = k_BTGK.shape[1]
        keys, values = self._keys[layer], self._values[layer]
        keys.narrow(2, self.length, count).copy_(k_BTGK.transpose(1, 2))
        values.narrow(2, self.length, count).copy_(v_BTGK.transpose(1, 2))
        end = self.length + count
        return keys.narrow(2, 0, end), values.narrow(2, 0, end)

    def advance(self, count: int) -> None:
        """All layers have written `count` positions."""
        self.length += count
