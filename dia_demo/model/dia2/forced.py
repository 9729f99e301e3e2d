"""Frames of Dia2 again, from what a model read and drew in them: for calibration and comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dia_demo.model.dia2.network import Depth, Pair
from dia_demo.model.dia2.torch_model import StepCache, TorchDia2


@dataclass
class FrameRecording:
    """What one row read and drew, step by step.

    text: int64 [branches, 2] each. codes: int64 [C], what was read; drawn: int64 [C], all 0 in a
    light step (`Dia2Config.light_steps`).
    """

    branches: int
    text: list[Tensor] = field(default_factory=list)
    codes: list[Tensor] = field(default_factory=list)
    drawn: list[np.ndarray] = field(default_factory=list)

    def inputs(self) -> tuple[Tensor, Tensor]:
        """int64 [branches, T, 2] and [branches, T, C]."""
        codes = torch.stack(self.codes).expand(self.branches, -1, -1)
        return torch.stack(self.text, dim=1), codes

    def codes_drawn(self) -> Tensor:
        """int64 [T, C]."""
        return torch.from_numpy(np.stack(self.drawn))


class Recorder:
    """A model that records its rows, in the order in which they joined."""

    def __init__(self, model: TorchDia2) -> None:
        self._model = model
        self._recordings: dict[int, tuple[StepCache, FrameRecording]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    @property
    def recordings(self) -> list[FrameRecording]:
        """Of all rows so far."""
        return [recording for _, recording in self._recordings.values()]

    def step(
        self, text_B2: Tensor, codes_BC: Tensor, caches: Sequence[StepCache]
    ) -> tuple[Tensor, Tensor]:
        """As of the model."""
        slot = 0
        for recording in self._recordings_of(caches):
            recording.text.append(text_B2[slot : slot + recording.branches].clone())
            recording.codes.append(codes_BC[slot].clone())
            recording.drawn.append(np.zeros(codes_BC.shape[1], np.int64))
            slot += recording.branches
        return self._model.step(text_B2, codes_BC, caches)

    def depth(
        self, first_R: np.ndarray, uniforms_RN: np.ndarray, drawing: Any, caches: Any
    ) -> np.ndarray:
        """As of the model."""
        drawn = self._model.depth(first_R, uniforms_RN, drawing, caches)
        for recording, first, others in zip(
            self._recordings_of(caches), first_R, drawn, strict=True
        ):
            recording.drawn[-1] = np.concatenate([[first], others])
        return drawn

    def _recordings_of(self, caches: Sequence[StepCache]) -> list[FrameRecording]:
        # The caches are kept, so that no other one gets the identity of one of them.
        for cache in caches:
            self._recordings.setdefault(id(cache), (cache, FrameRecording(cache.branches)))
        return [self._recordings[id(cache)][1] for cache in caches]


@torch.inference_mode()
def forced_logits(model: TorchDia2, recording: FrameRecording) -> Tensor:
    """float32 [T, branches, C, codes]: what the model says of every code, given all before it."""
    config, text_codes = model.config, recording.inputs()
    cache = model.new_cache(recording.branches, len(recording.text))
    states_BTD = model.states(*text_codes, [cache])
    first = model.network.transformer.cb0_head(states_BTD)[..., : config.num_codes]
    drawn_TC = recording.codes_drawn()
    flat = states_BTD.transpose(0, 1).flatten(0, 1)
    codes = drawn_TC.repeat_interleave(recording.branches, 0)
    others = depth_logits(model.network.depformer, flat, codes)
    shape = len(drawn_TC), recording.branches
    channels = [first.transpose(0, 1), *(each.unflatten(0, shape) for each in others)]
    return torch.stack(channels, dim=2)


def depth_logits(depth: Depth, states_BD: Tensor, codes_BC: Tensor) -> list[Tensor]:
    """Logits [B, codes] of every stage, for the codes that were drawn before it."""
    past: list[Pair | None] = [None] * len(depth.layers)
    stages = codes_BC.shape[1] - 1
    return [depth.stage(number, codes_BC[:, number], states_BD, past) for number in range(stages)]
