"""The audio files of a comparison: takes before their pair is complete, and clips of a pair."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dia_demo.errors import RunError
from dia_demo.loudness import true_peak
from dia_demo.services.listening.plan_file import write_whole
from dia_demo.services.take import Take
from dia_demo.text.script import parse_turns

# Loudness is measured over blocks of 0.4 s.
SHORTEST_SECONDS = 0.5


def write_clip(path: Path, clip: np.ndarray, sample_rate: int) -> None:
    """Write int16 [n] as a WAV without metadata, which could give away its side."""
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, clip, sample_rate, format="WAV", subtype="PCM_16")
    write_whole(path, buffer.getvalue())


def read_wave(path: Path) -> tuple[np.ndarray, int]:
    """A stored take: float32 [n] and its sample rate in Hz."""
    import soundfile

    try:
        return soundfile.read(path, dtype="float32")
    except (OSError, soundfile.LibsndfileError) as error:
        raise RunError(f"{path.name} can no longer be read: delete it and resume.") from error


def wave_seconds(path: Path) -> float:
    """The length of a clip in seconds."""
    import soundfile

    try:
        return soundfile.info(str(path)).duration
    except (OSError, soundfile.LibsndfileError) as error:
        raise RunError("This clip is missing from the disk: generate the pair again.") from error


def with_x(clips: Sequence[np.ndarray], x: int) -> list[np.ndarray]:
    """A, B and X, int16 [n] each. X is clip 0 (A) or 1 (B) again.

    The last bit of every sample is random in all three, so that X sounds like its original but its
    bytes do not give away which one that is.
    """
    random = np.random.default_rng()
    noisy = (
        clip.astype(np.int32) + random.integers(-1, 2, clip.size) for clip in (*clips, clips[x])
    )
    return [np.clip(clip, -32768, 32767).astype(np.int16) for clip in noisy]


def facts_of(take: Take) -> dict:
    """The measurements of a take that are shown after the reveal."""
    seconds = len(take.samples) / take.sample_rate
    if seconds < SHORTEST_SECONDS or take.health.loudness_lufs is None:
        raise RunError(
            f"The take is {seconds:.1f} s long and has no measurable loudness, so it cannot be "
            "compared: use another seed."
        )
    words = sum(len(turn.text.split()) for turn in parse_turns(take.request.script))
    peak = true_peak(take.samples, take.sample_rate)
    return {
        "seconds": round(seconds, 2),
        "loudness_lufs": round(take.health.loudness_lufs, 2),
        "true_peak_db": round(20 * float(np.log10(max(peak, 1e-9))), 2),
        "words_per_minute": round(60 * words / seconds),
        "realtime_factor": round(take.figures.realtime_factor, 3),
        "finish_reason": take.figures.finish_reason,
        "steps": take.figures.steps,
        "codes_sha256": hashlib.sha256(take.codes.tobytes()).hexdigest(),
        "model": take.figures.model,
        "precision": take.figures.precision,
        "device": take.figures.device,
    }
