"""MachineSpeed: the measured speed of this machine, stored in the cache folder.

A quick measurement runs once in the background (background.py); after that, every take updates the
rates of its model. A file that cannot be read, or was written on another processor or with another
version of the libraries, is ignored.
"""

from __future__ import annotations

import json
import logging
import statistics
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import TypeVar

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Figures
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import model_bytes
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.engine.scheduler import PLACES
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import InputError
from dia_demo.files import cache_folder, write_atomic
from dia_demo.services.measurements.types import QuickResult, RunResult
from dia_demo.services.speed.estimate import (
    Expectation,
    Pace,
    derived_pace,
    precision_here,
    seconds_per_byte,
    seconds_per_prompt_frame,
    work,
)
from dia_demo.services.speed.rates import Rates, machine_identity
from dia_demo.services.speed.run_estimate import ExpectedTake, RunEstimate
from dia_demo.services.take import Request
from dia_demo.untrusted import read_json

VERSION = 2
# The median of this many latest takes (the lower of two) is used: the first one may compile
# kernels, and a single disturbed take changes little.
LAST_TAKES, MOST_MODELS = 5, 32
# Shorter takes do not determine the time of a step well.
FEWEST_STEPS = 40
# Added to the speech of a script: the silence at a take's end, and what the model adds before it.
SILENCE_SECONDS = 0.35
# How far the speed of a take may be from that of the earlier ones, or from a derived one.
MEASURED_FACTOR, DERIVED_FACTOR = 1.3, 1.5
# Bytes per second, at least and at most: reading prepared weights, and preparing them from the
# checkpoint (docs/performance.md).
READ_RATES, PREPARE_RATES = (300e6, 1500e6), (40e6, 150e6)
LEAST_SECONDS = 0.01
# The length of an example take.
EXAMPLE_SECONDS, EXAMPLE_BYTES = 10.0, 120

Measured = TypeVar("Measured")

log = logging.getLogger(__name__)


