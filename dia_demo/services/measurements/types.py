"""The jobs and results of measurements."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any


class JobKind(StrEnum):
    """What can be measured."""

    QUICK = "quick"
    HARDWARE = "hardware"
    CODEC = "codec"
    RUN = "run"
    QUALITY = "quality"


@dataclass(frozen=True)
class Job:
    """One measurement. Fields that its kind does not use keep their defaults.

    model: its name, or a folder; random: as in BenchPlan. available_bytes: free memory.
    codec_seconds: length of the audio to decode, None for the default.
    """

    kind: JobKind
    model: str = "nano"
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


@dataclass(frozen=True)
class SerialProxy:
    """The rate of serial products of a vector with matrices on one core."""

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
    """The limits of the hardware; the last two are None until they are measured.

    gflops: of a large matrix product, by precision and for one core; a rate is None if the
    processor has no instructions for it.
    """

    read_gb_s: float
    read_by: str
    gflops: dict[str, float | None] | None = None
    serial_proxy: SerialProxy | None = None


@dataclass(frozen=True)
class QuickResult:
    """The rates from which estimate.py derives the time of a take.

    read_gb_s and gflops: of all threads. nano_*: of the embedded voice as it runs here; nano_codec
    and dia_codec in seconds of audio per second. dia_codec: of Descript's codec, which Dia-1.6B
    uses, at the rate of its largest convolution. undisturbed: whether the cores were free;
    otherwise the rates are too low.
    """

    read_gb_s: float
    gflops: float
    nano_ms_per_step: float
    nano_codec: float
    dia_codec: float
    undisturbed: bool

    def merge_best(self, other: QuickResult | None) -> QuickResult:
        """The better of each rate, since disturbances only lower them."""
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
    """The speed of the codec; None for what is not measured yet.

    realtime_whole and realtime_streamed: seconds of audio over seconds of decoding, with the
    precision and backend chosen on this machine. realtime_float32 is None if that is float32.
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
        known = _known_values(self)
        if known.pop("complete"):
            known.setdefault("realtime_float32", None)
        return known


@dataclass(frozen=True)
class FrameSplit:
    """Where the time of a frame of Dia2 goes, medians; and what its parts read and multiply.

    drawing_ms: of the codes, as a part of depth_ms. temporal_bytes, depth_bytes: read from memory
    if nothing is read twice. depth_weights: multiplied in all stages; weights_per_ms: the rate of
    the same products with weights in the nearest cache, the limit of the instructions.
    """

    temporal_ms: float
    depth_ms: float
    drawing_ms: float
    rest_ms: float
    temporal_bytes: int
    depth_bytes: int
    depth_weights: int
    weights_per_ms: float


@dataclass(frozen=True)
class RunResult:
    """The measurements of one precision and number of rows; report.py adds derived figures.

    start_seconds: from the worker's start to the first step. read_gb_s_then: the bandwidth between
    the run's own steps. split: of a model that has parts.
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
    frames_per_step: int
    start_seconds: float
    load_codec_seconds: float
    load_peak_rss_bytes: int
    warm_up_seconds: float
    ms_per_step_fast_quartile: float
    step_bytes: int
    read_gb_s_then: float
    split: FrameSplit | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class PrecisionQuality:
    """One precision compared with float32: by channel, and means over the channels.

    word_error: None if it was not measured. error: why there are no figures, if so.
    """

    kl: tuple[float, ...] = ()
    kl_mean: float = 0.0
    top1: tuple[float, ...] = ()
    top1_mean: float = 0.0
    word_error: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class QualityResult:
    """Every precision compared with float32. word_error_note: why words were not counted, if so."""

    reference: str
    takes: int
    steps: int
    precisions: dict[str, PrecisionQuality]
    word_error_note: str | None = None

    def to_json(self) -> dict[str, Any]:
        precisions = {
            name: self._precision_json(quality) for name, quality in self.precisions.items()
        }
        return {**vars(self), "precisions": precisions}

    def _precision_json(self, quality: PrecisionQuality) -> dict[str, Any]:
        if quality.error is not None:
            return {"error": quality.error}
        known = _known_values(quality)
        if self.word_error_note is not None:  # Listening was tried.
            known.setdefault("word_error", None)
        return known


def _known_values(result: Any) -> dict[str, Any]:
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return {name: value for name, value in values.items() if value is not None}
