"""Waveforms: reading and writing files, health checks, spectrograms. No torch, no page.

A waveform is float32 [n], mono, nominally within -1..1. libsndfile, soxr and pyloudnorm are
imported where they are used, because some of them are slow to load.
"""

from __future__ import annotations

import base64
import errno
import io
import json
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dia_demo.config import Range
from dia_demo.disclosure.tags import (
    DIGITAL_SOURCE_TYPE,
    SOURCE_TYPE_KEY,
    append_xmp,
    model_in,
    write_tags,
)
from dia_demo.errors import InputError, RunError
from dia_demo.files import write_atomic

# More than `write_audio` writes, but quick to read in a file from elsewhere.
_MOST_CHUNKS = 1000
_LONGEST_COMMENT = 10**6


@dataclass(frozen=True)
class AudioFormat:
    """A format of audio files. container, encoding: libsndfile's names. rates: the sample rates
    that it may have, in Hz; any if there are none. longest_comment: in bytes; a longer one is
    dropped by libsndfile."""

    label: str
    content_type: str
    container: str
    encoding: str = "PCM_16"
    rates: tuple[int, ...] = ()
    longest_comment: int = _LONGEST_COMMENT

    def rate_for(self, rate: int) -> int:
        """`rate`, or else the next higher sample rate that it may have, in Hz."""
        rates = self.rates or (rate,)
        return min((one for one in rates if one >= rate), default=max(rates))


_OPUS_RATES = (8000, 12000, 16000, 24000, 48000)
_MP3_RATES = (*_OPUS_RATES, 11025, 22050, 32000, 44100)
# By suffix. Nothing else in the program names a format.
FORMATS = {
    ".wav": AudioFormat("WAV", "audio/wav", "WAV"),
    ".flac": AudioFormat("FLAC", "audio/flac", "FLAC"),
    ".mp3": AudioFormat("MP3", "audio/mpeg", "MP3", "MPEG_LAYER_III", _MP3_RATES),
    ".opus": AudioFormat("Opus", "audio/ogg", "OGG", "OPUS", _OPUS_RATES, 50_000),
}
# Of what is stored, and of what is downloaded where nothing else was asked for: without losses.
STORED_SUFFIX = ".wav"
# Small, and played by every browser.
SMALL_SUFFIX = ".mp3"
LOSSLESS_SUFFIXES = tuple(suffix for suffix, kind in FORMATS.items() if kind.encoding == "PCM_16")
# What programs and the page call the formats.
FORMAT_NAMES = tuple(suffix.removeprefix(".") for suffix in FORMATS)
# Of a voice prompt that is stored as it came; plans of earlier versions name the last three.
PROMPT_SUFFIXES = (*FORMATS, ".ogg", ".m4a", ".webm")
# A take is restored without the times of its words, and without the codes, from which a voice is
# kept: what is left out first where a format has little room.
SPARE_METADATA = ("words", "codes")
FORMAT_LABELS = ", ".join(kind.label for kind in FORMATS.values())
SPEEDS = Range(0.25, 4.0)  # What programs expect; the page offers less.

SILENCE_DB = -60.0
# A constant offset is inaudible, and up to this one it costs little headroom (0.4 dB).
LARGEST_OFFSET = 0.05
_FULL_SCALE = 0.999


# Files


def to_int16(samples: np.ndarray) -> np.ndarray:
    """int16 [n] for players and files. Clips at full scale; raises RunError for NaN or infinity."""
    samples = np.asarray(samples, dtype=np.float32)
    if not np.isfinite(samples).all():
        raise RunError("The audio contains NaN or infinite values, so it was not saved.")
    return np.rint(np.clip(samples, -1.0, 1.0) * 32767).astype(np.int16)


def write_audio(path: Path | str, samples: np.ndarray, sample_rate: int, metadata: dict) -> Path:
    """Write float32 [n] in the format of the suffix, with `metadata` as JSON inside.

    WAV and FLAC have 16 bits. A format that may not have sample_rate, in Hz, gets the next higher
    rate. The file is written completely or not at all. Raises InputError for another suffix, and
    RunError for non-finite samples or if the file cannot be written.
    """
    path = Path(path)
    data = encode(to_int16(samples), sample_rate, format_of(path), metadata)
    try:
        with write_atomic(path, sync=True) as part:
            part.write_bytes(data)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        remedy = "Free some space" if full else "Choose a folder that exists and can be written to"
        reason = error.strerror or str(error)
        raise RunError(f"{path.name} could not be written: {reason}. {remedy}.") from error
    return path


def format_of(path: Path) -> AudioFormat:
    """The format that a file is written in. Raises InputError if its suffix is none of FORMATS."""
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        *most, last = FORMATS
        allowed = f"{', '.join(most)} or {last}"
        raise InputError(f"Audio is written as {allowed}, not {path.name!r}.")
    return kind


