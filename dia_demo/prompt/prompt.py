"""A voice prompt's way in, the same for the page, programs and the command line.

Decoded, one channel, no offset, silence around the speech cut, at the level the models know, and
refused with the reason if no voice can be continued from it. What was done is said in notes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from dia_demo.audio import integrated_loudness, read_metadata
from dia_demo.disclosure.notice import seconds_in
from dia_demo.errors import InputError
from dia_demo.files import Stamp, file_stamp
from dia_demo.prompt import speech
from dia_demo.prompt.decode import check_seconds, decode
from dia_demo.prompt.speech import FRAME_SECONDS, RATE

# What a take of the embedded voice has, which was measured to keep every word after a prompt.
LOUDNESS_LUFS, LOUDNESS_TOLERANCE = -21.0, 3.0
LEAD_SECONDS, TAIL_SECONDS = 0.15, 0.2
# Less speech than this decides no voice.
LEAST_SECONDS, SHORT_SECONDS = 1.0, 3.0
_PEAK = 0.9
# Noise that is less far below the voice costs words. Clean speech without a pause has 29 dB or more
# between its quiet and loud moments, in takes of all voices and in flite's.
NOISE_DISTANCE_DB = 27.0
# Of frames: pauses within speech, and the shortest sound that is not a click.
_LONGEST_PAUSE, _SHORTEST_SOUND = 60, 6
# Channels: how far below the loudest one is silent, and how alike two of the same sound are.
_SILENT_CHANNEL_DB, _ALIKE = 30.0, 0.5
# How much later a sound may reach one microphone than the other.
_LATEST_SECONDS = 0.03
_OFFSET = 0.005


@dataclass(frozen=True)
class Prompt:
    """A voice prompt ready to be encoded: float32 [n], mono. notes: remarks for the person."""

    samples: np.ndarray
    notes: tuple[str, ...]


def read_prompt(path: Path | str, sample_rate: int, max_seconds: float) -> Prompt:
    """Read an audio file as a voice prompt at `sample_rate` Hz.

    max_seconds: what fits, without the silence that is cut. Raises InputError if it is missing, not
    audio, damaged, too long or too short, or contains no speech.
    """
    path = Path(path)
    return _read(path, file_stamp(path), sample_rate, max_seconds)


@lru_cache(maxsize=2)  # It is checked before a run waits, and used by all takes of a run.
def _read(path: Path, stamp: Stamp | None, sample_rate: int, max_seconds: float) -> Prompt:
    import soxr

    channels, rate = decode(path, max_seconds)
    # That of a file of this program is nobody's voice.
    channels = channels[round(seconds_in(read_metadata(path)) * rate) :]
    notes: list[str] = []
    wave = _choose_channel(path.name, channels, rate, notes)
    wave = _trim(path.name, wave, rate, notes)
    check_seconds(path.name, len(wave) / rate, max_seconds, max_seconds)
    wave = _match_level(wave, rate, notes)
    if rate != sample_rate:
        wave = soxr.resample(wave, rate, sample_rate)
    peak = float(np.abs(wave).max(initial=0.0))
    return Prompt(wave / max(1.0, peak), tuple(notes))


def _choose_channel(name: str, channels: np.ndarray, rate: int, notes: list[str]) -> np.ndarray:
    """The channel that contains the voice, without its offset; several that differ are mixed."""
    if not np.isfinite(channels).all():
        raise InputError(
            f"The voice prompt {name} contains NaN or infinite values: export the file again."
        )
    waves, offsets = zip(*(_remove_offset(channel, rate) for channel in channels.T), strict=True)
    levels = [10 * float(np.log10(max(1e-12, (wave**2).mean()))) for wave in waves]
    if all(speech.is_silent(wave, rate) for wave in waves):
        raise InputError(f"The voice prompt {name} is silent: record 5-10 s of clear speech.")
    spoken = {k: _problem(wave, rate) for k, wave in enumerate(waves)}
    usable = [k for k, problem in spoken.items() if problem is None]
    if not usable:
        raise InputError(
            f"The voice prompt {name} is not speech, but {spoken[int(np.argmax(levels))]}. Record "
            "5-10 s of clear speech."
        )
    usable.sort(key=lambda k: -levels[k])
    first, *others = usable
    chosen = [first] + [
        k
        for k in others
        if levels[k] > levels[first] - _SILENT_CHANNEL_DB
        and _correlation(waves[k], waves[first], rate) < _ALIKE
    ]
    if max(abs(offsets[k]) for k in chosen) > _OFFSET:
        notes.append("A constant offset was removed from the voice prompt.")
    clipped = _clipped_share(channels[:, first])
    if clipped > 0.001:
        notes.append(
            f"The voice prompt is clipped ({clipped:.1%} at full scale): a cleaner one works "
            "better."
        )
    if len(chosen) > 1:
        notes.append(f"{len(chosen)} channels of the voice prompt, which differ, were mixed.")
    elif len(waves) > 1:
        notes.append(f"Channel {first + 1} of {len(waves)} of the voice prompt was used.")
    return sum((waves[k] for k in chosen[1:]), waves[first])


def _clipped_share(channel: np.ndarray) -> float:
    return float((np.abs(channel) >= 0.999).mean())


def _remove_offset(channel: np.ndarray, rate: int) -> tuple[np.ndarray, float]:
    """A channel [n] without its constant offset, and the offset.

    Digital silence that was added at an end has none, or another one.
    """
    changes = np.flatnonzero(np.diff(channel))
    if not len(changes):
        return np.zeros_like(channel), float(channel[0])
    first, last = int(changes[0]) + 1, int(changes[-1]) + 1
    shortest = round(FRAME_SECONDS * rate)
    start, end = first if first > shortest else 0, len(channel)
    if len(channel) - last > shortest:
        end = last
    offset = channel[start:end].mean(dtype=np.float64).astype(np.float32)
    wave = np.zeros_like(channel)
    wave[start:end] = channel[start:end] - offset
    return wave, float(offset)


def _correlation(a: np.ndarray, b: np.ndarray, rate: int) -> float:
    """How alike two channels are, whatever their signs, and if one is a little later."""
    from scipy import signal

    most = round(_LATEST_SECONDS * rate)
    products = signal.correlate(a, b, method="fft")[len(b) - 1 - most : len(b) + most]
    return float(np.abs(products).max() / max(1e-12, np.sqrt((a * a).sum() * (b * b).sum())))


def resample_for_analysis(wave: np.ndarray, rate: int) -> np.ndarray:
    """At the rate of the analysis, so that no rate makes a difference to it."""
    import soxr

    return wave if rate == RATE else soxr.resample(wave, rate, RATE)


def _problem(wave: np.ndarray, rate: int) -> str | None:
    """What a channel is instead of speech; None if it may be speech."""
    if speech.is_silent(wave, rate):
        return "silence"
    analysed = resample_for_analysis(wave, rate)
    traits = speech.traits(analysed, speech.speech_frames(analysed))
    if traits.seconds < LEAST_SECONDS / 3:
        return f"a sound of {traits.seconds:.1f} s"
    return traits.problem()


def _trim(name: str, wave: np.ndarray, rate: int, notes: list[str]) -> np.ndarray:
    """Without the silence around the speech, but for the little that a take begins and ends with.

    Silence that is too short is made up for.
    """
    analysed = resample_for_analysis(wave, rate)
    active = speech.speech_frames(analysed)
    spans = speech.spans(active, _LONGEST_PAUSE, _SHORTEST_SOUND)
    spoken = float(active.sum() * FRAME_SECONDS)
    if not spans or spoken < LEAST_SECONDS:
        raise InputError(
            f"The voice prompt {name} contains {spoken:.1f} s of speech, and at least "
            f"{LEAST_SECONDS:g} s are needed: record 5-10 s of clear speech."
        )
    if spoken < SHORT_SECONDS:
        notes.append(f"The voice prompt contains only {spoken:.1f} s of speech: 5-10 s work best.")
    distance = speech.noise_distance(analysed, spans[0][0], spans[-1][1])
    if distance < NOISE_DISTANCE_DB:
        notes.append(
            f"The voice prompt has noise only {distance:.0f} dB below the voice, so words "
            "may be lost: record it in a quieter room."
        )
    start, end = (round(FRAME_SECONDS * frame * rate) for frame in (spans[0][0], spans[-1][1]))
    end = min(len(wave), end)
    lead, tail = round(LEAD_SECONDS * rate), round(TAIL_SECONDS * rate)
    kept = wave[max(0, start - lead) : end + tail]
    missing = max(0, lead - start), max(0, end + tail - len(wave))
    cut = (len(wave) - len(kept)) / rate
    if cut >= 0.1:
        notes.append(f"{cut:.1f} s of silence around the voice prompt's speech were cut.")
    return np.pad(kept, missing)


def _match_level(wave: np.ndarray, rate: int, notes: list[str]) -> np.ndarray:
    """At the loudness of a take, as far as the peak allows. A small change is not worth a note."""
    loudness = integrated_loudness(wave, rate)
    if loudness is None:
        return wave
    peak = float(np.abs(wave).max(initial=0.0))
    gain = min(LOUDNESS_LUFS - loudness, 20 * float(np.log10(_PEAK / max(peak, 1e-9))))
    if abs(gain) > LOUDNESS_TOLERANCE:
        word = "louder" if gain > 0 else "quieter"
        notes.append(f"The voice prompt was made {abs(gain):.0f} dB {word}.")
    return (wave * 10 ** (gain / 20)).astype(np.float32)
