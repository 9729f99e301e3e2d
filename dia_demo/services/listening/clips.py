"""The audio files of a comparison: takes before their pair is complete, and clips of a pair."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dia_demo import audio
from dia_demo.errors import RunError
from dia_demo.files import write_atomic
from dia_demo.loudness import true_peak
from dia_demo.services.earlier.labels import make_distinct, slug
from dia_demo.services.listening.plan.names import setting_names
from dia_demo.services.listening.plan.plan import NAMES, ComparisonPlan
from dia_demo.services.listening.plan.plan_file import write_whole
from dia_demo.services.listening.votes.reveal import Revealed
from dia_demo.services.take import Take, request_metadata
from dia_demo.text.script import parse_turns

# Loudness is measured over blocks of 0.4 s.
SHORTEST_SECONDS = 0.5
MISSING = "This clip is missing from the disk: generate the pair again."


def write_clip(path: Path, clip: np.ndarray, sample_rate: int) -> None:
    """Write int16 [n] without metadata, which could give away its side."""
    write_whole(path, audio.encode(clip, sample_rate, audio.format_of(path)))


def read_wave(path: Path) -> tuple[np.ndarray, int]:
    """A stored take: float32 [n] and its sample rate in Hz."""
    import soundfile

    try:
        return soundfile.read(path, dtype="float32")
    except (OSError, soundfile.LibsndfileError) as error:
        raise RunError(f"{path.name} can no longer be read: delete it and resume.") from error


def at_rate(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """float32 [n] at the wanted sample rate: clips that are compared must have the same one, which
    would give a side away otherwise."""
    import soxr

    if rate == wanted:
        return samples
    resampled: Any = soxr.resample(samples, rate, wanted)
    return np.asarray(resampled, np.float32)


def wave_seconds(path: Path) -> float:
    """The length of a clip in seconds."""
    import soundfile

    try:
        return soundfile.info(str(path)).duration
    except (OSError, soundfile.LibsndfileError) as error:
        raise RunError(MISSING) from error


def write_takes(
    folder: Path, plan: ComparisonPlan, pairs: Sequence[Revealed], path: Path, suffix: str
) -> Path:
    """Write a zip of both sides of the pairs, as they were heard, in the format of a suffix.

    folder: of the clips. Every file contains the settings of its side. Raises RunError if a clip is
    missing or the zip cannot be written.
    """
    names = setting_names(plan.settings)
    sides = [(pair, clip, NAMES.index(pair.heard[clip])) for pair in pairs for clip in (0, 1)]
    stems = make_distinct(f"pair-{pair.order}_{slug(names[setting])}" for pair, _, setting in sides)
    kind = audio.FORMATS[suffix]
    try:
        with write_atomic(path) as part, zipfile.ZipFile(part, "w") as archive:
            for stem, (pair, clip, setting) in zip(stems, sides, strict=True):
                samples, rate = read_wave(folder / pair.trial.clips[clip])
                metadata = _metadata_of(plan, pair, clip, setting)
                contents = audio.encode(audio.to_int16(samples), rate, kind, metadata)
                archive.writestr(f"{stem}{suffix}", contents)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"{path.name} could not be written: {reason}. Free some space.") from error
    return path


def _metadata_of(plan: ComparisonPlan, pair: Revealed, clip: int, setting: int) -> dict:
    """What a take's file says of its settings, for a side of a pair."""
    transcript = None if plan.voice_file is None else plan.voice_transcript
    side, script = plan.settings[setting], plan.scripts[pair.trial.script]
    runtime, params = asdict(side.runtime), side.params_of(pair.trial.seed)
    figures = {name: runtime[name] for name in ("model", "precision", "device")}
    figures |= pair.facts[clip] | {"seed": params.seed, "numerics": plan.numerics}
    beside = side.speed, side.normalise, side.pronunciations, transcript
    return request_metadata(script, params, *beside) | {"figures": figures}


def add_x(clips: Sequence[np.ndarray], x: int, sample_rate: int) -> list[np.ndarray]:
    """A, B and X, int16 [n] each. X is clip 0 (A) or 1 (B) again.

    Each of the three starts after its own short silence and has its own dither, both drawn at
    random, so that X sounds like its original but X minus A is no quieter than X minus B.
    """
    random = np.random.default_rng()
    # Milliseconds. At least 10 apart: speech is like itself a moment later, but not so much later.
    starts = random.permutation(3) * 20 + random.uniform(0, 10, 3)
    size = len(clips[0]) + round(sample_rate * 0.05) + 1
    served = []
    for clip, start in zip((*clips, clips[x]), starts, strict=True):
        at = round(sample_rate * start / 1000)
        # Triangular, of 2 steps RMS, which is 84 dB below full scale.
        wave = random.integers(-2, 3, size) + random.integers(-2, 3, size)
        wave[at : at + len(clip)] += clip
        served.append(np.clip(wave, -32768, 32767).astype(np.int16))
    return served


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