def suffix_of(name: object) -> str:
    """The suffix of a format by its name, STORED_SUFFIX for None. Raises InputError for another."""
    if name is None:
        return STORED_SUFFIX
    if name not in FORMAT_NAMES:
        raise InputError(
            f"format must be one of {', '.join(FORMAT_NAMES)}, not {str(name)[:60]!r}."
        )
    return f".{name}"


def read_metadata(path: Path | str) -> dict | None:
    """The metadata that `write_audio` put into a file; None if there is none."""
    import soundfile

    try:
        comment = _riff_comment(Path(path))
        if comment is None:
            with soundfile.SoundFile(str(path)) as file:
                comment = file.comment
        metadata = json.loads(comment)
    except (OSError, TypeError, ValueError, RecursionError, soundfile.LibsndfileError):
        return None
    if not isinstance(metadata, dict):
        return None
    metadata.pop(SOURCE_TYPE_KEY, None)
    return metadata


def encode(pcm: np.ndarray, rate: int, kind: AudioFormat, metadata: dict | None = None) -> bytes:
    """A file's contents: int16 [n] at `rate` in Hz, and `metadata` as JSON inside; with None it
    says no more than that it is synthetic speech (disclosure/tags.py).

    Where there is no room for all of it, as much of `SPARE_METADATA` is left out. Raises RunError
    if there is no room for the rest.
    """
    import soundfile
    import soxr

    comment = "" if metadata is None else comment_of(metadata, kind, SPARE_METADATA)
    model = model_in(metadata or {})
    if (possible := kind.rate_for(rate)) != rate:
        pcm, rate = soxr.resample(pcm, rate, possible), possible
    buffer = io.BytesIO()
    with soundfile.SoundFile(buffer, "w", rate, 1, kind.encoding, format=kind.container) as file:
        write_tags(file, str((metadata or {}).get("title", "Dia take")), model, comment)
        file.write(pcm)
    append_xmp(buffer, model)
    return buffer.getvalue()


def comment_of(metadata: dict, kind: AudioFormat, spare: Sequence[str]) -> str:
    """Metadata as JSON that says what it is of, without the first of `spare` where a format has no
    room for all. Raises RunError if there is no room for the rest."""
    metadata = {SOURCE_TYPE_KEY: DIGITAL_SOURCE_TYPE} | metadata
    for left_out in ("", *spare):
        metadata.pop(left_out, None)
        comment = json.dumps(metadata, default=str)
        if len(comment) <= kind.longest_comment:
            return comment
    raise RunError(
        f"{kind.label} cannot store a script this long: choose {FORMATS[STORED_SUFFIX].label}."
    )


def data_url(samples: np.ndarray, rate: int) -> str:
    """float32 [n] as an address that a browser plays, small enough for a few sentences."""
    kind = FORMATS[SMALL_SUFFIX]
    sound = encode(to_int16(samples), rate, kind)
    return f"data:{kind.content_type};base64,{base64.b64encode(sound).decode()}"


def _riff_comment(path: Path) -> str | None:
    """The INFO comment of a WAV (None for other files). libsndfile drops those above 2 kB.

    Raises ValueError for more chunks, or a longer comment, than a take has.
    """
    with open(path, "rb") as file:
        riff, _, wave = struct.unpack("<4sI4s", file.read(12).ljust(12, b"\0"))
        if (riff, wave) != (b"RIFF", b"WAVE"):
            return None
        for _ in range(_MOST_CHUNKS):
            if len(head := file.read(8)) < 8:
                return None
            name, size = struct.unpack("<4sI", head)
            if name == b"LIST" and file.read(4) == b"INFO":
                size -= 4
            elif name == b"ICMT" and size <= _LONGEST_COMMENT:
                return file.read(size).rstrip(b"\0").decode("utf-8")
            else:
                file.seek(size + size % 2 - (4 if name == b"LIST" else 0), os.SEEK_CUR)
    raise ValueError("too many chunks")


# Health


@dataclass(frozen=True)
class Health:
    """Measures of a waveform. Levels are in dB of full scale, -inf for silence.

    rms_db excludes a constant offset. loudness_lufs: integrated loudness by ITU-R BS.1770, None
    below 0.4 s and for silence. silent_fraction: share of 20 ms frames below -60 dB.
    """

    seconds: float
    finite: bool
    peak: float
    peak_db: float
    rms_db: float
    loudness_lufs: float | None
    dc: float
    clipped_fraction: float
    silent_fraction: float
    crest_db: float

    def problems(self) -> tuple[str, ...]:
        """Problems with the audio, one sentence each; empty if there are none."""
        if not self.finite:
            return ("It contains NaN or infinite values: something failed during generation.",)
        if self.seconds == 0:
            return ("It contains no audio.",)
        if self.rms_db < SILENCE_DB:
            return ("It is silent.",)
        share = f"{100 * self.clipped_fraction:.1f}%"
        problems = {
            f"It is clipped: {share} of it is at full scale.": self.clipped_fraction > 0.001,
            f"It is offset from zero by {self.dc:+.2f}.": abs(self.dc) > LARGEST_OFFSET,
            "More than half of it is silence.": self.silent_fraction > 0.5,
            "It is a steady tone or buzz rather than speech.": self.crest_db < 6,
        }
        return tuple(problem for problem, present in problems.items() if present)


