"""Decoding a voice prompt's file: every container of libsndfile, and headers without a length."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dia_demo.audio import FORMAT_LABELS, STORED_SUFFIX
from dia_demo.config import Range
from dia_demo.errors import InputError

RATES = Range(1000, 768000)
# Silence that a longer file may have around its speech.
SPARE_SECONDS = 30.0
# Of any prompt, whatever a model and the settings allow.
LONGEST_SECONDS = 600.0
_BLOCK_FRAMES = 65536
# From so many frames on, the header gave no length.
_NO_LENGTH = 2**40
# More chunks than the header of a WAV has before its samples.
_MOST_CHUNKS = 100


def decode(path: Path, max_seconds: float) -> tuple[np.ndarray, int]:
    """The channels of an audio file, float32 [n, channels], and its sample rate in Hz.

    Raises InputError if the file is missing, empty, not audio, or longer than `max_seconds` and
    SPARE_SECONDS, which is noticed before that much of it is read.
    """
    import soundfile

    if not path.is_file():
        raise InputError(f"The voice prompt {path.name} does not exist: choose an audio file.")
    try:
        with _open_sound(path, max_seconds) as file:
            rate = file.samplerate
            RATES.check("The voice prompt's sample rate", rate)
            longest = int((max_seconds + SPARE_SECONDS) * rate)
            if file.frames < _NO_LENGTH:
                check_seconds(path.name, file.frames / rate, longest / rate, max_seconds)
            else:
                # soundfile seeks after each read, which fails in a FLAC of unknown length.
                file.seekable = lambda: False
            channels = _read(file, longest + 1)
    except (soundfile.LibsndfileError, TypeError, RuntimeError, struct.error) as error:
        raise InputError(
            f"The voice prompt {path.name} cannot be read as audio: use one of "
            f"{FORMAT_LABELS}.{_conversion_advice(path)}"
        ) from error
    if not len(channels):
        raise InputError(f"The voice prompt {path.name} is empty: record 5-10 s of clear speech.")
    check_seconds(path.name, len(channels) / rate, longest / rate, max_seconds)
    return channels, rate


def _conversion_advice(path: Path) -> str:
    """What to do with a recording in a format that no part of this program decodes."""
    with open(path, "rb") as file:
        head = file.read(12)
    is_aac = head[:1] == b"\xff" and len(head) > 1 and head[1] & 0xF6 == 0xF0
    if head[4:8] != b"ftyp" and head[:4] != b"\x1aE\xdf\xa3" and not is_aac:
        return ""
    return (
        " M4A, AAC and WebM have to be converted first, for example with “ffmpeg -i "
        f"{path.name} converted{STORED_SUFFIX}”."
    )


def write_decoded(path: Path, source: Path) -> None:
    """Write any file that `decode` reads as a file of floats; `path` has STORED_SUFFIX."""
    import soundfile

    channels, rate = decode(source, LONGEST_SECONDS)
    soundfile.write(path, channels, rate, subtype="FLOAT")


def check_seconds(name: str, seconds: float, longest: float, max_seconds: float) -> None:
    """Raise InputError if a prompt is longer than `longest`. max_seconds: the limit to be named."""
    if seconds > longest:
        raise InputError(
            f"The voice prompt {name} is {seconds:.1f} s long, and at most {max_seconds:.1f} s "
            "fit: cut it to 5-10 s."
        )


def _read(file: Any, most: int) -> np.ndarray:
    blocks, left = [np.zeros((0, file.channels), np.float32)], most
    while left > 0:
        block = file.read(min(_BLOCK_FRAMES, left), dtype="float32", always_2d=True)
        if not len(block):
            break
        blocks.append(block)
        left -= len(block)
    return np.concatenate(blocks)


@contextmanager
def _open_sound(path: Path, max_seconds: float) -> Iterator[Any]:
    import soundfile

    with open(path, "rb") as raw:
        streamed = _complete_riff(raw, max_seconds)
        with soundfile.SoundFile(streamed or str(path)) as file:
            yield file


def _complete_riff(raw: Any, max_seconds: float) -> io.BytesIO | None:
    """A WAV with its true sizes, if the file was written to a pipe and has none; else None.

    Such files give 0 or 0xFFFFFFFF as the size of their samples.
    """
    head = raw.read(12)
    if head[:4] not in (b"RIFF", b"RF64") or head[8:12] != b"WAVE":
        return None
    byte_rate = 0
    for _ in range(_MOST_CHUNKS):
        chunk = raw.read(8)
        if len(chunk) < 8:
            return None
        name, size = struct.unpack("<4sI", chunk)
        if name == b"data":
            break
        body = raw.read(size + size % 2) if size <= 2**20 else b""
        if name == b"fmt " and len(body) >= 12:
            byte_rate = struct.unpack_from("<I", body, 8)[0]
        elif not body and size:
            return None
    else:
        return None
    start = raw.tell()
    present = raw.seek(0, io.SEEK_END) - start
    # RF64 has its sizes elsewhere; a recording that was cut off is read as far as it goes.
    if not present or (0 < size <= present) or (head[:4] == b"RF64" and size == 2**32 - 1):
        return None
    most = int((max_seconds + SPARE_SECONDS + 1) * max(byte_rate, 1))
    raw.seek(0)
    header, samples = bytearray(raw.read(start)), raw.read(min(present, most))
    header[4:8] = struct.pack("<I", len(header) + len(samples) - 8)
    header[-4:] = struct.pack("<I", len(samples))
    return io.BytesIO(bytes(header) + samples)
