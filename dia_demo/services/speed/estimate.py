"""The expected time of a take on this machine, from a few measured rates.

A decoder step of one utterance reads every weight of the decoder's linears, which takes most of its
time (docs/performance.md): the time follows from the memory bandwidth, the bytes per weight, and
the share of the bandwidth that a step reaches. Encoding the text follows from the rate of matrix
products; the codec is measured directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from dia_demo.codec.config import CodecFormat
from dia_demo.config import ModelConfig, RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import STEP_BYTES, gb, needed_bytes
from dia_demo.engine.loading.placement import CACHED_BYTES, place_on_cpu
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import InputError
from dia_demo.machine import system
from dia_demo.services.measurements.types import QuickResult

# The share of the memory bandwidth that a step of one utterance reaches, from the tables of
# docs/performance.md and its processors.
STEP_SHARE = {"float32": 0.85, "bfloat16": 0.90, "int8": 0.88, "int8+int5": 0.8, "int4": 0.75}
# The share of its largest convolution's rate that Descript's whole decoder reaches.
CODEC_SHARE = 0.9
# The share of a step that a light one takes: 0.35 to 0.5 by the table of Dia2 there.
LIGHT_SHARE = 0.45
# The codec that the quick measurement represents.
DESCRIPT = CodecFormat()


def work(config: ModelConfig, steps: float, prompt_frames: int = 0) -> float:
    """The time of a row's first `steps`, in steps that are not light (`ModelConfig.light_steps`).

    prompt_frames: of its voice prompt, whose last frame its first step reads again.
    """
    light = max(0, config.light_steps - max(0, prompt_frames - 1))
    return steps - (1 - LIGHT_SHARE) * min(steps, light)


@dataclass(frozen=True)
class Pace:
    """Seconds per byte of text (encoder), per frame that the decoder predicts (a step, or its part
    where a step gives several), and per second of audio (codec).

    measured: with takes or a benchmark of this model; otherwise derived from other rates.
    """

    per_byte: float
    per_frame: float
    per_codec_second: float
    measured: bool = True

    def take_seconds(self, info: ModelInfo, audio_seconds: float, text_bytes: int) -> float:
        """Seconds for a take with this much audio and text, once its model is loaded."""
        steps = audio_seconds * info.frames_per_second + info.config.max_delay
        decoding = audio_seconds * self.per_codec_second
        return text_bytes * self.per_byte + work(info.config, steps) * self.per_frame + decoding


def derived_pace(
    info: ModelInfo, precision: str, quick: QuickResult, audio_seconds: float
) -> Pace | None:
    """The pace of a model that was not measured here; None if the quick measurement does not
    determine it.

    The quick measurement includes the embedded voice in its own precision. It determines other
    models like Dia-1.6B: weights far larger than a cache, compiled kernels, and Descript's codec.
    """
    config, weights, per_byte = info.config, info.family.weights, seconds_per_byte(info, quick)
    if info.is_embedded:
        if precision != place_on_cpu(RuntimeConfig(), info).precision:
            return None
        return Pace(per_byte, quick.nano_ms_per_step / 1000, 1 / quick.nano_codec)
    size = weights.step(config) * STEP_BYTES[precision]
    like_dia = info.codec == DESCRIPT and size > 2 * CACHED_BYTES
    if not like_dia or find_spec("numba") is None:
        return None
    middle = config.steps_within(round(audio_seconds * info.frames_per_second / 2))
    size += weights.cache_bytes(config, precision, middle)
    per_step = size / (1e9 * quick.read_gb_s * STEP_SHARE[precision])
    return Pace(
        per_byte,
        per_step / config.frames_per_step,
        1 / (CODEC_SHARE * quick.dia_codec),
        measured=False,
    )


def seconds_per_byte(info: ModelInfo, quick: QuickResult) -> float:
    """Seconds per byte of text: a product with every weight that only the text needs."""
    return 2e-9 * info.family.weights.text(info.config) / quick.gflops


def seconds_per_prompt_frame(info: ModelInfo, quick: QuickResult) -> float:
    """Seconds per frame of a voice prompt: a product with every weight of a decoder step, in both
    branches of guidance."""
    return 4e-9 * info.family.weights.step(info.config) / quick.gflops


@dataclass(frozen=True)
class Expectation:
    """What a take needs on this machine.

    left: the time to wait once the model is loaded; None if it is unknown. precision: the one it
    would run in. shortage: why it cannot run here. download: its weights must be downloaded first.
    has_recording: it has a voice prompt that must be encoded.
    """

    audio_seconds: float
    precision: str = ""
    left: TimeLeft | None = None
    shortage: str | None = None
    download: bool = False
    has_recording: bool = False


def memory_shortage(info: ModelInfo, precision: str) -> str | None:
    """Why a model does not fit into this machine's memory; None if it fits.

    Memory that this process uses now counts as free: it is freed before another model is loaded.
    """
    needed = needed_bytes(info, precision)
    granted, free = system.memory_bytes(), system.available_bytes()
    needs = f"it needs {gb(needed)} of memory in {precision}"
    if granted is not None and needed > granted:
        return f"{needs}, and this machine has {gb(granted)}"
    if free is not None and needed > free + system.resident_bytes():
        return f"{needs}, and {gb(free)} are free now"
    return None


def precision_here(info: ModelInfo, runtime: RuntimeConfig) -> tuple[str, str | None]:
    """The precision that a model would run in on this CPU, and why it cannot run, or None."""
    try:
        precision = place_on_cpu(runtime, info).precision
    except InputError as error:
        precision = "int8" if runtime.precision == "auto" else runtime.precision
        return precision, memory_shortage(info, precision) or str(error)
    return precision, memory_shortage(info, precision)