def health(samples: np.ndarray, sample_rate: int) -> Health:
    """Measure float32 [n]. Problems are reported, not raised."""
    wave = np.asarray(samples, dtype=np.float64)
    finite = bool(np.isfinite(wave).all())
    wave = np.nan_to_num(wave, posinf=0.0, neginf=0.0)
    size = max(1, wave.size)
    dc = float(wave.sum() / size)
    peak = float(np.abs(wave).max(initial=0.0))
    rms = float(np.sqrt(((wave - dc) ** 2).sum() / size))
    step = max(1, sample_rate // 50)
    pieces = wave[: wave.size // step * step].reshape(-1, step)
    quiet = np.sqrt((pieces**2).mean(axis=1)) < 10 ** (SILENCE_DB / 20)
    return Health(
        seconds=wave.size / sample_rate,
        finite=finite,
        peak=peak,
        peak_db=_decibels(peak),
        rms_db=_decibels(rms),
        loudness_lufs=integrated_loudness(wave, sample_rate),
        dc=dc,
        clipped_fraction=float((np.abs(wave) >= _FULL_SCALE).sum() / size),
        silent_fraction=float(quiet.mean()) if quiet.size else float(rms == 0),
        crest_db=_decibels(peak) - _decibels(rms) if rms > 0 else 0.0,
    )


def _decibels(amplitude: float) -> float:
    return 20 * float(np.log10(amplitude)) if amplitude > 0 else -np.inf


def integrated_loudness(wave: np.ndarray, sample_rate: int) -> float | None:
    """LUFS of a wave [n] by ITU-R BS.1770; None below 0.4 s and for silence."""
    import pyloudnorm

    wave = np.asarray(wave, dtype=np.float64)
    if wave.size < 0.4 * sample_rate:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        loudness = float(pyloudnorm.Meter(sample_rate).integrated_loudness(wave))
    return loudness if np.isfinite(loudness) else None


# Picture


# One family of blues, rising evenly in lightness: dark enough to stand on a light page.
_RAMP = np.array(
    [(14, 19, 36), (27, 46, 92), (35, 86, 152), (70, 143, 201), (146, 200, 230), (243, 249, 252)]
)
_RANGE_DB = 75.0
_TOP_HZ = 12000.0


def spectrogram(samples: np.ndarray, sample_rate: int, width: int, height: int) -> np.ndarray:
    """The mel spectrogram of float32 [n] as an image: uint8 [height, width, 3], time from left to
    right, pitch from bottom to top.

    The loudest point is the brightest; whatever is 75 dB below it, and silence, is dark.
    """
    window = window_size(sample_rate)
    wave = np.nan_to_num(np.asarray(samples, dtype=np.float32), posinf=0.0, neginf=0.0)
    # Long audio gets several windows a column, so that no sound falls between columns.
    each = int(np.clip(np.ceil(wave.size / width / window), 1, 4))
    centres = (np.arange(width * each) + 0.5) * wave.size / (width * each)
    padded = np.pad(wave, window // 2 + 1)
    pieces = padded[centres.astype(int)[:, None] + np.arange(window)]
    power = np.abs(np.fft.rfft(pieces * np.hanning(window).astype(np.float32))) ** 2
    power = power.reshape(width, each, -1).mean(axis=1) / (window / 4) ** 2
    bands = power @ _mel_rows(window, sample_rate, height).T
    level = 10 * np.log10(np.maximum(bands, 1e-20))
    top = max(float(level.max(initial=SILENCE_DB)), SILENCE_DB)
    shade = np.clip((level - top) / _RANGE_DB + 1, 0, 1).T[::-1]
    places = np.linspace(0, 1, len(_RAMP))
    table = np.stack([np.interp(np.linspace(0, 1, 256), places, c) for c in _RAMP.T], axis=1)
    return np.rint(table).astype(np.uint8)[np.rint(shade * 255).astype(np.uint8)]


def window_size(sample_rate: int) -> int:
    """Samples of a window for the analysis of speech: a power of 2, about 46 ms."""
    return 2 ** round(np.log2(0.046 * sample_rate))


def _mel_rows(window: int, sample_rate: int, rows: int) -> np.ndarray:
    """Mel filters, float32 [rows, bins]: each averages the bins around its pitch, at least one."""
    top = 2595 * np.log10(1 + min(sample_rate / 2, _TOP_HZ) / 700)
    edges = 700 * (10 ** (np.linspace(0, top, rows + 2) / 2595) - 1)
    bins = np.fft.rfftfreq(window, 1 / sample_rate)
    reach = np.maximum(np.diff(edges)[1:], bins[1])[:, None]
    weights = np.maximum(0, 1 - np.abs(bins - edges[1:-1, None]) / reach)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
