"""One request from script to finished take: checks, place in the queue, model, rows, events."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from dia_demo import audio
from dia_demo.config import SEED_LIMIT, GenerationParams, RuntimeConfig
from dia_demo.engine.devices import place
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Cancelled, Event, Figures, Loading, Progress, Result, Started
from dia_demo.engine.rows import Row, check_prompt
from dia_demo.errors import InputError, RunError
from dia_demo.script import encode_script, expected_seconds
from dia_demo.services import catalogue
from dia_demo.services.catalogue import ModelInfo
from dia_demo.services.queue import Queue, Ticket
from dia_demo.services.settings import Settings
from dia_demo.text import ScriptReport, check_script

NO_TRANSCRIPT = (
    "The voice prompt has no transcript, so the script is used as it is: the take may repeat or "
    "drop words. Write down what the prompt says."
)


@dataclass(frozen=True)
class VoicePrompt:
    """A voice to go on with: a sound file, or its codes [frames, channels], and what it says."""

    audio: Path | None = None
    codes: np.ndarray | None = None
    transcript: str = ""


@dataclass(frozen=True)
class Request:
    """Everything one take depends on. `speed` stretches the finished take, keeping its pitch;
    without `with_audio` the take has codes alone and no codec is loaded."""

    script: str
    params: GenerationParams
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    voice: VoicePrompt | None = None
    speed: float = 1.0
    with_audio: bool = True


@dataclass(frozen=True)
class Take:
    """A finished (or stopped) take: float32 [n] at sample_rate, and how it came about."""

    samples: np.ndarray
    sample_rate: int
    codes: np.ndarray
    figures: Figures
    request: Request
    health: audio.Health

    def metadata(self) -> dict:
        """What the sound file says of itself: enough to make the take again."""
        request = self.request
        settings = asdict(replace(request.params, seed=self.figures.seed))
        return {
            "script": request.script,
            "settings": settings,
            "speed": request.speed,
            "voice_transcript": request.voice.transcript if request.voice else None,
            "figures": asdict(self.figures),
        }

    def save(self, path: Path | str) -> Path:
        """Write WAV or FLAC, by suffix, with settings, seed and model inside."""
        return audio.write_audio(path, self.samples, self.sample_rate, self.metadata())


def random_seed() -> int:
    """A seed for a person who gave none."""
    return secrets.randbelow(SEED_LIMIT + 1)


class Synthesis:
    """What the page and the command line ask for takes. Holds at most one engine."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._queue = Queue(settings.queue_size)
        self._engine: Engine | None = None
        self._runtime: RuntimeConfig | None = None

    def models(self) -> list[ModelInfo]:
        """The models to choose from, the embedded voice first."""
        return catalogue.choices(self.settings.runtime.model)

    def info(self, name: str) -> ModelInfo:
        """One model, described without loading it. Raises InputError where there is none."""
        return catalogue.describe(name)

    def check(self, script: str, model: str, max_tokens: int, transcript: str = "") -> ScriptReport:
        """The script checker's findings for this model and this many tokens."""
        info = self.info(model)
        return check_script(
            script,
            byte_limit=info.config.encoder.max_positions,
            seconds_per_character=info.seconds_per_character,
            max_seconds=info.seconds_of(max_tokens),
            transcript=transcript,
        )

    def stream(self, request: Request, cancel: threading.Event) -> Iterator[Event]:
        """The request's events, ended by Finished, Cancelled or Failed (see engine/events.py).

        Raises InputError for what cannot be done, before the row starts. Setting `cancel` stops
        the row within one step; closing the iterator stops it too.
        """
        self._check(request)
        with self._queue.place() as ticket:
            yield from self._queue.wait(ticket, cancel)
            if not cancel.is_set():
                yield from self._load(request.runtime)
            if cancel.is_set():
                yield Cancelled(None)
                return
            yield from self._run(self._engine, request, cancel, ticket)

    def take(self, request: Request, result: Result) -> Take:
        """The take of a Finished or Cancelled event's result, at the request's speed.

        Raises RunError where there is nothing to hear.
        """
        if result.samples is None or not len(result.samples):
            raise RunError(
                "The model ended before it made a sound. Try another seed, or a longer script."
            )
        rate = result.figures.sample_rate
        samples = audio.change_speed(result.samples, rate, request.speed)
        health = audio.health(samples, rate)
        return Take(samples, rate, result.codes, result.figures, request, health)

    def _check(self, request: Request) -> None:
        """Everything that can be known to be wrong without loading the model."""
        info = self.info(request.runtime.model)
        params = request.params.checked(info.config)
        _encode(request, info)
        audio.SPEEDS.check("speed", request.speed)
        place(request.runtime, info.config)
        if request.voice is not None and request.voice.codes is not None:
            check_prompt(request.voice.codes, info.config, params.max_tokens)

    def _load(self, runtime: RuntimeConfig) -> Iterator[Loading]:
        if self._runtime == runtime:
            return
        # Two models may not fit side by side: the old one goes first.
        self._engine = self._runtime = None
        self._engine = yield from Engine.load(runtime)
        self._runtime = runtime

    def _run(
        self, engine: Engine, request: Request, cancel: threading.Event, ticket: Ticket
    ) -> Iterator[Event]:
        info = self.info(request.runtime.model)
        notes: tuple[str, ...] = ()
        prompt = None
        if request.voice is not None:
            if request.voice.codes is None:
                yield Loading("Reading the voice prompt", 0.0)
            prompt, notes = _prompt_codes(engine, request)
        row = Row(engine.config, _encode(request, info), request.params, prompt, cancel)
        expected = expected_seconds(request.script, info.seconds_per_character)
        events = engine.stream([row], [expected], request.with_audio)
        try:
            for event in events:
                if isinstance(event, Progress):
                    ticket.seconds_left = event.seconds_left
                yield replace(event, notes=notes) if isinstance(event, Started) else event
        finally:
            events.close()


def _encode(request: Request, info: ModelInfo) -> bytes:
    """The bytes the model reads. Raises InputError where they are more than it can."""
    transcript = request.voice.transcript if request.voice else ""
    text = encode_script(request.script, transcript)
    limit = info.config.encoder.max_positions
    if len(text) > limit:
        kept = text[:limit].decode("utf-8", errors="ignore")[-30:].strip()
        raise InputError(
            f"The script has {len(text):,} bytes and the model reads {limit:,}: it would be cut "
            f"after “…{kept}”. Shorten it, or split it into several takes."
        )
    return text


def _prompt_codes(engine: Engine, request: Request) -> tuple[np.ndarray, tuple[str, ...]]:
    """A prompt's codes [frames, channels] and what is worth knowing of it."""
    voice, params = request.voice, request.params
    notes = () if voice.transcript else (NO_TRANSCRIPT,)
    if voice.codes is not None:
        return voice.codes, notes
    room = engine.config.frames_within(params.max_tokens) - 1
    longest = max(0, room) / engine.format.frames_per_second
    prompt = audio.read_prompt(voice.audio, engine.format.sample_rate, longest)
    return engine.codec.encode(prompt.samples), prompt.notes + notes
