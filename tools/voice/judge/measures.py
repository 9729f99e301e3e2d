"""What a waveform tells without a recogniser: where turns meet.

Everything here is for waveforms of 16 kHz, mono; nothing knows scripts or models.
"""

from __future__ import annotations

import numpy as np

from tools.voice.teacher.phones import SAMPLE_RATE

STRIDE, COEFFICIENTS = 192, 20  # samples between cepstra, and how many numbers each has


def _sound(wave: np.ndarray) -> np.ndarray:
    """Cepstra [COEFFICIENTS, frames] for comparing moments of two waveforms."""
    from librosa.feature import mfcc

    size = {"n_fft": 1024, "hop_length": STRIDE}
    return mfcc(y=wave, sr=SAMPLE_RATE, n_mfcc=COEFFICIENTS, **size)


def turns(wave: np.ndarray, reference: list[np.ndarray]) -> list[np.ndarray]:
    """The take cut where the reference's turns meet, by dynamic time warping.

    What the take left out of a turn makes that piece shorter, what it says twice longer.
    """
    from librosa.sequence import dtw

    said, expected = _sound(wave), _sound(np.concatenate(reference))
    path = dtw(said, expected)[1][::-1]
    ends = np.cumsum([len(turn) for turn in reference])[:-1] / STRIDE
    cuts = [int(path[np.searchsorted(path[:, 1], end), 0]) * STRIDE for end in ends]
    return np.split(wave, cuts)
