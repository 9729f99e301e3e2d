"""The teacher: a source's phones, spectra and melody, resynthesised for the codec's frames.

A small codec turns ordinary speech into codes that depend on where pitch pulses happen to fall
in a frame; a small language model then learns that accident instead of speech. Here every phone
lasts a whole number of frames, one of three that belong to it, and has a whole number of pitch
pulses, the first at its start; noise is a few fixed frames that restart with each phone. So the
codes are nearly a function of the neighbouring phones and their pulses. The melody is the source's
own, in whole semitones, except that questions rise and laughter falls (prosody.py).

Not here: sentences (corpus/text.py), running it over a corpus (corpus/shards.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from training.voice.teacher import prosody, vocoder
from training.voice.teacher.melody import melody, phone_pitch
from training.voice.teacher.phones import HOP, SAMPLE_RATE, UNVOICED, VOWELS, phone_kind
from training.voice.teacher.sources import Source, synthesise
from training.voice.teacher.voices import Voice

FADE = [0.25, 0.5, 0.25]  # weights over neighbouring pulses, where speech meets a pause


@dataclass(frozen=True)
class Utterance:
    """A waveform (float32, -1 to 1), and each of its phones with its frames and pulses."""

    wave: np.ndarray
    phones: list[str]
    frames: list[int]
    pulses: list[int]


def speak(text: str, voice: Voice, table: dict[str, int]) -> Utterance:
    """`table` has the mean frames of the source's phones (duration_table)."""
    source_wave, timed = synthesise(text, voice.source)
    phones = [phone for phone, _, _ in timed]
    durations = [(end - start) * SAMPLE_RATE / HOP for _, start, end in timed]
    frames = prosody.frames(phones, durations, table, text)
    track = melody(source_wave, voice.source)
    tones = prosody.tones(phones, phone_pitch(timed, track, voice.source), text)
    pulses = [voice.pulses(*phone) for phone in zip(phones, frames, tones, strict=True)]
    times = [
        start + (np.arange(count) + 0.5) / count * (end - start)
        for (_, start, end), count in zip(timed, pulses, strict=True)
    ]
    laughed = prosody.laughter(phones, text)
    of_phones = [
        "laughed" if i in laughed and phone in VOWELS else phone_kind(phone)
        for i, phone in enumerate(phones)
    ]
    kinds = np.repeat(of_phones, pulses).tolist()
    power = vocoder.envelopes(source_wave, np.concatenate(times), kinds, track, voice.warp)
    loudness = np.repeat(prosody.loudness(phones, text), pulses)
    amplitude = np.convolve(np.pad(loudness, 1, mode="edge"), FADE, "valid") * voice.gain
    ends = np.cumsum(pulses)
    for i in prosody.breaths(phones, text):
        inside = slice(ends[i] - pulses[i] + 1, ends[i] - 1)  # the speech before and after fades
        power[inside] = vocoder.breath_power(voice.warp)
        amplitude[inside] = vocoder.swell(pulses[i] - 2)
    starts = vocoder.pulse_times(frames, pulses, [phone not in UNVOICED for phone in phones])
    samples = np.array(frames) * HOP
    begins = np.repeat(np.cumsum(samples) - samples, pulses)
    wave = vocoder.overlap_add(
        vocoder.minimum_phase(power), kinds, amplitude, starts, begins, int(samples.sum())
    )
    return Utterance(np.clip(wave, -1, 1).astype(np.float32), phones, frames, pulses)


def duration_table(sentences: list[str], source: Source) -> dict[str, int]:
    """The mean duration of every phone in whole frames, at least 2."""
    durations: dict[str, list[float]] = {}
    for sentence in sentences:
        for phone, start, end in synthesise(sentence, source)[1]:
            durations.setdefault(phone, []).append(end - start)
    frames = {p: float(np.mean(d)) * SAMPLE_RATE / HOP for p, d in durations.items()}
    return {phone: max(2, round(mean + 0.15)) for phone, mean in frames.items()}
