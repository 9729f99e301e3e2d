"""Dia2 on this CPU: each part of a frame is one call of the pool of threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dia_demo.model.compiled_step import ManyRows
from dia_demo.model.dia2.compiled_frames.both_parts import DepthPart, TemporalPart
from dia_demo.model.dia2.drawing import NOT_FINITE
from dia_demo.model.dia2.interface import Drawing
from dia_demo.model.dia2.network import Dia2
from dia_demo.model.dia2.torch_model import StepCache, TorchDia2
from dia_demo.model.packed_linear import PackedLinear


class CompiledDia2(TorchDia2):
    """Satisfies `FrameModel` with a network whose linears are PackedLinear.

    use_dot: whether the temporal and the depth part use the processor's dot products; a frame
    raises NotImplementedError if it has none for the format of a linear.
    """

    def __init__(self, network: Dia2, threads: int, use_dot: tuple[bool, bool]) -> None:
        # What is left to torch is small, and its waiting threads would spin.
        super().__init__(network, 1)
        config = network.config
        self.temporal_part = TemporalPart(network.transformer, config, threads, use_dot[0])
        self.depth_part = DepthPart(network.depformer, config, threads, use_dot[1])
        self._lock = threading.Lock()
        parts = (network.transformer, self.temporal_part), (network.depformer, self.depth_part)
        for modules, part in parts:
            many_rows = ManyRows(threads, part.use_dot)
            for module in modules.modules():
                if isinstance(module, PackedLinear):
                    module.many_rows = many_rows

    def new_cache(self, branches: int, max_positions: int) -> StepCache:
        is_float32 = self.network.transformer.audio_embeds[0].weight.dtype == torch.float32
        dtype = torch.float32 if is_float32 else torch.bfloat16
        return StepCache(self.config, branches, max_positions, dtype)

    @torch.inference_mode()
    def step(
        self, text_B2: Tensor, codes_BC: Tensor, caches: Sequence[StepCache]
    ) -> tuple[Tensor, Tensor]:
        with self._lock:
            return self.temporal_part.run_step(text_B2, codes_BC, caches)

    @torch.inference_mode()
    def depth(
        self,
        first_R: np.ndarray,
        uniforms_RN: np.ndarray,
        drawing: Sequence[Drawing],
        caches: Sequence[StepCache],
    ) -> np.ndarray:
        states = [cache.state for cache in caches if cache.state is not None]
        with self._lock:
            drawn = self.depth_part.draw_codes(first_R, uniforms_RN, drawing, states)
        drawn[(drawn == NOT_FINITE).any(axis=1)] = NOT_FINITE
        return drawn

    def compile(self) -> None:
        """Make one frame, so that all kernels are compiled before the first take."""
        config = self.config
        text = torch.zeros(1, 2, dtype=torch.int64)
        codes = torch.zeros(1, config.decoder.num_channels, dtype=torch.int64)
        uniforms = np.zeros((1, config.stages), np.float32)
        cache = self.new_cache(1, 1)
        self.step(text, codes, [cache])
        self.depth(np.zeros(1, np.int64), uniforms, [Drawing(1.0, 0.0, 1)], [cache])
