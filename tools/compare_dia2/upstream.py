"""Runs nari-labs/dia2 from a checkout, unchanged, in float32 on the CPU.

What it would fetch or draw is replaced from outside: Mimi by nothing, Whisper by given words,
torch.multinomial by the draw of a given list of uniforms.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from tools.compare_dia2.cases import Comparison
from tools.torchaudio_guard import hide_broken_torchaudio


@dataclass(frozen=True)
class Made:
    """What a generation gave: codes [frames, C], the actions and both text tokens of each step, and
    the words with their seconds."""

    codes: np.ndarray
    actions: list[tuple[int, int, int]]
    words: list[tuple[str, float]]


class Upstream:
    """Upstream's Dia2 with the checkpoint in `folder`."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        if str(checkout) not in sys.path:
            sys.path.insert(0, str(checkout))
        hide_broken_torchaudio()
        # Reads recordings, of which there are none here.
        sys.modules.setdefault("sphn", ModuleType("sphn"))
        import dia2.engine as engine
        from dia2.audio import MimiCodec

        self._engine = engine
        config, weights = folder / "config.json", folder / "model.safetensors"
        made = engine.Dia2.from_local(config, weights, device="cpu", tokenizer_id=str(folder))
        with patch.object(MimiCodec, "from_pretrained", lambda *_, **__: _silent_codec()):
            made._ensure_runtime()
        self._dia2 = made
        self.machine, self.generate = made._ensure_runtime().machine, made.generate

    def encode(self, text: str) -> list[int]:
        """The tokens of some text."""
        return self._dia2._ensure_runtime().tokenizer.encode(text, add_special_tokens=False)

    def make(self, comparison: Comparison, uniforms: Iterator[float]) -> Made:
        """One generation; each draw takes the next of the uniforms."""
        params, process, actions = comparison.params, self.machine.process, list[tuple]()

        def note(step: int, state: Any, token: int, is_forced: bool = False) -> tuple:
            out = process(step, state, token, is_forced)
            if not is_forced:
                actions.append((token, out[0], out[1]))
            return out

        plan = self._engine.build_prefix_plan
        prompts = {f"recording {n}": each for n, each in enumerate(comparison.prompts, start=1)}
        names = [*prompts, None, None]
        with ExitStack() as stack:
            stack.enter_context(patch.object(self.machine, "process", note))
            stack.enter_context(patch("torch.multinomial", partial(_draw, uniforms)))
            with_prompts = partial(plan, **_readers(prompts))
            stack.enter_context(patch.object(self._engine, "build_prefix_plan", with_prompts))
            result = self.generate(
                comparison.script,
                temp_text=params.text_temperature,
                temp_audio=params.temperature,
                topk_audio=params.top_k,
                cfg_scale=params.cfg_scale,
                prefix_speaker_1=names[0],
                prefix_speaker_2=names[1],
            )
        return Made(result.audio_tokens[0].T.numpy(), actions, result.timestamps)


def _silent_codec() -> SimpleNamespace:
    def decode(codes: torch.Tensor) -> torch.Tensor:
        return torch.zeros(1, 1, 1920 * codes.shape[-1])

    return SimpleNamespace(sample_rate=24000, frame_rate=12.5, decode=decode)


def _readers(prompts: dict) -> dict:
    """What upstream gets in place of Whisper, a reader of files, and Mimi."""
    from dia2.runtime.voice_clone import WhisperWord

    def transcribe(path: str, _device: object) -> list:
        return [WhisperWord(word.text, word.start, word.end) for word in prompts[path].words]

    return {
        "transcribe_fn": transcribe,
        "load_audio_fn": lambda path, _rate: path,
        "encode_fn": lambda path: torch.from_numpy(prompts[path].codes.T.copy()),
    }


def _draw(uniforms: Iterator[float], probabilities: torch.Tensor, num_samples: int) -> torch.Tensor:
    """The place whose cumulative probability, from the largest down, exceeds the next uniform."""
    assert num_samples == 1 and len(probabilities) == 1
    order = torch.argsort(probabilities[0], descending=True, stable=True)
    cumulative = probabilities[0][order].double().cumsum(0)
    target = next(uniforms) * cumulative[-1].item()
    place = int((cumulative <= target).sum())
    return order[place].view(1, 1)
