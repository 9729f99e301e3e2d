"""The sizes of a Mimi, read and checked without loading it.

Mimi: A. Défossez et al., Moshi, https://arxiv.org/abs/2410.00037. The keys are those of
transformers' MimiConfig, which kyutai/mimi has in its config.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Annotated, Any

from dia_demo.codec.config import CodecFormat, Rates, SampleRate, read_codec_config
from dia_demo.config import Range
from dia_demo.errors import InputError
from dia_demo.untrusted import parse_config

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
_Width = Annotated[int, Range(1, 2**14, whole=True)]
_Count = Annotated[int, Range(1, 100, whole=True)]
_Number = Annotated[float, Range(1e-12, 1e9)]


@dataclass(frozen=True)
class MimiConfig:
    """The defaults are those of kyutai/mimi."""

    sampling_rate: SampleRate = 24_000
    hidden_size: _Width = 512
    num_filters: _Width = 64
    upsampling_ratios: Rates = (8, 6, 5, 4)
    kernel_size: _Width = 7
    last_kernel_size: _Width = 3
    residual_kernel_size: _Width = 3
    compress: _Width = 2
    codebook_size: _Width = 2048
    codebook_dim: _Width = 256
    num_quantizers: _Count = 32
    num_semantic_quantizers: _Count = 1
    num_hidden_layers: _Count = 8
    intermediate_size: _Width = 2048
    num_attention_heads: _Count = 8
    head_dim: _Width = 64
    norm_eps: _Number = 1e-5
    rope_theta: _Number = 10_000.0
    sliding_window: _Width = 250

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
    known = {key: value for key, value in raw.items() if value is not None}
    rope = raw.get("rope_parameters")
    if isinstance(rope, Mapping) and "rope_theta" in rope:
        known["rope_theta"] = rope["rope_theta"]
    config = parse_config(MimiConfig, known, source)
    if "head_dim" not in known:
        config = replace(config, head_dim=config.hidden_size // config.num_attention_heads)
    _check_consistent(config, raw, source)
    return config


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
    expected = config.sampling_rate / config.hop_length
    if rate is not None and rate != expected:
        raise InputError(
            f"{source}: frame_rate must be {expected:g}, the sample rate over "
            f"{config.hop_length} samples of a frame, not {rate!r}."
        )
