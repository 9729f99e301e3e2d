"""The expected time of a take on this machine, from a few measured rates.

A decoder step of one utterance reads every weight of the decoder's linears, which takes most of its
time (docs/performance.md): the time follows from the memory bandwidth, the bytes per weight, and
the share of the bandwidth that a step reaches. Encoding the text follows from the rate of matrix
products; the codec is measured directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from dia_demo.config import ModelConfig, RuntimeConfig
from dia_demo.engine.memory import (
    DESCRIPT_CHANNELS,
    STEP_BYTES,
    embeddings,
    gb,
    needed_bytes,
    other_weights,
)
from dia_demo.engine.placement import CACHED_BYTES, place_on_cpu
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import InputError
from dia_demo.machine import system
from dia_demo.model.checkpoint import EMBEDDED
from dia_demo.model.linear import decoder_weights
from dia_demo.services.measurements.types import QuickResult
from dia_demo.services.models import ModelInfo

# The share of the memory bandwidth that a step of one utterance reaches, from the tables of
# docs/performance.md and its processors.
STEP_SHARE = {"float32": 0.85, "bfloat16": 0.90, "int8": 0.88, "int4": 0.75}
# The share of its largest convolution's rate that Descript's whole decoder reaches.
CODEC_SHARE = 0.9
# The model whose codec and text encoder the quick measurement represents.
DIA_SAMPLE_RATE = 44_100


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
        frames = audio_seconds * info.frames_per_second + info.config.max_delay
        decoding = audio_seconds * self.per_codec_second
        return text_bytes * self.per_byte + frames * self.per_frame + decoding


def derived_pace(
    info: ModelInfo, precision: str, quick: QuickResult, audio_seconds: float
) -> Pace | None:
    """The pace of a model that was not measured here; None if the quick measurement does not
    determine it.

    The quick measurement includes the embedded voice in its own precision. It determines other
    models like Dia-1.6B: weights far larger than a cache, compiled kernels, and Descript's codec.
    """
    config, per_byte = info.config, seconds_per_byte(info.config, quick)
    if info.name == EMBEDDED:
        if precision != place_on_cpu(RuntimeConfig(), config).precision:
            return None
        return Pace(per_byte, quick.nano_ms_per_step / 1000, 1 / quick.nano_codec)
    size = decoder_weights(config) * STEP_BYTES[precision]
    descript = config.decoder.num_channels == DESCRIPT_CHANNELS
    like_dia = descript and info.sample_rate == DIA_SAMPLE_RATE and size > 2 * CACHED_BYTES
    if not like_dia or find_spec("numba") is None:
        return None
    middle = config.steps_within(round(audio_seconds * info.frames_per_second / 2))
    size += cached_bytes(config, precision, middle)
    per_step = size / (1e9 * quick.read_gb_s * STEP_SHARE[precision])
    return Pace(
        per_byte,
        per_step / config.frames_per_step,
        1 / (CODEC_SHARE * quick.dia_codec),
        measured=False,
    )


def seconds_per_byte(config: ModelConfig, quick: QuickResult) -> float:
    """Seconds per byte of text: a product with every weight that no step reads, tables excluded."""
    return 2e-9 * (other_weights(config) - embeddings(config)) / quick.gflops


def cached_bytes(config: ModelConfig, precision: str, positions: int) -> int:
    """Bytes of the key/value cache that a step with guidance reads at this position."""
    d = config.decoder
    itemsize = 4 if precision == "float32" else 2
    values = 2 * d.num_layers * d.num_kv_heads * d.head_dim * positions
    return config.guided_halves * values * itemsize


@dataclass(frozen=True)
class Expectation:
    """What a take needs on this machine.

    left: the time to wait once the model is loaded; None if it is unknown. precision: the one it
    would run in. shortage: why it cannot run here. download: its weights must be downloaded first.
    has_voice: it has a voice prompt.
    """

    audio_seconds: float
    precision: str = ""
    left: TimeLeft | None = None
    shortage: str | None = None
    download: bool = False
    has_voice: bool = False


def memory_shortage(config: ModelConfig, precision: str) -> str | None:
    """Why a model does not fit into this machine's memory; None if it fits.

    Memory that this process uses now counts as free: it is freed before another model is loaded.
    """
    needed = needed_bytes(config, precision)
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
        precision = place_on_cpu(runtime, info.config).precision
    except InputError as error:
        precision = "int8" if runtime.precision == "auto" else runtime.precision
        return precision, memory_shortage(info.config, precision) or str(error)
    return precision, memory_shortage(info.config, precision)
