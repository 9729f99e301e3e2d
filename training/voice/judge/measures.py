"""What a waveform tells without a recogniser: where turns meet, and which of them was said.

Everything here is for waveforms of 16 kHz, mono; nothing knows scripts or models.
"""

from __future__ import annotations

import numpy as np

from training.voice.teacher.phones import SAMPLE_RATE

STRIDE, COEFFICIENTS = 192, 20  # samples between cepstra, and how many numbers each has
WINDOW = 1024  # samples of a cepstrum
PAUSE = 150.0  # of the first coefficient, below its median: a pause
TURN_SLACK = 0.1, 0.25  # a turn may differ by this share, or by this many seconds
STEP, SILENT_POWER = SAMPLE_RATE // 100, 1e-5  # of what is no sound: -50 dB of full scale
PARTS = 2  # of a turn that are compared on their own


def _sound(wave: np.ndarray) -> np.ndarray:
    """Cepstra [COEFFICIENTS, frames] for comparing moments of two waveforms."""
    from librosa.feature import mfcc

    wave = np.pad(wave, (0, max(0, WINDOW - len(wave))))
    size = {"n_fft": WINDOW, "hop_length": STRIDE}
    return mfcc(y=wave, sr=SAMPLE_RATE, n_mfcc=COEFFICIENTS, **size)


def _speech(wave: np.ndarray) -> np.ndarray:
    """Cepstra [COEFFICIENTS - 1, frames] without loudness and without what its voice adds to all of
    them: mean 0 and deviation 1 where it is not silent."""
    loudness, *cepstra = _sound(wave)
    shape, loud = np.array(cepstra), loudness > np.median(loudness) - PAUSE
    mean, deviation = shape[:, loud].mean(1), shape[:, loud].std(1)
    return (shape - mean[:, None]) / (deviation[:, None] + 1e-6)


def _path(said: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Pairs [steps, 2] of frames that belong together, by dynamic time warping."""
    from librosa.sequence import dtw

    return dtw(said, expected)[1][::-1]


def _cuts(path: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The frames said where the expected frames `ends` are."""
    return path[np.searchsorted(path[:, 1], ends), 0]


def turns(wave: np.ndarray, reference: list[np.ndarray]) -> list[np.ndarray]:
    """The take cut where the reference's turns meet, by dynamic time warping.

    What the take left out of a turn makes that piece shorter, what it says twice longer.
    """
    path = _path(_sound(wave), _sound(np.concatenate(reference)))
    ends = np.cumsum([len(turn) for turn in reference])[:-1] // STRIDE
    return np.split(wave, _cuts(path, ends) * STRIDE)


def lengths_fit(turns: list[np.ndarray], reference: list[np.ndarray]) -> bool:
    """Whether the sound of every turn of a dialogue is as long as it should be, within TURN_SLACK.

    Pauses do not count: the app makes them as long as the punctuation says.
    """
    share, seconds = TURN_SLACK
    lengths = [
        (_sounding_samples(wave), _sounding_samples(expected))
        for wave, expected in zip(turns, reference, strict=True)
    ]
    return all(
        abs(length - expected) <= max(share * expected, seconds * SAMPLE_RATE)
        for length, expected in lengths
    )


def _sounding_samples(wave: np.ndarray) -> int:
    """Samples in pieces of 10 ms that are no silence."""
    pieces = wave[: len(wave) // STEP * STEP].reshape(-1, STEP)
    return STEP * int((np.square(pieces).mean(1) > SILENT_POWER).sum())


def in_place(turns: list[np.ndarray], reference: list[np.ndarray]) -> bool:
    """Whether every half of a turn sounds most like the same half of its reference, of all halves
    in the reference.

    Where another turn was said in its place, another half is nearer; words that are only said badly
    are still nearest to themselves.
    """
    said, expected = [], []
    for turn, its_reference in zip(map(_speech, turns), map(_speech, reference), strict=True):
        ends = np.arange(1, PARTS) * its_reference.shape[1] // PARTS
        expected += np.split(its_reference, ends, axis=1)
        said += np.split(turn, _cuts(_path(turn, its_reference), ends), axis=1)
    apart = np.array([[_apart(part, other) for other in expected] for part in said])
    return bool((apart.argmin(1) == np.arange(len(said))).all())


def _apart(said: np.ndarray, expected: np.ndarray) -> float:
    """The mean distance of two sounds along the path of their warping; infinite without frames."""
    if not said.shape[1]:
        return np.inf
    path = _path(said, expected)
    return float(np.linalg.norm(said[:, path[:, 0]] - expected[:, path[:, 1]], axis=0).mean())
