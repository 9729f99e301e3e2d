"""The notice before the speech of this app, at any sample rate (disclosure/notice.py)."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from dia_demo import audio
from dia_demo.config import RuntimeConfig
from dia_demo.disclosure.notice import SENTENCE, Notice, tone, with_pause
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import AudioChunk, Failed, Finished
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import RunError
from dia_demo.files import cache_folder
from dia_demo.task import result_of

_VOICE, _SEED = "nano", 1
_RATE = 16000  # where only its length matters
_MAKING = threading.Lock()
AnyEvent = TypeVar("AnyEvent")


class NoticeSound:
    """The samples of a kind of notice, made when they are first needed. models: to look up the
    embedded voice."""

    def __init__(self, kind: Notice, models: Mapping[str, ModelInfo]) -> None:
        self.kind, self._models = kind, models
        self._sounds: dict[int, np.ndarray] = {}

    def samples(self, sample_rate: int) -> np.ndarray:
        """The notice and the pause after it, float32 [n] at a rate in Hz; nothing where there is to
        be none. Raises RunError if the sentence cannot be made."""
        if sample_rate not in self._sounds:
            self._sounds[sample_rate] = self._make_samples(sample_rate)
        return self._sounds[sample_rate]

    @property
    def seconds(self) -> float:
        """How long it is."""
        return len(self.samples(_RATE)) / _RATE

    def prepend_to(
        self, events: Generator[AnyEvent, None, None]
    ) -> Generator[AnyEvent, None, None]:
        """The events of a take or a dialogue, with the notice as the first sound. Raises RunError
        as `samples` does."""
        seconds: float | None = None
        with closing(events):
            for event in events:
                if isinstance(event, AudioChunk):
                    if seconds is None:
                        notice = self.samples(event.sample_rate)
                        seconds = len(notice) / event.sample_rate
                        if seconds:
                            yield replace(event, samples=notice, start_seconds=0.0)
                    event = replace(event, start_seconds=event.start_seconds + seconds)
                yield event

    def _make_samples(self, sample_rate: int) -> np.ndarray:
        if self.kind is Notice.OFF:
            return np.zeros(0, np.float32)
        sound = tone(sample_rate) if self.kind is Notice.TONE else self._sentence(sample_rate)
        return with_pause(sound, sample_rate)

    def _sentence(self, sample_rate: int) -> np.ndarray:
        """The sentence in the embedded voice: said once, then read from the cache."""
        import soundfile
        import soxr

        digest = hashlib.sha256(SENTENCE.encode()).hexdigest()[:8]
        path = cache_folder() / f"notice-{digest}{audio.STORED_SUFFIX}"
        with _MAKING:
            if not path.exists():
                _say(path, self._models[_VOICE])
            pcm, rate = soundfile.read(str(path), dtype="float32")
        return pcm if rate == sample_rate else soxr.resample(pcm, rate, sample_rate)


def _say(path: Path, info: ModelInfo) -> None:
    """Write the sentence. It takes an engine of its own, beside whatever model is loaded."""
    engine = result_of(Engine.load(info, RuntimeConfig(model=_VOICE, threads=1)))
    try:
        params = replace(info.config.defaults, seed=_SEED)
        row = info.family.row(info.config, info.family.encode(f"[S1] {SENTENCE}", ""), params)
        for event in engine.stream([row], [2.5]):
            if isinstance(event, Failed):
                raise RunError(f"The notice could not be made: {event.message}")
            if isinstance(event, Finished):
                path.parent.mkdir(parents=True, exist_ok=True)
                figures, samples = event.result.figures, event.result.samples
                assert samples is not None, "it was made with audio"
                about = {"script": SENTENCE, "model": _VOICE}
                audio.write_audio(path, samples, figures.sample_rate, about)
    finally:
        engine.close()