class MachineSpeed:
    """The expected time of takes on this machine.

    threads: as in RuntimeConfig. keeps: write new rates to the cache folder. The app that serves
    the page does so; other processes only read. file: in that folder.
    """

    def __init__(self, threads: int | None = None, file: str = "speed.json") -> None:
        self.threads = threads
        self.keeps = False
        self.measuring = False
        # How many takes are being generated, which each further one shares the machine with.
        self.beside: Callable[[], int] = lambda: 0
        self._path = cache_folder() / file
        self._lock = threading.Lock()
        self._rates = self._read()

    @property
    def quick(self) -> QuickResult | None:
        """The quick measurement, None before it has finished."""
        return self._rates.quick

    def expect(
        self,
        request: Request,
        takes: int = 1,
        places: int = PLACES,
        *,
        has_recording: bool = False,
    ) -> Expectation:
        """What a take needs here, or so many `takes` of the request, `places` of them at once. The
        time is unknown with a recording as voice prompt, which must be encoded as well, for a
        script that the model cannot read as a whole, and for max tokens that leave it no room."""
        info, runtime = request.model, request.runtime
        text = request.reading(request.script).text
        audio = min(info.expected_seconds(text), _longest_seconds(request))
        download = not info.has_weights
        if runtime.device != "cpu":
            return Expectation(audio, download=download)
        precision, shortage = precision_here(info, runtime)
        left = None
        if shortage is None and not has_recording and text.strip() and audio:
            with suppress(InputError):  # It is too long.
                left = RunEstimate([self.expect_take(request)] * takes, places=places).left
        return Expectation(audio, precision, left, shortage, download, has_recording)

    def expect_take(self, request: Request) -> ExpectedTake:
        """How long a take of this request is expected to be, and its speed. Raises InputError for
        a text that the model cannot read as a whole."""
        info, config, fps = request.model, request.model.config, request.model.frames_per_second
        text, longest = request.reading(request.script).text, _longest_seconds(request)
        audio = info.expected_seconds(text) + SILENCE_SECONDS
        prompt, pace = _prompt_frames(request), None
        if request.runtime.device == "cpu":
            # All steps have the prompt before them; the pace is that of the middle one.
            pace = self.pace(info, request.runtime, min(audio, longest) + 2 * prompt / fps)
        take = ExpectedTake(
            steps=audio * fps + config.max_delay,
            deviation=info.profile.length_deviation,
            limit=longest * fps + config.max_delay,
            work=partial(work, config, prompt_frames=prompt),
        )
        if pace is None:
            return take
        speed, size = request.speed, len(request.encode())
        codec = (pace.per_codec_second + self._stretch(speed) / speed) / fps
        return replace(
            take,
            step_seconds=pace.per_frame + codec,
            factor=MEASURED_FACTOR if pace.measured else DERIVED_FACTOR,
            reading_seconds=pace.per_byte * size + (self.prompt_seconds(info, prompt) or 0.0),
            others=self.beside(),
            exponent=info.profile.batch_exponent,
        )

    def prompt_seconds(self, info: ModelInfo, frames: int) -> float | None:
        """How long the first take with a voice prompt of so many frames needs to read it; None
        before this machine was measured."""
        return None if self.quick is None else frames * seconds_per_prompt_frame(info, self.quick)

    def loading(self, info: ModelInfo, precision: str, is_prepared: bool) -> TimeLeft:
        """How long it takes to load a model; is_prepared: its weights are stored as they are used,
        so that they need only be read."""
        with self._lock:
            known = self._rates.loads.get(_load_key(info.name, precision, is_prepared))
        if known:
            return TimeLeft.from_estimate(statistics.median_low(known), MEASURED_FACTOR)
        size = model_bytes(info, precision if is_prepared else "float32")
        slow, fast = READ_RATES if is_prepared else PREPARE_RATES
        return TimeLeft(size / fast, size / slow)

    def seconds_per_second(self, info: ModelInfo, runtime: RuntimeConfig) -> float | None:
        """Seconds to wait for a second of audio; None if nothing was measured, or the model cannot
        run."""
        if runtime.device != "cpu" or precision_here(info, runtime)[1] is not None:
            return None
        pace = self.pace(info, runtime, EXAMPLE_SECONDS)
        if pace is None:
            return None
        return pace.take_seconds(info, EXAMPLE_SECONDS, EXAMPLE_BYTES) / EXAMPLE_SECONDS

    def pace(self, info: ModelInfo, runtime: RuntimeConfig, audio: float) -> Pace | None:
        """Measured with takes of this model, or derived from the quick measurement; None without
        either.

        audio: length in seconds, with which the time of a step grows. Raises InputError if the
        model cannot run.
        """
        placed = place_on_cpu(runtime, info)
        with self._lock:
            last = self._rates.takes.get(_key(info.name, placed.precision, placed.threads))
            quick = self._rates.quick
        if last:
            steps, codecs = zip(*last, strict=True)
            per_byte = 0.0 if quick is None else seconds_per_byte(info, quick)
            return Pace(per_byte, statistics.median_low(steps), statistics.median_low(codecs))
        return None if quick is None else derived_pace(info, placed.precision, quick, audio)

    def _stretch(self, speed: float) -> float:
        with self._lock:
            known = self._rates.stretches
            return statistics.median_low(known) if known and speed != 1 else 0.0

    # -- updates ---------------------------------------------------------------------------------

    def learn_load(self, name: str, precision: str, is_prepared: bool, seconds: float) -> None:
        """Store how long a model's loading took."""
        key = _load_key(name, precision, is_prepared)
        with self._lock:
            _append(self._rates.loads, key, max(seconds, LEAST_SECONDS))
            self._write()

    def learn_quick(self, quick: QuickResult) -> None:
        """Store the quick measurement."""
        with self._lock:
            self._rates.quick = quick
            self._write()

    def learn_take(
        self, info: ModelInfo, figures: Figures, threads: int, text_bytes: int, speed: float = 1.0
    ) -> None:
        """Update the rates with a take generated alone, without a voice prompt, on the CPU."""
        if figures.steps < FEWEST_STEPS or not figures.codec_seconds or not figures.audio_seconds:
            return
        key = _key(info.name, figures.precision, threads)
        if speed != 1:
            self._learn_stretch(key, figures, speed)
            return
        quick = self.quick
        reading = 0.0 if quick is None else text_bytes * seconds_per_byte(info, quick)
        # At least half, because the time of the encoder is an estimate.
        per_frame = max(figures.token_seconds - reading, figures.token_seconds / 2)
        per_frame /= work(info.config, figures.steps)
        # Nobody waits for what is decoded beside the steps: all but the end of it.
        beyond_tokens = max(figures.wall_seconds - figures.token_seconds, LEAST_SECONDS)
        waited = min(figures.codec_seconds, beyond_tokens)
        self._learn(key, per_frame, waited / figures.audio_seconds)

    def _learn_stretch(self, key: str, figures: Figures, speed: float) -> None:
        """The time that the change of speed added to decoding, if that is known."""
        with self._lock:
            last = self._rates.takes.get(key)
            if not last:
                return
            per_second = figures.codec_seconds / figures.audio_seconds
            own = statistics.median_low(codec for _, codec in last) * speed
            if per_second > own:
                stretches = [*self._rates.stretches, per_second - own]
                self._rates.stretches = stretches[-LAST_TAKES:]
                self._write()

    def learn_run(self, name: str, run: RunResult) -> None:
        """Update the rates with a benchmark run of the model with this name."""
        if run.rows == 1:
            key = _key(name, run.precision, run.threads)
            per_frame = run.ms_per_step / 1000 / run.frames_per_step
            self._learn(key, per_frame, 1 / run.realtime_codec)

    def _learn(self, key: str, per_frame: float, codec: float) -> None:
        with self._lock:
            _append(self._rates.takes, key, (per_frame, codec))
            self._write()

    # -- the file --------------------------------------------------------------------------------

    def _read(self) -> Rates:
        if not self._path.exists():
            return Rates()
        try:
            raw = read_json(self._path)
            if raw["version"] != VERSION or raw["machine"] != machine_identity():
                return Rates()
            return Rates.from_json(raw)
        except (InputError, ValueError, TypeError, KeyError, AttributeError) as error:
            log.info("%s is ignored: %s", self._path, error)
            return Rates()

    def _write(self) -> None:
        """Write the file. If the folder is not writable, the rates last until the program ends."""
        if not self.keeps:
            return
        text = json.dumps(
            {"version": VERSION, "machine": machine_identity()} | asdict(self._rates), indent=1
        )
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with write_atomic(self._path) as part:
                part.write_text(text, encoding="utf-8")
        except OSError as error:
            log.info("The machine's speed could not be saved in %s: %s", self._path, error)


def _prompt_frames(request: Request) -> int:
    """Those of a voice prompt as codes; a recording's are not known."""
    voice = request.voice
    return 0 if voice is None or voice.codes is None else len(voice.codes)


def _longest_seconds(request: Request) -> float:
    """Of a take, by its max tokens, which count the voice prompt as well."""
    config = request.model.config
    frames = config.frames_within(request.params.max_tokens, _prompt_frames(request))
    return max(0, frames) / request.model.frames_per_second


def _append(known: dict[str, list[Measured]], key: str, value: Measured) -> None:
    """Add the latest measurement, and drop those of the models that were used longest ago."""
    known[key] = [*known.pop(key, []), value][-LAST_TAKES:]
    for oldest in list(known)[:-MOST_MODELS]:
        del known[oldest]


def _key(model: str, precision: str, threads: int) -> str:
    return f"{model}|{precision}|{threads}"


def _load_key(model: str, precision: str, is_prepared: bool) -> str:
    return f"{model}|{precision}|{'prepared' if is_prepared else 'original'}"
