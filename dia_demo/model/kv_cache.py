"""The keys and values of one row: those of self-attention so far, and those of its text.

Each row has its own tensors, for its one or two CFG branches, and attention reads exactly their
filled part. So rows of any length share a step without padding or masks, and a row that leaves the
batch frees its memory.

What the unconditional branch computes from a voice prompt does not depend on the text:
`PromptMemory` keeps it for the next row with the same voice.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dia_demo.config import DecoderConfig

FIRST_POSITIONS = 256
# Prompts that are kept take at most so many bytes: in Dia-1.6B about 20 s in bfloat16.
PROMPT_BYTES = 64 * 2**20
_SERIALS = itertools.count()


@dataclass(frozen=True)
class PromptState:
    """What one branch holds after a prompt of T positions.

    layers: of each layer, (k, v) [G, T, K]. logits: [1, 1, C, V], after the last position.
    """

    layers: list[tuple[Tensor, Tensor]]
    logits: Tensor

    @property
    def size_bytes(self) -> int:
        return self.logits.nbytes + sum(k.nbytes + v.nbytes for k, v in self.layers)

    def copy(self) -> PromptState:
        """The same numbers in memory of their own."""
        return PromptState([(k.clone(), v.clone()) for k, v in self.layers], self.logits.clone())


class PromptMemory:
    """The states of the unconditional branch after the prompts that were used last, for one model.

    A prompt is its codes int64 [T, C]. At most `limit` bytes are kept; the state that was not used
    for longest is dropped first. Safe to use from several threads.
    """

    def __init__(self, limit: int = PROMPT_BYTES) -> None:
        self._limit = limit
        self._states: dict[bytes, PromptState] = {}  # The one used last at the end.
        self._lock = threading.Lock()
        self.size_bytes = 0

    def get(self, codes_TC: Tensor) -> PromptState | None:
        """The state after these codes, if it is kept. It must not be changed."""
        key = codes_TC.numpy().tobytes()
        with self._lock:
            state = self._states.pop(key, None)
            if state is not None:
                self._states[key] = state
            return state

    def put(self, codes_TC: Tensor, state: PromptState) -> None:
        """Keep a copy of the state after these codes, if it is within the limit by itself."""
        if state.size_bytes > self._limit:
            return
        key, copy = codes_TC.numpy().tobytes(), state.copy()
        with self._lock:
            if key in self._states:  # Another thread has computed it at the same time.
                return
            self._states[key] = copy
            self.size_bytes += copy.size_bytes
            while self.size_bytes > self._limit:
                self.size_bytes -= self._states.pop(next(iter(self._states))).size_bytes


class RowCache:
    """Keys and values of one row, all layers.

    cross: for each branch and layer, (k, v) [1, G, S, K] of the text; with guidance there are two
    branches, conditional and unconditional, else one. Self-attention has space for FIRST_POSITIONS
    at first and doubles up to max_positions. Positions not yet written are NaN, so that reading one
    is noticed. serial: different for every cache. scale_vector: added to every input of the row
    (see `Decoder.scale_vector`); None where guidance is not distilled. state: of a model with
    several frames a step, what the last step has computed for its further frames, float32
    [branches, D].
    text_head: the head of the last layer's cross-attention that follows the text, if one does.
    capacity: positions that fit without growing.
    """

    def __init__(
        self,
        config: DecoderConfig,
        cross: list[list[tuple[Tensor, Tensor]]],
        max_positions: int,
        scale_vector: Tensor | None = None,
        text_head: int | None = None,
    ) -> None:
        self.serial = next(_SERIALS)
        self.cross = cross
        self.scale_vector = scale_vector
        self.state: Tensor | None = None
        self._text_head = text_head
        self._text_query: np.ndarray | None = None
        self._text_keys: np.ndarray | None = None
        self._config = config
        self.branches = len(cross)
        self.max_positions = max_positions
        self.length = 0
        like = cross[0][0][0]
        self.capacity = min(FIRST_POSITIONS, max_positions)
        shape = (self.branches, config.num_kv_heads, self.capacity, config.head_dim)
        self._keys = [like.new_full(shape, torch.nan) for _ in range(config.num_layers)]
        self._values = [like.new_full(shape, torch.nan) for _ in range(config.num_layers)]

    def set_text_queries(self, queries_HK: Tensor) -> None:
        """The first branch's queries in the last layer's cross-attention. A model that writes those
        of all steps to one float32 tensor sets it once."""
        if self._text_head is None:
            return
        self._text_query = queries_HK[self._text_head].float().numpy(force=True)
        if self._text_keys is None:  # They are the same in every step.
            keys_GSK = self.cross[0][-1][0][0]
            group = self._text_head * len(keys_GSK) // len(queries_HK)
            self._text_keys = keys_GSK[group].float().numpy(force=True)

    @property
    def text_place(self) -> int | None:
        """The byte of the text that the last step read, where a head follows the text."""
        if self._text_query is None or self._text_keys is None:
            return None
        return int(self._text_keys.dot(self._text_query).argmax())

    @property
    def size_bytes(self) -> int:
        """Bytes of the keys and values of self- and cross-attention."""
        pairs = [*sum(self.cross, []), *zip(self._keys, self._values, strict=True)]
        return sum(k.nbytes + v.nbytes for k, v in pairs)

    @property
    def dtype(self) -> torch.dtype:
        return self._keys[0].dtype

    @property
    def text_lengths(self) -> list[int]:
        """Positions of the encoded text that each branch attends to."""
        return [layers[0][0].shape[2] for layers in self.cross]

    def addresses(self, layer: int, branch: int) -> tuple[int, int, int, int]:
        """Addresses of a layer's keys and values of one branch, then of those of the text.

        Valid until the cache grows.
        """
        k_text, v_text = self.cross[branch][layer]
        k, v = self._keys[layer][branch], self._values[layer][branch]
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
        self.capacity = capacity
        for tensors in (self._keys, self._values):
            for layer, old in enumerate(tensors):
                grown = old.new_full((*old.shape[:2], capacity, old.shape[3]), torch.nan)
                grown[:, :, : self.length] = old[:, :, : self.length]
                tensors[layer] = grown

    def write(self, layer: int, k_BTGK: Tensor, v_BTGK: Tensor) -> tuple[Tensor, Tensor]:
        """Append this layer's positions; returns all of k and v so far, [branches, G, S, K]."""
        count = k_BTGK.shape[1]
        keys, values = self._keys[layer], self._values[layer]
        keys.narrow(2, self.length, count).copy_(k_BTGK.transpose(1, 2))
        values.narrow(2, self.length, count).copy_(v_BTGK.transpose(1, 2))
        end = self.length + count
        return keys.narrow(2, 0, end), values.narrow(2, 0, end)

    def advance(self, count: int) -> None:
        """All layers have written `count` positions."""
        self.length += count

    def for_branch(self, branch: int) -> RowCache:
        """An empty cache of one branch by itself, attending to the same text."""
        return RowCache(self._config, [self.cross[branch]], self.max_positions, self.scale_vector)

    def layers_of_branch(self, branch: int) -> list[tuple[Tensor, Tensor]]:
        """Of each layer, the keys and values [G, T, K] of one branch so far, as views."""
        return [
            (k[branch, :, : self.length], v[branch, :, : self.length])
            for k, v in zip(self._keys, self._values, strict=True)
        ]

    def fill(self, states: Sequence[PromptState]) -> None:
        """Copy the positions of a prompt, given for each branch, into this empty cache."""
        count = states[0].layers[0][0].shape[1]
        self.reserve(count)
        self.advance(count)
        for branch, state in enumerate(states):
            for own, kept in zip(self.layers_of_branch(branch), state.layers, strict=True):
                for to, numbers in zip(own, kept, strict=True):
                    to.copy_(numbers)
