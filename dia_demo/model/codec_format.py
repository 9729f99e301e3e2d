"""The rates of a checkpoint's codec, known without loading it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from dia_demo.config import read_json
from dia_demo.errors import InputError


@dataclass(frozen=True)
class CodecFormat:
    """sample_rate in Hz; hop_length in samples a frame. The defaults are Descript's 44.1 kHz."""

    sample_rate: int = 44100
    hop_length: int = 512

    @property
    def frames_per_second(self) -> float:
        return self.sample_rate / self.hop_length


def codec_format(folder: Path) -> CodecFormat:
    """That of the codec beside the checkpoint, or Descript's where it brings none of its own."""
    file = folder / "codec" / "config.json"
    if not file.is_file():
        return CodecFormat()
    raw = read_json(file)
    try:
        return CodecFormat(int(raw["sample_rate"]), math.prod(map(int, raw["encoder_rates"])))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{file} must give sample_rate and encoder_rates ({error!r}).") from error
