"""Resynthesis phase-locked to the codec's frames: envelopes by WORLD, pulses and fixed noise.

Every phone is a whole number of frames and has a whole number of pitch pulses, the first at its
first sample. Between the middles of neighbouring voiced phones the pitch glides.
"""

from __future__ import annotations

import numpy as np

from training.voice.teacher.melody import pyworld
from training.voice.teacher.phones import HOP, SAMPLE_RATE

FFT_SIZE = 1024
FREQUENCIES = np.arange(FFT_SIZE // 2 + 1) * SAMPLE_RATE / FFT_SIZE
NOISE_FRAMES = 4  # of fixed noise, cycled from the start of every phone
BEND = 1.5 * np.log(2) / 12  # 1.5 semitones: the most that a phone's middle leaves its mean pitch
RUMBLE = 50.0  # Hz, the cut-off below which nothing is left


def _rise(centre: float, width: float) -> np.ndarray:
    return 1 / (1 + np.exp(-(FREQUENCIES - centre) / width))


# share of noise power by frequency, for each kind of phone
APERIODICITY = {
    "voiced": 0.01 + 0.35 * _rise(5200, 500),
    "fricative": 0.08 + 0.92 * _rise(1700, 300),
    "stop": 0.05 + 0.60 * _rise(3200, 500),
    "unvoiced": np.ones_like(FREQUENCIES),
    "laughed": 0.03 + 0.6 * _rise(2200, 500),
}
BREATH = 0.006  # root mean square of a breath at its loudest, of full scale: about -24 dB of speech
BREATH_FORMANTS, BREATH_WIDTH = (600, 1500, 2500, 3600), 350.0  # Hz, of an open throat


def fixed_noise() -> np.ndarray:
    """The frames of noise that every unvoiced sound consists of, one after the other."""
    noise = np.random.default_rng(7).standard_normal((NOISE_FRAMES, HOP))
    return (noise / noise.std(axis=1, keepdims=True)).ravel()


def minimum_phase(power: np.ndarray) -> np.ndarray:
    """Power spectra [K, bins] -> complex minimum-phase spectra, through the cepstrum."""
    cepstrum = np.fft.irfft(np.log(np.maximum(power, 1e-12)) * 0.5, axis=-1)
    cepstrum[:, 1 : FFT_SIZE // 2] *= 2
    cepstrum[:, FFT_SIZE // 2 + 1 :] = 0
    return np.exp(np.fft.rfft(cepstrum, axis=-1))


def envelopes(wave, times, kinds, track, warp: float) -> np.ndarray:
    """cheaptrick's power spectra at `times`, formants shifted by `warp`, without rumble."""
    f0 = np.where([k == "unvoiced" for k in kinds], 0.0, np.interp(times, *track))
    power = pyworld().cheaptrick(
        wave,
        np.ascontiguousarray(f0),
        np.ascontiguousarray(times),
        SAMPLE_RATE,
        fft_size=FFT_SIZE,
    )
    return without_rumble(shift_formants(power, warp))


def shift_formants(power: np.ndarray, warp: float) -> np.ndarray:
    """Power spectra [K, bins] with everything at `warp` times its frequency."""
    if warp == 1.0:
        return power
    source = FREQUENCIES / warp
    rows = [np.interp(source, FREQUENCIES, row) for row in np.log(power + 1e-16)]
    return np.exp(np.stack(rows))


def breath_power(warp: float) -> np.ndarray:
    """The power spectrum of a breath, mean 1: formants of an open throat, shifted by `warp`."""
    peaks = (1 / (1 + ((FREQUENCIES / warp - f) / BREATH_WIDTH) ** 2) for f in BREATH_FORMANTS)
    power = without_rumble(0.02 + sum(peaks))
    return power / power.mean()


def swell(count: int) -> np.ndarray:
    """The loudness of a breath over its `count` pulses, up and down again."""
    return BREATH * np.sin(np.pi * (np.arange(count) + 0.5) / count) ** 2


def without_rumble(power: np.ndarray) -> np.ndarray:
    return power / (1 + (RUMBLE / np.maximum(FREQUENCIES, 1.0)) ** 6)


def pulse_times(frames: list[int], pulses: list[int], voiced: list[bool]) -> np.ndarray:
    """The sample (a fraction) at which every pulse begins, phone after phone.

    A phone's mean pitch is its pulses over its length. Voiced neighbours meet half-way between
    their means; the middle of a phone makes up for it, so that its pulses stay a whole number.
    """
    lengths = np.array(frames) * HOP
    begins = np.cumsum(lengths) - lengths
    tones = np.log(np.array(pulses) / lengths)
    times = []
    for i, (begin, length, count) in enumerate(zip(begins, lengths, pulses, strict=True)):
        left, right = (
            (tones[i] + tones[j]) / 2
            if 0 <= j < len(tones) and voiced[i] and voiced[j]
            else tones[i]
            for j in (i - 1, i + 1)
        )
        samples = np.arange(length + 1)
        middle = tones[i] + np.clip(tones[i] - (left + right) / 2, -BEND, BEND)
        contour = np.interp(samples, [0, length / 2, length], [left, middle, right])
        phase = np.concatenate([[0.0], np.cumsum(np.exp(contour[:-1]))])
        times.append(begin + np.interp(np.arange(count), phase * count / phase[-1], samples))
    return np.concatenate(times)


def overlap_add(spectra, kinds, amplitude, starts, begins, length: int) -> np.ndarray:
    """A waveform of `length` samples: every spectrum excited by a pulse and its share of noise.

    starts, begins: the first sample of every pulse, and of the phone that it belongs to.
    """
    period = np.diff(np.append(starts, length))
    whole = np.floor(starts + 1e-6).astype(int)
    delay = np.exp(-2j * np.pi * FREQUENCIES / SAMPLE_RATE * (starts - whole)[:, None])
    share = np.stack([APERIODICITY[k] for k in kinds])
    mixed = spectra * (
        np.sqrt(np.maximum(1 - share, 0)) * np.sqrt(period)[:, None] * delay
        + np.sqrt(share) * _noise_spectra(starts - begins, period)
    )
    fade = np.ones(FFT_SIZE)
    fade[-128:] = np.linspace(1, 0, 128)
    grains = np.fft.irfft(mixed, axis=-1) * amplitude[:, None] * fade
    wave = np.zeros(length + FFT_SIZE)
    for k, grain in zip(whole, grains, strict=True):
        wave[k : k + FFT_SIZE] += grain
    return wave[:length]


def _noise_spectra(places: np.ndarray, period: np.ndarray) -> np.ndarray:
    """The piece of the fixed noise of every pulse, by its place in its phone, as a spectrum."""
    noise, pieces = fixed_noise(), np.zeros((len(period), FFT_SIZE))
    for row, place, length in zip(pieces, places, period, strict=True):
        a, b = (int(np.floor(x + 1e-6)) for x in (place, place + length))
        row[: b - a] = noise[np.arange(a, b) % len(noise)]
    return np.fft.rfft(pieces, axis=-1)
