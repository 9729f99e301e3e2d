"""A Dia as it runs on this CPU: with a number of threads, and the compiled step where there is one.

`Dia` itself is the architecture; its kernel decides how its forward passes run (`Kernel.install`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor

from dia_demo.config import ModelConfig
from dia_demo.model.dia import EMPTY_TEXT, UNCONDITIONAL, Dia, TextState
from dia_demo.model.kv_cache import PromptMemory, PromptState, RowCache


class Stepper(Protocol):
    """Runs single steps: `model.compiled_step.CompiledStep`."""

    def __call__(self, codes_BC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        """Logits float32 [B, C, V] after feeding codes [B, C]."""

    def next_frame(self, codes_BC: Tensor, caches: Sequence[RowCache], number: int) -> Tensor:
        """As `Decoder.next_frame`."""


class CpuModel:
    """Satisfies engine/decoder_model.py.

    threads: of torch's operations. stepper: runs single steps in place of Dia's modules; None: the
    modules run them. Prompts always go through the modules.

    The unconditional branch does not depend on the text: what it computes from its empty text, and
    from a voice prompt, is kept for the next row. So that a row is the same with and without what
    is kept, each branch of a prompt is computed by itself.
    """

    can_prefill_ahead = True

    def __init__(self, dia: Dia, threads: int, stepper: Stepper | None = None) -> None:
        self.dia = dia
        self.prompts = PromptMemory()
        self._threads, self._stepper = threads, stepper
        self._empty_text: TextState | None = None

    @property
    def config(self) -> ModelConfig:
        return self.dia.config

    @torch.inference_mode()
    def encode(self, text: bytes, cfg_scale: float, max_positions: int) -> RowCache:
        """Read a row's text; returns its cache, ready for the first codes."""
        with torch_threads(self._threads):
            cross = [self.dia.read_text(text)]
            if self.config.branches(cfg_scale) == 2:
                if self._empty_text is None:
                    self._empty_text = self.dia.read_text(EMPTY_TEXT)
                cross.append(self._empty_text)
        return self.dia.cache_of(cross, cfg_scale, max_positions)

    @torch.inference_mode()
    def __call__(self, codes_BTC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        """Logits [B, 1, C, V] float32 after the last of codes [B, T, C]; the caches grow by T.

        A stepper's logits are overwritten by the next step of the same rows.
        """
        if codes_BTC.shape[1] == 1 and self._stepper is not None:
            return self._stepper(codes_BTC[:, 0], caches).unsqueeze(1)
        with torch_threads(self._threads):
            if codes_BTC.shape[1] > 1:
                prompts = codes_BTC.split([cache.branches for cache in caches])
                return torch.cat(list(map(self._read_prompt, prompts, caches)))
            return self.dia(codes_BTC, caches)

    @torch.inference_mode()
    def next_frame(self, codes_BC: Tensor, caches: Sequence[RowCache], number: int) -> Tensor:
        """As `Decoder.next_frame`; a stepper's logits are overwritten by the next call."""
        if self._stepper is not None:
            return self._stepper.next_frame(codes_BC, caches, number)
        with torch_threads(self._threads):
            return self.dia.next_frame(codes_BC, caches, number)

    def _read_prompt(self, codes_BTC: Tensor, cache: RowCache) -> Tensor:
        """Feed a prompt to the branches of one row; logits [B, 1, C, V] after its last position."""
        states = [self._state_after(codes, cache, branch) for branch, codes in enumerate(codes_BTC)]
        cache.fill(states)
        return torch.cat([state.logits for state in states])

    def _state_after(self, codes_TC: Tensor, cache: RowCache, branch: int) -> PromptState:
        """What a branch holds after a prompt: computed, or kept if it is the unconditional one."""
        is_unconditional = branch == UNCONDITIONAL
        if is_unconditional and (kept := self.prompts.get(codes_TC)) is not None:
            return kept
        state = self._compute_branch(codes_TC, cache.for_branch(branch))
        if is_unconditional:
            self.prompts.put(codes_TC, state)
        return state

    def _compute_branch(self, codes_TC: Tensor, alone: RowCache) -> PromptState:
        """What a branch holds after a prompt; `alone` is an empty cache of this branch."""
        logits = self.dia(codes_TC[None], [alone])[:, -1:]
        return PromptState(alone.layers_of_branch(0), logits)


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """torch's operations in the block use `count` threads; None: as many as before.

    torch keeps this number for each calling thread, and a page's requests are continued by one
    thread after another. After an operation torch's threads wait for the next one by spinning,
    which slows down whatever else needs their core: small operations between the steps should use
    one thread.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
