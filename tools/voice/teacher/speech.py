"""The teacher: flite's phones and spectra, re-spoken phase-locked to the codec's frames.

A small codec turns ordinary speech into codes that depend on where pitch pulses happen to fall
in a frame; a small language model then learns that accident instead of speech. Here every frame
holds a whole number of pitch pulses, the first at its start, noise is one fixed frame repeated, and
every phone lasts a whole number of frames, one of three that belong to it, so that codes are nearly
a function of the phones around them. Pitch falls at the end of what is said and rises in a question
(prosody.py).

Not here: sentences (corpus/text.py), running it over a corpus (corpus/shards.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import types
from dataclasses import dataclass

import numpy as np

from tools.voice.teacher import prosody

SAMPLE_RATE = 16000
HOP = 384  # samples per codec frame: 24 ms, 41.67 frames/s
FFT_SIZE = 1024
FREQUENCIES = np.arange(FFT_SIZE // 2 + 1) * SAMPLE_RATE / FFT_SIZE

PHONES = (
    "pau aa ae ah ao aw ax ay b ch d dh eh er ey f g hh ih iy jh k l m n ng ow oy p r s sh t th "
    "uh uw v w y z zh"
).split()
UNVOICED = frozenset("p t k f th s sh ch hh pau".split())
VOICED_FRICATIVES = frozenset("z zh v dh jh".split())
VOICED_STOPS = frozenset("b d g".split())


@dataclass(frozen=True)
class Voice:
    """One speaker: which flite voice, how many pulses a frame, formants moved by `warp`."""

    tag: str
    flite: str
    pulses: int  # per frame; F0 = pulses * SAMPLE_RATE / HOP
    gain: float
    warp: float = 1.0  # > 1 moves formants up (a shorter vocal tract)

    @property
    def f0(self) -> float:
        return self.pulses * SAMPLE_RATE / HOP


VOICES = {
    "S1": Voice("S1", "rms", 5, 0.85, warp=1.15),  # 208 Hz
    "S2": Voice("S2", "rms", 3, 1.1),  # 125 Hz
}


def _rise(centre: float, width: float) -> np.ndarray:
    return 1 / (1 + np.exp(-(FREQUENCIES - centre) / width))


# share of noise power by frequency, for each kind of phone
APERIODICITY = {
    "voiced": 0.01 + 0.35 * _rise(5200, 500),
    "fricative": 0.08 + 0.92 * _rise(1700, 300),
    "stop": 0.05 + 0.60 * _rise(3200, 500),
    "unvoiced": np.ones_like(FREQUENCIES),
}


def phone_kind(phone: str) -> str:
    if phone in UNVOICED:
        return "unvoiced"
    if phone in VOICED_FRICATIVES:
        return "fricative"
    return "stop" if phone in VOICED_STOPS else "voiced"


def noise_frame() -> np.ndarray:
    """The one frame of noise every unvoiced sound is made of."""
    noise = np.random.default_rng(7).standard_normal(HOP)
    return noise / noise.std()


def pyworld():
    """pyworld asks pkg_resources for its own version; recent setuptools no longer has it."""
    if "pkg_resources" not in sys.modules:
        stub = types.ModuleType("pkg_resources")
        stub.get_distribution = lambda name: types.SimpleNamespace(version="0")
        sys.modules["pkg_resources"] = stub
    import pyworld

    return pyworld


def speak_flite(text: str, flite_voice: str) -> tuple[np.ndarray, list[tuple[str, float, float]]]:
    """Plain flite: waveform at 16 kHz and (phone, start, end) in seconds."""
    import soundfile

    handle, path = tempfile.mkstemp(suffix=".wav", dir="/dev/shm")
    os.close(handle)
    try:
        out = subprocess.run(
            ["flite", "-psdur", "-voice", flite_voice, "-t", text, "-o", path],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        wave, rate = soundfile.read(path)
    finally:
        os.unlink(path)
    if rate != SAMPLE_RATE:
        raise RuntimeError(f"flite voice {flite_voice} speaks at {rate} Hz, need {SAMPLE_RATE}")
    phones, end = [], 0.0
    for token in out.split():
        phone, stop = token.rsplit(":", 1)
        if float(stop) > end:
            phones.append((phone, end, float(stop)))
            end = float(stop)
    return wave, phones


def minimum_phase(power: np.ndarray) -> np.ndarray:
    """Power spectra [K, bins] -> complex minimum-phase spectra, through the cepstrum."""
    cepstrum = np.fft.irfft(np.log(np.maximum(power, 1e-12)) * 0.5, axis=-1)
    cepstrum[:, 1 : FFT_SIZE // 2] *= 2
    cepstrum[:, FFT_SIZE // 2 + 1 :] = 0
    return np.exp(np.fft.rfft(cepstrum, axis=-1))


def _envelopes(wave, times, kinds, warp: float) -> np.ndarray:
    """cheaptrick power spectra at `times`, formants moved by `warp`."""
    pw = pyworld()
    f0, t = pw.dio(wave, SAMPLE_RATE, frame_period=10.0, speed=2, f0_floor=65.0, f0_ceil=330.0)
    voiced = f0 > 0
    track = (
        np.interp(times, t[voiced], f0[voiced]) if voiced.sum() > 1 else np.full(len(times), 120.0)
    )
    track = np.where([k == "unvoiced" for k in kinds], 0.0, track)
    power = pw.cheaptrick(
        wave,
        np.ascontiguousarray(track),
        np.ascontiguousarray(times),
        SAMPLE_RATE,
        fft_size=FFT_SIZE,
    )
    if warp == 1.0:
        return power
    source = FREQUENCIES / warp
    return np.exp(np.stack([np.interp(source, FREQUENCIES, row) for row in np.log(power + 1e-16)]))


def _grid(pulses: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pulses a frame -> start of every pulse in samples, its period, its place in the frame."""
    counts = np.array(pulses)
    frame = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(frame)) - np.repeat(np.cumsum(counts) - counts, counts)
    period = HOP / counts[frame]
    return frame * HOP + place * period, period, place


