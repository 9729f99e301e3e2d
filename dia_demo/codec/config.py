"""The rates and sizes of a checkpoint's codec, read and checked without loading it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Annotated, Any

from dia_demo.config import ModelConfig, Range
from dia_demo.errors import InputError
from dia_demo.files import Stamp, file_stamp
from dia_demo.untrusted import ParseBy, parse_config, read_json

_MOST_BLOCKS = 8


def _check_length(rates: object) -> object:
    if not isinstance(rates, list | tuple) or not 1 <= len(rates) <= _MOST_BLOCKS:
        raise InputError(f"must list 1 to {_MOST_BLOCKS} whole numbers.")
    return rates


SampleRate = Annotated[int, Range(4000, 384_000, whole=True)]
_Rate = Annotated[int, Range(1, 256, whole=True)]
Rates = Annotated[tuple[_Rate, ...], ParseBy(_check_length)]
# Far above Descript's largest codec, and small enough to be built.
_Width = Annotated[int, Range(1, 2**16, whole=True)]


@dataclass(frozen=True)
class DacSizes:
    """Arguments of dac.DAC, with its defaults."""

    sample_rate: SampleRate = 44100
    n_codebooks: Annotated[int, Range(1, 100, whole=True)] = 9
    codebook_size: _Width = 1024
    codebook_dim: _Width = 8
    encoder_dim: _Width = 64
    latent_dim: _Width | None = None
    decoder_dim: _Width = 1536
    encoder_rates: Rates = (2, 4, 8, 8)
    decoder_rates: Rates = (8, 8, 4, 2)


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
    dac = parse_config(DacSizes, raw, str(file))
    return CodecFormat(dac.sample_rate, prod(dac.encoder_rates), dac.n_codebooks, dac.codebook_size)


def read_codec_config(file: Path) -> dict[str, Any]:
    """The parsed config.json of a codec, read again only when it changes."""
    return dict(_parse_config(file, file_stamp(file)))


@lru_cache(maxsize=16)
def _parse_config(file: Path, _stamp: Stamp | None) -> dict[str, Any]:
    return read_json(file)


def check_codec_fits(config: ModelConfig, codec: CodecFormat, source: str) -> None:
    """Raise InputError if the codec cannot decode the model's codes."""
    channels, codes = config.decoder.num_channels, config.num_codes
    if (codec.n_codebooks, codec.codebook_size) != (channels, codes):
        raise InputError(
            f"{source}: its codec has {codec.n_codebooks} codebooks of {codec.codebook_size} "
            f"codes, but its model generates {channels} channels of {codes}."
        )
