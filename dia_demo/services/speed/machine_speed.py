"""MachineSpeed: the measured speed of this machine, stored in the cache folder.

A quick measurement runs once in the background (background.py); after that, every take updates the
rates of its model. A file that cannot be read, or was written on another processor or with another
version of the libraries, is ignored.
"""

from __future__ import annotations

import json
import logging
import math
import statistics
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import metadata
from typing import Any, TypeVar

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Figures
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.memory import model_bytes
from dia_demo.engine.placement import place_on_cpu
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
)
from dia_demo.services.speed.run_estimate import ExpectedTake
from dia_demo.services.system_info import describe_machine
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.text.script import expected_seconds, to_bytes
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


@cache
def machine_identity() -> dict[str, Any]:
    """What the rates depend on. If any of it differs, they are those of another machine."""
    machine = describe_machine()
    versions = {name: _version(name) for name in ("torch", "numba")}
    own = {name: getattr(machine, name) for name in ("cpu", "cores", "simd", "system")}
    return own | versions


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@dataclass
class Rates:
    """The measured rates.

    takes: by model, precision and threads; for each of the latest takes, the seconds per step and
    the seconds to decode a second of audio. stretches: seconds to change the speed of a second of
    audio. loads: seconds to load a model, by its name, precision and what it was loaded from.
    """

    quick: QuickResult | None = None
    takes: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    stretches: list[float] = field(default_factory=list)
    loads: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Rates:
        """Raises ValueError, TypeError, KeyError or AttributeError for invalid contents."""
        quick = None if raw["quick"] is None else QuickResult(**raw["quick"])
        takes = {
            str(key): [(_positive(step), _positive(codec)) for step, codec in last]
            for key, last in raw["takes"].items()
            if last
        }
        stretches = [_positive(seconds) for seconds in raw["stretches"]]
        # Files that were written before there were any have none.
        loads = {
            str(key): [_positive(seconds) for seconds in last]
            for key, last in raw.get("loads", {}).items()
            if last
        }
        if quick is not None:
            for name, rate in asdict(quick).items():
                if name != "undisturbed":
                    _positive(rate)
        return cls(quick, takes, stretches, loads)


def _positive(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"not a number: {value!r}")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"not a rate: {value!r}")
    return float(value)


class MachineSpeed:
    """The expected time of takes on this machine.

    threads: as in RuntimeConfig. keeps: write new rates to the cache folder. The app that serves
    the page does so; other processes only read.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads
        self.keeps = False
        self.measuring = False
        # How many takes are being generated, which each further one shares the machine with.
        self.beside: Callable[[], int] = lambda: 0
        self._path = cache_folder() / "speed.json"
        self._lock = threading.Lock()
        self._rates = self._read()

    @property
    def quick(self) -> QuickResult | None:
        """The quick measurement, None before it has finished."""
        return self._rates.quick

    # -- expected times --------------------------------------------------------------------------

    def expect(
        self,
        info: ModelInfo,
        runtime: RuntimeConfig,
        script: str,
        max_tokens: int,
        speed: float = 1.0,
        normalise: bool = False,
        pronunciations: Pronunciations = NONE,
        has_voice: bool = False,
    ) -> Expectation:
        """What a take needs here. Its time is unknown with a voice prompt, which must be encoded
        as well, and for a script that the model cannot read as a whole."""
        text = info.reading(script, normalise, pronunciations).text
        audio = expected_seconds(text, info.profile.seconds_per_character)
        audio = min(audio, info.seconds_of(max_tokens))
        download = not info.has_weights
        if runtime.device != "cpu":
            return Expectation(audio, download=download)
        precision, shortage = precision_here(info, runtime)
        left, is_readable = None, len(to_bytes(text)) <= info.config.encoder.max_positions
        if shortage is None and not has_voice and text.strip() and is_readable:
            left = self.expect_take(info, runtime, text, max_tokens, speed).left
        return Expectation(audio, precision, left, shortage, download, has_voice)

    def expect_take(
        self, info: ModelInfo, runtime: RuntimeConfig, text: str, max_tokens: int, speed: float
    ) -> ExpectedTake:
        """How long a take of this text, as the model reads it, is expected to be, and its speed."""
        config, longest = info.config, info.seconds_of(max_tokens)
        audio = expected_seconds(text, info.profile.seconds_per_character) + SILENCE_SECONDS
        pace = None
        if runtime.device == "cpu":
            pace = self.pace(info, runtime, min(audio, longest))
        take = ExpectedTake(
            steps=audio * info.frames_per_second + config.max_delay,
            deviation=info.profile.length_deviation,
            limit=longest * info.frames_per_second + config.max_delay,
        )
        if pace is None:
            return take
        codec = (pace.per_codec_second + self._stretch(speed) / speed) / info.frames_per_second
        return replace(
            take,
            step_seconds=pace.per_frame + codec,
            factor=MEASURED_FACTOR if pace.measured else DERIVED_FACTOR,
            reading_seconds=pace.per_byte * len(to_bytes(text)),
            others=self.beside(),
        )

    def loading(self, info: ModelInfo, precision: str, is_prepared: bool) -> TimeLeft:
        """How long it takes to load a model; is_prepared: its weights are stored as they are used,
        so that they need only be read."""
        with self._lock:
            known = self._rates.loads.get(_load_key(info.name, precision, is_prepared))
        if known:
            return TimeLeft.around(statistics.median_low(known), MEASURED_FACTOR)
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
        per_frame = max(figures.token_seconds - reading, figures.token_seconds / 2) / figures.steps
        self._learn(key, per_frame, figures.codec_seconds / figures.audio_seconds)

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


def _append(known: dict[str, list[Measured]], key: str, value: Measured) -> None:
    """Add the latest measurement, and drop those of the models that were used longest ago."""
    known[key] = [*known.pop(key, []), value][-LAST_TAKES:]
    for oldest in list(known)[:-MOST_MODELS]:
        del known[oldest]


def _key(model: str, precision: str, threads: int) -> str:
    return f"{model}|{precision}|{threads}"


def _load_key(model: str, precision: str, is_prepared: bool) -> str:
    return f"{model}|{precision}|{'prepared' if is_prepared else 'original'}"