def _overlap_add(spectra: np.ndarray, kinds, pulses: list[int], amplitude: np.ndarray):
    """Excite every spectrum by a pulse and its share of the fixed noise, `pulses` in each frame."""
    starts, period, place = _grid(pulses)
    whole = np.floor(starts + 1e-6).astype(int)
    delay = np.exp(-2j * np.pi * FREQUENCIES / SAMPLE_RATE * (starts - whole)[:, None])
    share = np.stack([APERIODICITY[k] for k in kinds])
    mixed = spectra * (
        np.sqrt(np.maximum(1 - share, 0)) * np.sqrt(period)[:, None] * delay
        + np.sqrt(share) * _noise_spectra(period, place)
    )
    fade = np.ones(FFT_SIZE)
    fade[-128:] = np.linspace(1, 0, 128)
    grains = np.fft.irfft(mixed, axis=-1) * amplitude[:, None] * fade
    out = np.zeros(whole[-1] + 2 * FFT_SIZE)
    for k, grain in zip(whole, grains, strict=True):
        out[k : k + FFT_SIZE] += grain
    return out


def _noise_spectra(period: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The piece of the fixed noise frame that falls to every pulse, as a spectrum [K, bins]."""
    noise, pieces = noise_frame(), np.zeros((len(period), FFT_SIZE))
    for row, long, k in zip(pieces, period, place, strict=True):
        a, b = (int(np.floor(x * long + 1e-6)) for x in (k, k + 1))
        row[: b - a] = noise[a:b]
    return np.fft.rfft(pieces, axis=-1)


def speak(text: str, voice: Voice, table: dict[str, int]):
    """Speak `text` phase-locked: (waveform float32 in -1..1, phones, frames per phone)."""
    wave, timed = speak_flite(text, voice.flite)
    phones = [p for p, _, _ in timed]
    seconds = [end - start for _, start, end in timed]
    frames = prosody.frames(phones, [s * SAMPLE_RATE / HOP for s in seconds], table, text)
    steps = prosody.steps(phones, text)
    times, kinds, silent, pulses = [], [], [], []
    for (phone, start, end), n, step in zip(timed, frames, steps, strict=True):
        count = n * (voice.pulses + step)
        pulses += [voice.pulses + step] * n
        times.append(start + (np.arange(count) + 0.5) / count * (end - start))
        kinds += [phone_kind(phone)] * count
        silent += [phone == "pau"] * count
    spectra = minimum_phase(_envelopes(wave, np.concatenate(times), kinds, voice.warp))
    loud = 1 - np.array(silent, float)
    loud = np.convolve(np.pad(loud, 1, mode="edge"), [0.25, 0.5, 0.25], "valid")
    out = _overlap_add(spectra, kinds, pulses, loud)[: sum(frames) * HOP] * voice.gain
    return np.clip(out, -1, 1).astype(np.float32), phones, frames


def duration_table(sentences: list[str], flite_voice: str) -> dict[str, int]:
    """Mean duration of every phone in whole frames, at least 2."""
    seen: dict[str, list[float]] = {}
    for sentence in sentences:
        for phone, start, end in speak_flite(sentence, flite_voice)[1]:
            seen.setdefault(phone, []).append(end - start)
    return {p: max(2, round(float(np.mean(d)) * SAMPLE_RATE / HOP + 0.15)) for p, d in seen.items()}
