"""What a benchmark asks its worker processes, what they answer, and how they report.

Jobs and results cross the process border as JSON objects with the fields of these classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Protocol


class JobKind(StrEnum):
    """The measurements, each a module of this package."""

    QUICK = "quick"
    HARDWARE = "hardware"
    CODEC = "codec"
    RUN = "run"
    QUALITY = "quality"


@dataclass(frozen=True)
class Job:
    """One measurement. Fields that its kind does not use keep their defaults.

    folder: the checkpoint's, None for random weights. available_bytes: free memory. codec_seconds:
    how much audio to decode, None for the usual length. low_priority: give way to every other
    process. began: when the worker started, by its perf_counter.
    """

    kind: JobKind
    model: str = "nano"
    folder: str | None = None
    random: str | None = None
    threads: int | None = None
    available_bytes: int | None = None
    precision: str = "float32"
    precisions: tuple[str, ...] = ()
    rows: int = 1
    steps: int = 60
    text_bytes: int = 120
    sentences: int = 32
    codec_seconds: float | None = None
    low_priority: bool = False
    began: float | None = None


class ReportProgress(Protocol):
    """How a job reports: what it does now, the fraction done, and results that are new."""

    def __call__(self, doing: str, fraction: float, /, **results: object) -> None: ...


@dataclass(frozen=True)
class SerialProxy:
    """Products of a vector with matrices, one after another, on one core."""

    samples_per_second: float
    of_16khz: float
    gb_s: float
    of_80_gb_s: float
    gflops: float
    peak_gflops: float
    efficiency: float
    how: str


@dataclass(frozen=True)
class HardwareResult:
    """What the machine gives; the last two are None until they are measured.

    gflops: of a large matrix product, by precision and for one core; None in place of a rate where
    the processor has no instructions for it.
    """

    read_gb_s: float
    read_by: str
    gflops: dict[str, float | None] | None = None
    serial_proxy: SerialProxy | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> HardwareResult:
        proxy = raw.get("serial_proxy")
        return cls(**{**raw, "serial_proxy": None if proxy is None else SerialProxy(**proxy)})


@dataclass(frozen=True)
class QuickResult:
    """The few rates from which the time of a take is estimated (estimate.py).

    read_gb_s and gflops: of all threads. nano: of the embedded voice as it runs here. dia_codec:
    seconds of audio a second of Descript's codec, which Dia-1.6B uses, at the rate of its largest
    convolution. undisturbed: whether the cores were free; otherwise the rates are lower than that.
    """

    read_gb_s: float
    gflops: float
    nano_ms_per_step: float
    nano_codec: float
    dia_codec: float
    undisturbed: bool

    def better(self, other: QuickResult | None) -> QuickResult:
        """The better of each rate: whatever disturbs only lowers them."""
        if other is None:
            return self
        return QuickResult(
            max(self.read_gb_s, other.read_gb_s),
            max(self.gflops, other.gflops),
            min(self.nano_ms_per_step, other.nano_ms_per_step),
            max(self.nano_codec, other.nano_codec),
            max(self.dia_codec, other.dia_codec),
            self.undisturbed or other.undisturbed,
        )


@dataclass(frozen=True)
class CodecResult:
    """How fast the codec decodes; None for what is not measured yet.

    realtime_whole and realtime_streamed are seconds of audio over seconds of decoding in the form
    that this machine chose. realtime_float32 is None where that form is float32 already.
    """

    load_seconds: float
    precision: str
    form: str
    reason: str
    source: str
    prepare_seconds: float | None = None
    audio_seconds: float | None = None
    realtime_whole: float | None = None
    realtime_streamed: float | None = None
    streamed_over_whole: float | None = None
    peak_rss_bytes: int | None = None
    realtime_float32: float | None = None
    complete: bool = False

    def to_json(self) -> dict[str, Any]:
        """The fields that are known."""
        known = _known(self)
        if known.pop("complete"):
            known.setdefault("realtime_float32", None)
        return known


@dataclass(frozen=True)
class RunResult:
    """One precision and number of rows, as measured; report.py adds what follows from it.

    start_seconds: from the worker's start to the first step. read_gb_s_then: the bandwidth that
    was measured between the run's own steps.
    """

    precision: str
    rows: int
    ms_per_step: float
    realtime_codec: float
    first_audio_seconds: float
    load_seconds: float
    peak_rss_bytes: int
    kernels: str
    frames_per_second: float
    threads: int
    reason: str
    max_delay: int
    start_seconds: float
    load_codec_seconds: float
    load_peak_rss_bytes: int
    warm_up_seconds: float
    ms_per_step_fast_quartile: float
    step_bytes: int
    read_gb_s_then: float


@dataclass(frozen=True)
class PrecisionQuality:
    """One precision beside float32: by channel and their means. `error` in place of all of it.

    word_error is None where nothing was listened to.
    """

    kl: tuple[float, ...] = ()
    kl_mean: float = 0.0
    top1: tuple[float, ...] = ()
    top1_mean: float = 0.0
    word_error: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class QualityResult:
    """Every precision beside float32. word_error_note: why words were not counted, if so."""

    reference: str
    takes: int
    steps: int
    precisions: dict[str, PrecisionQuality]
    word_error_note: str | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> QualityResult:
        precisions = {
            name: PrecisionQuality(**values) for name, values in raw["precisions"].items()
        }
        return cls(**{**raw, "precisions": precisions})

    def to_json(self) -> dict[str, Any]:
        precisions = {
            name: self._precision_json(quality) for name, quality in self.precisions.items()
        }
        return {**vars(self), "precisions": precisions}

    def _precision_json(self, quality: PrecisionQuality) -> dict[str, Any]:
        if quality.error is not None:
            return {"error": quality.error}
        known = _known(quality)
        if self.word_error_note is not None:  # Listening was tried.
            known.setdefault("word_error", None)
        return known


def _known(result: Any) -> dict[str, Any]:
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return {name: value for name, value in values.items() if value is not None}
