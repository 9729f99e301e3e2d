"""The rates and sizes of a checkpoint's codec, read and checked without loading it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from dia_demo.config import ModelConfig, Range
from dia_demo.errors import InputError
from dia_demo.files import Stamp, file_stamp
from dia_demo.untrusted import read_json

SAMPLE_RATES = Range(4000, 384_000, whole=True)
# Far above Descript's largest codec, and small enough to be built.
_WIDTHS = Range(1, 2**16, whole=True)
_ALLOWED = {
    "sample_rate": SAMPLE_RATES,
    "n_codebooks": Range(1, 100, whole=True),
    "codebook_size": _WIDTHS,
    "codebook_dim": _WIDTHS,
    "encoder_dim": _WIDTHS,
    "decoder_dim": _WIDTHS,
    "latent_dim": _WIDTHS,
}
_RATES = Range(1, 256, whole=True)
_MOST_BLOCKS = 8


@dataclass(frozen=True)
class CodecFormat:
    """sample_rate in Hz; hop_length in samples per frame. The defaults are Descript's 44.1 kHz."""

    sample_rate: int = 44100
    hop_length: int = 512
    n_codebooks: int = 9
    codebook_size: int = 1024

    @property
    def frames_per_second(self) -> float:
        return self.sample_rate / self.hop_length


def read_codec_format(folder: Path) -> CodecFormat:
    """The format of the codec in a checkpoint's folder, or Descript's if there is none.

    Raises InputError for a config that is missing or not valid for a codec.
    """
    if not (folder / "codec").is_dir():
        return CodecFormat()
    file = folder / "codec" / "config.json"
    raw = read_codec_config(file)
    missing = [key for key in ("sample_rate", "encoder_rates") if key not in raw]
    if missing:
        raise InputError(f"{file} must contain {' and '.join(missing)}.")
    check_codec_sizes(raw, str(file))
    sizes = {key: raw[key] for key in ("n_codebooks", "codebook_size") if key in raw}
    return CodecFormat(raw["sample_rate"], math.prod(raw["encoder_rates"]), **sizes)


def read_codec_config(file: Path) -> dict[str, Any]:
    """The parsed config.json of a codec, read again only when it changes."""
    return dict(_parse_config(file, file_stamp(file)))


@lru_cache(maxsize=16)
def _parse_config(file: Path, _stamp: Stamp | None) -> dict[str, Any]:
    return read_json(file)


def check_codec_sizes(raw: dict, source: str) -> None:
    """Raise InputError if an argument of dac.DAC is out of range; missing ones are its defaults."""
    for key, allowed in _ALLOWED.items():
        if raw.get(key) is not None:
            allowed.check(f"{source}: {key}", raw[key])
    for key in ("encoder_rates", "decoder_rates"):
        rates = raw.get(key, [1])
        if not isinstance(rates, list) or not 1 <= len(rates) <= _MOST_BLOCKS:
            raise InputError(f"{source}: {key} must list 1 to {_MOST_BLOCKS} whole numbers.")
        for rate in rates:
            _RATES.check(f"{source}: each of {key}", rate)


def check_codec_fits(config: ModelConfig, codec: CodecFormat, source: str) -> None:
    """Raise InputError if the codec cannot decode the model's codes."""
    channels, codes = config.decoder.num_channels, config.num_codes
    if (codec.n_codebooks, codec.codebook_size) != (channels, codes):
        raise InputError(
            f"{source}: its codec has {codec.n_codebooks} codebooks of {codec.codebook_size} "
            f"codes, but its model generates {channels} channels of {codes}."
        )
