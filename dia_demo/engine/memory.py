"""Estimates of a model's memory in each precision, and whether this machine has that much.

Made before anything is loaded; `bench` measures (docs/performance.md). GB is 1e9 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from dia_demo.config import ModelConfig
from dia_demo.engine.calibration import MOST_STEPS, SENTENCES
from dia_demo.errors import InputError
from dia_demo.machine import system
from dia_demo.model.linear import decoder_weights

# Bytes of one weight, including scales: in the linears that a step reads, and elsewhere, where a
# weight has at least 8 bits (in embeddings 16).
STEP_BYTES = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.002, "int4": 0.534}
OTHER_BYTES = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.1, "int4": 1.1}
# Python with torch and the app's other imports; a running codec of Descript's size; a small one.
PROGRAM, CODEC, SMALL_CODEC = 450_000_000, 450_000_000, 150_000_000
# Caches and activations of one long take with guidance, per layer and width of the decoder.
WORKING_POSITIONS = 1600
DESCRIPT_CHANNELS = 9


def other_weights(config: ModelConfig) -> int:
    """The weights outside the decoder's linears: encoder, embeddings, text keys and values."""
    e, d = config.encoder, config.decoder
    attention = (2 * e.num_heads + 2 * e.num_kv_heads) * e.head_dim * e.hidden_size
    layer = attention + 3 * e.hidden_size * e.intermediate_size
    text = 2 * d.num_layers * d.cross_num_kv_heads * d.cross_head_dim * e.hidden_size
    return e.num_layers * layer + text + embeddings(config)


def embeddings(config: ModelConfig) -> int:
    """The weights of all tables: the text's, those that a step reads, those of its further
    frames."""
    e, d = config.encoder, config.decoder
    tables = 2 * config.frames_per_step - 1
    return e.vocab_size * e.hidden_size + tables * d.num_channels * d.vocab_size * d.hidden_size


def model_bytes(config: ModelConfig, precision: str) -> int:
    """Bytes of a loaded model's weights."""
    step = decoder_weights(config) * STEP_BYTES[precision]
    return round(step + other_weights(config) * OTHER_BYTES[precision])


def needed_bytes(config: ModelConfig, precision: str) -> int:
    """The peak memory of a take, including program and codec."""
    d = config.decoder
    positions = 2 * config.guided_halves * 4 * d.num_layers
    positions *= config.steps_within(WORKING_POSITIONS)
    caches = positions * d.num_kv_heads * d.head_dim
    # Rotary tables: a cosine and a sine for every position in text and audio.
    e = config.encoder
    rotary = 8 * (e.max_positions * e.head_dim + d.max_positions * d.head_dim)
    codec = CODEC if d.num_channels == DESCRIPT_CHANNELS else SMALL_CODEC
    return model_bytes(config, precision) + caches + rotary + codec + PROGRAM


def calibration_bytes(config: ModelConfig) -> int:
    """The peak memory of calibrating int4 (model/calibration), including the program."""
    d = config.decoder
    widest = max(d.hidden_size, d.intermediate_size)
    # Keys and values; the inputs of a layer's linears, and twice those of the widest.
    caches = 2 * 2 * d.num_layers
    caches *= d.num_kv_heads * d.head_dim + d.cross_num_kv_heads * d.cross_head_dim
    inputs = 4 * (5 * d.hidden_size + d.intermediate_size + 2 * widest)
    rows = config.guided_halves * len(SENTENCES) * config.steps_within(MOST_STEPS)
    hessian = 16 * widest**2
    return model_bytes(config, "bfloat16") + rows * (caches + inputs) + hessian + PROGRAM


def why_not_calibrated(config: ModelConfig) -> str:
    """Why int4 cannot be calibrated now, as a note for the user; "" if it can."""
    free, needed = system.available_bytes(), calibration_bytes(config)
    if free is None or needed - PROGRAM <= free:
        return ""
    return (
        f"int4 is not calibrated, which makes it less exact: calibrating needs about {gb(needed)} "
        f"of memory once, and {gb(free)} are free now. The next start tries again."
    )


def fitting(config: ModelConfig, available: int | None) -> list[str]:
    """The precisions in which the model fits into `available` bytes (None: unknown, so all that
    its weights can be loaded in), most bits first."""
    if available is None:
        return list(config.precisions)
    return [name for name in config.precisions if needed_bytes(config, name) <= available]


def check_granted(config: ModelConfig, precision: str) -> None:
    """InputError where the model needs more than the machine (or container) has in total."""
    granted = system.memory_bytes()
    if granted is not None and needed_bytes(config, precision) > granted:
        raise _too_little(config, precision, granted, f"this machine has {gb(granted)} in total")


def check_free(config: ModelConfig, precision: str) -> None:
    """InputError where the model needs more than is free now. Called before loading."""
    free = system.available_bytes()
    if free is not None and needed_bytes(config, precision) - PROGRAM > free:
        raise _too_little(config, precision, free, f"{gb(free)} are free now")


def _too_little(config: ModelConfig, precision: str, available: int, has: str) -> InputError:
    needed = gb(needed_bytes(config, precision))
    return InputError(
        f"Not enough memory: in {precision} this model needs about {needed}, and {has}. "
        f"{_remedy(config, fitting(config, available))}"
    )


def _remedy(config: ModelConfig, fits: Sequence[str]) -> str:
    if fits:
        choices = ", ".join(f"{name} ({gb(needed_bytes(config, name))})" for name in fits)
        return f"Choose a precision that fits: {choices}; or close other programs."
    smallest = min(config.precisions, key=lambda name: needed_bytes(config, name))
    least = gb(needed_bytes(config, smallest))
    return (
        f"Even {smallest} needs {least}: close other programs, give the container more memory, or "
        "choose the embedded nano voice."
    )


def gb(size: float) -> str:
    """Bytes for a person: "2.6 GB"."""
    return f"{size / 1e9:.1f} GB"
