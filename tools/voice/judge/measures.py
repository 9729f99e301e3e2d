"""What a waveform tells without a recogniser: pitch, who speaks, and where turns meet.

Everything here is for waveforms of 16 kHz, mono; nothing knows scripts or models.
"""

from __future__ import annotations

import numpy as np

from tools.voice.teacher import speech

PITCH_TOLERANCE = 0.1
STRIDE, COEFFICIENTS = 192, 20  # samples between cepstra, and how many numbers each has
BANDS, LOWEST, HIGHEST = 40, 700.0, 7500.0  # the spectrum above most of the pitch's own harmonics


def pitch_track(wave: np.ndarray) -> np.ndarray:
    """Hz every 5 ms, 0 where nothing is voiced."""
    world = speech.pyworld()
    f0, t = world.dio(wave.astype(np.float64), speech.SAMPLE_RATE, frame_period=5.0)
    return world.stonemask(wave.astype(np.float64), f0, t, speech.SAMPLE_RATE)


def median_pitch(wave: np.ndarray) -> float:
    """Hz; 0 where nothing is voiced."""
    f0 = pitch_track(wave)
    return float(np.median(f0[f0 > 0])) if (f0 > 0).any() else 0.0


def pitch_is(wave: np.ndarray, hertz: float) -> bool:
    return abs(median_pitch(wave) / hertz - 1) < PITCH_TOLERANCE


def _sound(wave: np.ndarray) -> np.ndarray:
    """Cepstra [COEFFICIENTS, frames] for comparing moments of two waveforms."""
    from librosa.feature import mfcc

    size = {"n_fft": 1024, "hop_length": STRIDE}
    return mfcc(y=wave, sr=speech.SAMPLE_RATE, n_mfcc=COEFFICIENTS, **size)


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


def spectrum(wave: np.ndarray) -> np.ndarray:
    """Mean log power in BANDS mel bands, without its mean: the shape of a voice."""
    from librosa.filters import mel

    size = 1024
    count = max(1, (len(wave) - size) // 256 + 1)
    wave = np.pad(wave, (0, max(0, size - len(wave))))
    frames = np.stack([wave[k * 256 : k * 256 + size] for k in range(count)]) * np.hanning(size)
    power = np.abs(np.fft.rfft(frames)) ** 2
    loud = power[power.sum(1) > 0.01 * power.sum(1).max()]
    filters = mel(
        sr=speech.SAMPLE_RATE, n_fft=size, n_mels=BANDS, fmin=LOWEST, fmax=HIGHEST, norm=None
    )
    shape = np.log(loud @ filters.T + 1e-6).mean(0)
    return shape - shape.mean()


def typical_spectra(spoken: dict[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
    """Each voice's mean spectrum over its waveforms."""
    return {tag: np.mean([spectrum(w) for w in waves], 0) for tag, waves in spoken.items()}


def nearest_voice(wave: np.ndarray, typical: dict[str, np.ndarray]) -> str:
    """Whose spectrum this is."""
    shape = spectrum(wave)
    return min(typical, key=lambda tag: float(np.square(shape - typical[tag]).sum()))


def speaker(wave: np.ndarray, typical: dict[str, np.ndarray]) -> str | None:
    """Whose voice this is, by pitch and by spectrum; None where they differ or nothing sounds."""
    pitch = median_pitch(wave) if len(wave) else 0
    if not pitch:
        return None
    away = {tag: abs(np.log(pitch / v.f0)) for tag, v in speech.VOICES.items()}
    by_pitch = min(away, key=away.get)
    return by_pitch if by_pitch == nearest_voice(wave, typical) else None
