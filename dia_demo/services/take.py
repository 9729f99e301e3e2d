"""A take: what is asked for, and what comes of it."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from dia_demo import audio
from dia_demo.config import SEED_LIMIT, GenerationParams, RuntimeConfig
from dia_demo.engine.events import Figures
from dia_demo.services.wording import length_remark


@dataclass(frozen=True)
class VoicePrompt:
    """A voice to go on with: a sound file, or its codes [frames, channels], and what it says."""

    audio: Path | None = None
    codes: np.ndarray | None = None
    transcript: str = ""


@dataclass(frozen=True)
class Request:
    """Everything one take depends on. `speed` stretches the finished take, keeping its pitch;
    without `with_audio` the take has codes alone and no codec is loaded. `normalise`: numbers,
    abbreviations and signs are written out for the model, as they always are for the nano voice."""

    script: str
    params: GenerationParams
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    voice: VoicePrompt | None = None
    speed: float = 1.0
    with_audio: bool = True
    normalise: bool = False


@dataclass(frozen=True)
class Take:
    """A finished (or stopped) take: float32 [n] at sample_rate, and how it came about."""

    samples: np.ndarray
    sample_rate: int
    codes: np.ndarray
    figures: Figures
    request: Request
    health: audio.Health

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is wrong with the sound or odd about its length, in plain words."""
        remark = length_remark(self.figures)
        return self.health.problems() + (() if remark is None else (remark,))

    def report(self) -> dict:
        """The figures and the remarks, for programs."""
        return asdict(self.figures) | {"remarks": list(self.remarks)}

    def metadata(self) -> dict:
        """What the sound file says of itself: enough to make the take again."""
        request = self.request
        settings = asdict(replace(request.params, seed=self.figures.seed))
        return {
            "script": request.script,
            "settings": settings,
            "speed": request.speed,
            "normalise": request.normalise,
            "voice_transcript": request.voice.transcript if request.voice else None,
            "figures": asdict(self.figures),
        }

    def save(self, path: Path | str) -> Path:
        """Write WAV or FLAC, by suffix, with settings, seed and model inside."""
        return audio.write_audio(path, self.samples, self.sample_rate, self.metadata())


def random_seed() -> int:
    """A seed for a person who gave none."""
    return secrets.randbelow(SEED_LIMIT + 1)
