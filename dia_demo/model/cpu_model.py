"""A Dia as it runs on this CPU: with a number of threads, and the compiled step where there is one.

`Dia` itself is the architecture; its kernel decides how its forward passes run (`Kernel.install`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from dia_demo.config import ModelConfig
from dia_demo.model.dia import Dia
from dia_demo.model.kv_cache import RowCache

# (codes [B, C], caches) to logits float32 [B, C, V], see model/compiled_step.py.
Stepper = Callable[[Tensor, Sequence[RowCache]], Tensor]


class CpuModel:
    """Satisfies engine/decoder_model.py.

    threads: of torch's operations. stepper: runs single steps in place of Dia's modules; None: the
    modules run them. Prompts always go through the modules.
    """

    can_prefill_ahead = True

    def __init__(self, dia: Dia, threads: int, stepper: Stepper | None = None) -> None:
        self.dia = dia
        self._threads, self._stepper = threads, stepper

    @property
    def config(self) -> ModelConfig:
        return self.dia.config

    def encode(self, text: bytes, guidance: bool, max_positions: int) -> RowCache:
        """Read a row's text; returns its cache, ready for the first codes."""
        with torch_threads(self._threads):
            return self.dia.encode(text, guidance, max_positions)

    @torch.inference_mode()
    def __call__(self, codes_BTC: Tensor, caches: Sequence[RowCache]) -> Tensor:
        """Logits [B, T, C, V] float32 after feeding codes [B, T, C]; the caches grow by T.

        A stepper's logits are overwritten by the next step of the same rows.
        """
        with torch_threads(self._threads):
            if self._stepper is not None and codes_BTC.shape[1] == 1:
                return self._stepper(codes_BTC[:, 0], caches).unsqueeze(1)
            return self.dia(codes_BTC, caches)


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
