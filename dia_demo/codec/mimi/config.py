"""The sizes of a Mimi, read and checked without loading it.

Mimi: A. Défossez et al., Moshi, https://arxiv.org/abs/2410.00037. The keys are those of
transformers' MimiConfig, which kyutai/mimi has in its config.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import prod
from pathlib import Path
from typing import Any

from dia_demo.codec.config import SAMPLE_RATES, CodecFormat, read_codec_config
from dia_demo.config import Range
from dia_demo.errors import InputError

# The shape of the network, which this program computes: other values are refused.
_FIXED = {
    "audio_channels": 1,
    "use_causal_conv": True,
    "pad_mode": "constant",
    "trim_right_ratio": 1.0,
    "num_residual_layers": 1,
    "use_conv_shortcut": False,
    "attention_bias": False,
    "hidden_act": "gelu",
}
# Transformers has no other: its upsampling doubles the rate.
STRIDE = 2
_WIDTHS = Range(1, 2**14, whole=True)
_COUNTS = Range(1, 100, whole=True)
_MOST_BLOCKS = 8


@dataclass(frozen=True)
class MimiConfig:
    """The defaults are those of kyutai/mimi."""

    sampling_rate: int = 24_000
    hidden_size: int = 512
    num_filters: int = 64
    upsampling_ratios: tuple[int, ...] = (8, 6, 5, 4)
    kernel_size: int = 7
    last_kernel_size: int = 3
    residual_kernel_size: int = 3
    compress: int = 2
    codebook_size: int = 2048
    codebook_dim: int = 256
    num_quantizers: int = 32
    num_semantic_quantizers: int = 1
    num_hidden_layers: int = 8
    intermediate_size: int = 2048
    num_attention_heads: int = 8
    head_dim: int = 64
    norm_eps: float = 1e-5
    rope_theta: float = 10_000.0
    sliding_window: int = 250

    @property
    def hop_length(self) -> int:
        """Samples of a frame."""
        return STRIDE * prod(self.upsampling_ratios)

    @property
    def format(self) -> CodecFormat:
        return CodecFormat(
            self.sampling_rate, self.hop_length, self.num_quantizers, self.codebook_size
        )


MIMI_FORMAT = MimiConfig().format


def read_mimi_format(folder: Path) -> CodecFormat:
    """The format of the Mimi in a checkpoint's folder, or kyutai/mimi's if there is none.

    Raises InputError for a config that is missing or not that of a Mimi.
    """
    if not (folder / "codec").is_dir():
        return MIMI_FORMAT
    return read_mimi_config(folder / "codec" / "config.json").format


def read_mimi_config(file: Path) -> MimiConfig:
    """The sizes in a config.json. Raises InputError for anything but a Mimi of this shape."""
    return parse_mimi_config(read_codec_config(file), str(file))


def parse_mimi_config(raw: Mapping[str, Any], source: str) -> MimiConfig:
    """The sizes in a parsed config.json; missing ones are kyutai/mimi's. Raises InputError."""
    if raw.get("model_type", "mimi") != "mimi":
        raise InputError(f"{source} describes a {raw['model_type']!r}, not the codec Mimi.")
    for key, value in _FIXED.items():
        if raw.get(key, value) != value:
            raise InputError(f"{source}: {key} must be {value!r}, not {raw[key]!r}.")
    names = {field.name for field in fields(MimiConfig)}
    known = {key: raw[key] for key in names & raw.keys() if raw[key] is not None}
    rope = raw.get("rope_parameters")
    if isinstance(rope, Mapping) and "rope_theta" in rope:
        known["rope_theta"] = rope["rope_theta"]
    _check_sizes(known, source)
    known["upsampling_ratios"] = tuple(known.get("upsampling_ratios", (8, 6, 5, 4)))
    hidden, heads = known.get("hidden_size", 512), known.get("num_attention_heads", 8)
    known.setdefault("head_dim", hidden // heads)
    config = MimiConfig(**known)
    _check_consistent(config, raw, source)
    return config


def _check_sizes(known: dict[str, Any], source: str) -> None:
    for key, value in known.items():
        if key == "upsampling_ratios":
            if not isinstance(value, list | tuple) or not 1 <= len(value) <= _MOST_BLOCKS:
                raise InputError(f"{source}: {key} must list 1 to {_MOST_BLOCKS} whole numbers.")
            for ratio in value:
                Range(1, 256, whole=True).check(f"{source}: each of {key}", ratio)
        elif key == "sampling_rate":
            SAMPLE_RATES.check(f"{source}: {key}", value)
        elif key in ("norm_eps", "rope_theta"):
            Range(1e-12, 1e9).check(f"{source}: {key}", value)
        else:
            counts = key.startswith("num_") and key != "num_filters"
            (_COUNTS if counts else _WIDTHS).check(f"{source}: {key}", value)


def _check_consistent(config: MimiConfig, raw: Mapping[str, Any], source: str) -> None:
    """Raise InputError where sizes contradict one another, or the shape is another one."""
    same = {
        "upsample_groups": config.hidden_size,
        "num_key_value_heads": config.num_attention_heads,
        "vector_quantization_hidden_dimension": config.codebook_dim,
    }
    for key, value in same.items():
        if raw.get(key, value) != value:
            raise InputError(f"{source}: {key} must be {value} here, not {raw[key]!r}.")
    if config.hidden_size == config.codebook_dim or config.head_dim % 2:
        raise InputError(
            f"{source}: codebook_dim must differ from hidden_size, and head_dim must be even."
        )
    if not config.num_semantic_quantizers < config.num_quantizers:
        raise InputError(f"{source}: num_semantic_quantizers must be below num_quantizers.")
    rate = raw.get("frame_rate") or raw.get("_frame_rate")
    if rate is not None and rate * config.hop_length != config.sampling_rate:
        raise InputError(
            f"{source}: frame_rate must be {config.sampling_rate / config.hop_length:g}, the "
            f"sample rate over {config.hop_length} samples of a frame, not {rate!r}."
        )
