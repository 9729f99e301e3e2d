"""How much Dia2's weights and caches need, by a checkpoint's config."""

from __future__ import annotations

from typing import cast

from dia_demo.codec.config import CodecFormat
from dia_demo.config import ModelConfig
from dia_demo.engine.family import Weights
from dia_demo.model.dia2.config import Dia2Config

# A running Mimi.
CODEC = 400_000_000


def temporal_weights(config: ModelConfig) -> int:
    """The weights of the temporal transformer's linears, which are read once a step."""
    d = config.decoder
    attention = (2 * d.num_heads + 2 * d.num_kv_heads) * d.head_dim * d.hidden_size
    layer = attention + 3 * d.hidden_size * d.intermediate_size
    return d.num_layers * layer + (_dia2_config(config).actions + d.vocab_size) * d.hidden_size


def depth_weights(config: ModelConfig) -> int:
    """The weights of the depth transformer's linears, each counted once."""
    config = _dia2_config(config)
    d, depth = config.decoder, config.depth
    attention = 4 * depth.num_heads * depth.head_dim * depth.hidden_size
    layer = len(depth.sets) * attention + 3 * depth.hidden_size * depth.intermediate_size
    inputs = len(depth.sets) * d.hidden_size * depth.hidden_size
    heads = config.stages * d.vocab_size * depth.hidden_size
    return depth.num_layers * layer + inputs + heads


def step_weights(config: ModelConfig) -> int:
    """The weights that every step reads from memory, if those of the depth transformer that its
    stages share stay in the cache."""
    return temporal_weights(config) + depth_weights(config)


def text_weights(config: ModelConfig) -> int:
    """The weights that the text's table is multiplied with."""
    return 2 * _dia2_config(config).text_width * config.decoder.hidden_size


def tables(config: ModelConfig) -> int:
    """The weights of the tables of text and audio."""
    config = _dia2_config(config)
    d = config.decoder
    audio = d.vocab_size * (d.num_channels * d.hidden_size)
    audio += d.vocab_size * config.stages * config.depth.hidden_size
    return config.text_vocab * config.text_width + audio


def count_weights(config: ModelConfig) -> int:
    """The weights of a whole model, norms excluded."""
    return step_weights(config) + text_weights(config) + tables(config)


def cache_bytes(config: ModelConfig, precision: str, positions: int) -> int:
    """Bytes of the key/value cache that a step with guidance reads at this position."""
    d = config.decoder
    itemsize = 4 if precision == "float32" else 2
    return 2 * 2 * d.num_layers * d.num_kv_heads * d.head_dim * positions * itemsize


def working_bytes(config: ModelConfig) -> int:
    """Caches and rotary tables of one take of two minutes."""
    d = config.decoder
    return cache_bytes(config, "float32", d.max_positions) + 8 * d.max_positions * d.head_dim


def calibration_bytes(config: ModelConfig) -> int:
    """The inputs of the linears that int4 is calibrated on."""
    d = config.decoder
    return 16 * max(d.hidden_size, d.intermediate_size) ** 2 + working_bytes(config)


def codec_bytes(codec: CodecFormat) -> int:
    """Bytes of a running codec."""
    return CODEC


def _dia2_config(config: ModelConfig) -> Dia2Config:
    return cast(Dia2Config, config)


WEIGHTS = Weights(
    step=step_weights,
    text=text_weights,
    tables=tables,
    cache_bytes=cache_bytes,
    working_bytes=working_bytes,
    calibration_bytes=calibration_bytes,
    codec_bytes=codec_bytes,
)
