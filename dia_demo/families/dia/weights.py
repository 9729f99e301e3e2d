"""How much Dia's weights, caches and codecs need, by a checkpoint's config."""

from __future__ import annotations

from dia_demo.codec.config import CodecFormat
from dia_demo.config import ModelConfig
from dia_demo.engine.family import Weights
from dia_demo.engine.loading.calibration import MOST_STEPS, SENTENCES
from dia_demo.model.linear import decoder_weights

# A running codec of Descript's size; a small one.
CODEC, SMALL_CODEC = 450_000_000, 150_000_000
# Caches and activations of one long take with guidance, per layer and width of the decoder.
WORKING_POSITIONS = 1600


def text_weights(config: ModelConfig) -> int:
    """The weights of the encoder's linears, and of the text's keys and values."""
    e, d = config.encoder, config.decoder
    attention = (2 * e.num_heads + 2 * e.num_kv_heads) * e.head_dim * e.hidden_size
    layer = attention + 3 * e.hidden_size * e.intermediate_size
    text = 2 * d.num_layers * d.cross_num_kv_heads * d.cross_head_dim * e.hidden_size
    return e.num_layers * layer + text


def tables(config: ModelConfig) -> int:
    """The weights of all tables: the text's, those that a step reads, those of its further
    frames."""
    e, d = config.encoder, config.decoder
    number = 2 * config.frames_per_step - 1
    return e.vocab_size * e.hidden_size + number * d.num_channels * d.vocab_size * d.hidden_size


def count_weights(config: ModelConfig) -> int:
    """The weights of a whole model, norms excluded."""
    return decoder_weights(config) + text_weights(config) + tables(config)


def cache_bytes(config: ModelConfig, precision: str, positions: int) -> int:
    """Bytes of the key/value cache that a step with guidance reads at this position."""
    d = config.decoder
    itemsize = 4 if precision == "float32" else 2
    values = 2 * d.num_layers * d.num_kv_heads * d.head_dim * positions
    return config.guided_branches * values * itemsize


def working_bytes(config: ModelConfig) -> int:
    """Caches and rotary tables of one long take."""
    e, d = config.encoder, config.decoder
    positions = 2 * config.guided_branches * 4 * d.num_layers
    positions *= config.steps_within(WORKING_POSITIONS)
    caches = positions * d.num_kv_heads * d.head_dim
    # Rotary tables: a cosine and a sine for every position in text and audio.
    return caches + 8 * (e.max_positions * e.head_dim + d.max_positions * d.head_dim)


def calibration_bytes(config: ModelConfig) -> int:
    """The memory of calibrating int4 (model/calibration), besides weights and program."""
    d = config.decoder
    widest = max(d.hidden_size, d.intermediate_size)
    # Keys and values; the inputs of a layer's linears, and twice those of the widest.
    caches = 2 * 2 * d.num_layers
    caches *= d.num_kv_heads * d.head_dim + d.cross_num_kv_heads * d.cross_head_dim
    inputs = 4 * (5 * d.hidden_size + d.intermediate_size + 2 * widest)
    rows = config.guided_branches * len(SENTENCES) * config.steps_within(MOST_STEPS)
    return rows * (caches + inputs) + 16 * widest**2


def codec_bytes(codec: CodecFormat) -> int:
    """Bytes of a running codec."""
    return CODEC if codec.n_codebooks == CodecFormat.n_codebooks else SMALL_CODEC


WEIGHTS = Weights(
    step=decoder_weights,
    text=text_weights,
    tables=tables,
    cache_bytes=cache_bytes,
    working_bytes=working_bytes,
    calibration_bytes=calibration_bytes,
    codec_bytes=codec_bytes,
)
