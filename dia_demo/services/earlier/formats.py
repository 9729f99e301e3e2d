"""Takes that are stored, in the formats in which people download them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dia_demo import audio
from dia_demo.errors import RunError

REMOVED = (
    "This take no longer exists: it was deleted, or removed to free space. Reload the page to see "
    "your earlier takes."
)


def read_samples(path: Path) -> tuple[np.ndarray, int]:
    """Float32 [n] and the sample rate in Hz of a file that `Take.save` wrote with STORED_SUFFIX.
    Saving them again gives the same file contents. Raises RunError if the file cannot be read."""
    import soundfile

    try:
        pcm, rate = soundfile.read(str(path), dtype="int16")
    except (OSError, soundfile.LibsndfileError) as error:
        raise RunError(REMOVED) from error
    return pcm.astype(np.float32) / 32767, rate


def convert_take(path: Path, suffix: str) -> Path:
    """A stored take in the format of a suffix, with its metadata: `path` itself, or a file beside
    it, which is written if it is not there. Raises RunError if that fails."""
    target = path.with_suffix(suffix)
    if not target.exists():
        samples, rate = read_samples(path)
        audio.write_audio(target, samples, rate, audio.read_metadata(path) or {})
    return target
