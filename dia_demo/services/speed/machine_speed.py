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
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from typing import Any

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Figures
from dia_demo.engine.placement import place_on_cpu
from dia_demo.errors import InputError
from dia_demo.files import cache_folder, write_atomic
from dia_demo.services.bench.types import QuickResult, RunResult
from dia_demo.services.models import ModelInfo, ModelRef
from dia_demo.services.speed.estimate import (
    Expectation,
    Pace,
    derived_pace,
    precision_here,
    seconds_per_byte,
)
from dia_demo.services.system_info import describe_machine
from dia_demo.text.script import expected_seconds, to_bytes
from dia_demo.untrusted import read_json

VERSION = 2
# The median of this many latest takes (the lower of two) is used: the first one may compile
# kernels, and a single disturbed take changes little.
LAST_TAKES, MOST_MODELS = 5, 32
# Shorter takes do not determine the time of a step well.
FEWEST_STEPS = 40
# The length of an example take.
EXAMPLE_SECONDS, EXAMPLE_BYTES = 10.0, 120

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
    audio.
    """

    quick: QuickResult | None = None
    takes: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    stretches: list[float] = field(default_factory=list)

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
        if quick is not None:
            for name, rate in asdict(quick).items():
                if name != "undisturbed":
                    _positive(rate)
        return cls(quick, takes, stretches)


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
        has_voice: bool = False,
    ) -> Expectation:
        """What a take needs here. Its time is unknown with a voice prompt, which must be encoded
        as well."""
        text = info.reading(script, normalise).text
        audio = expected_seconds(text, info.seconds_per_character)
        audio = min(audio, info.seconds_of(max_tokens))
        download = not ModelRef.resolve(info.name).has_weights
        if runtime.device != "cpu":
            return Expectation(audio, download=download)
        precision, shortage = precision_here(info, runtime)
        seconds = None
        if shortage is None and not has_voice and text.strip():
            pace = self.pace(info, runtime, audio)
            if pace is not None:
                seconds = pace.take_seconds(info, audio, len(to_bytes(text)))
                seconds += audio / speed * self._stretch(speed)
        return Expectation(audio, precision, seconds, shortage, download)

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
        placed = place_on_cpu(runtime, info.config)
        with self._lock:
            last = self._rates.takes.get(_key(info.name, placed.precision, placed.threads))
            quick = self._rates.quick
        if last:
            steps, codecs = zip(*last, strict=True)
            per_byte = 0.0 if quick is None else seconds_per_byte(info.config, quick)
            return Pace(per_byte, statistics.median_low(steps), statistics.median_low(codecs))
        return None if quick is None else derived_pace(info, placed.precision, quick, audio)

    def _stretch(self, speed: float) -> float:
        with self._lock:
            known = self._rates.stretches
            return statistics.median_low(known) if known and speed != 1 else 0.0

    # -- updates ---------------------------------------------------------------------------------

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
        reading = 0.0 if quick is None else text_bytes * seconds_per_byte(info.config, quick)
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
            takes = self._rates.takes
            # The latest last: the least recently used models are dropped.
            takes[key] = [*takes.pop(key, []), (per_frame, codec)][-LAST_TAKES:]
            for oldest in list(takes)[:-MOST_MODELS]:
                del takes[oldest]
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


def _key(model: str, precision: str, threads: int) -> str:
    return f"{model}|{precision}|{threads}"
