"""Whether a kept voice stays the same in all chunks of a dialogue and in other takes.

Pitch by WORLD, timbre by the mean spectral envelope, as in training/voice/judge. Questions are
higher and sentences differ in their sounds, so a pitch is compared with the median of all takes and
chunks of its voice, and an envelope may be as far from the kept take's as thirds of one take are
from it. The teacher, whose voice cannot change, says the same words: what it misses is the
measure's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dia_demo.engine.events import Result
from dia_demo.services.dialogue.plan import DEFAULT_RETRIES
from dia_demo.services.judging.single_take import voice_remark
from dia_demo.services.take import Request, VoicePrompt
from tools.voice_bars import scripts
from tools.voice_bars.bar import Bar, Line, Trial, share_line
from tools.voice_bars.studio import Studio
from tools.voice_bars.times import teach

COUNT = 20
KEPT_SENTENCES, LONG_SENTENCES, TAKE_SENTENCES, TAKES = 3, 20, 5, 2
PITCH, PARTS = 0.05, 3


def pitch_of(samples: np.ndarray) -> float:
    """The median in Hz, of sound at 16 kHz."""
    from training.voice.teacher.melody import pitch_track

    f0 = pitch_track(samples)[1]
    return float(np.median(f0[f0 > 0])) if (f0 > 0).any() else 0.0


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """The mean distance of two envelopes, in nepers of power."""
    return float(np.sqrt(np.square(one - other).mean()))


def _in_voice(studio: Studio, request: Request) -> tuple[Result, int]:
    """A take, and how often it was made again: with the next seed, while it is remarked that it may
    be in another voice, as often as a part of a long script."""
    for again in range(DEFAULT_RETRIES + 1):
        params = replace(request.params, seed=request.params.seed + again)
        (result,) = studio.takes([replace(request, params=params)])
        if voice_remark(request, result) is None:
            break
    return result, again


def _measure(sounds: Sequence[np.ndarray]) -> Trial:
    """Pitches of sounds at 16 kHz, how far each is from the first, and parts of each from it."""
    from training.voice.judge.speakers import envelope

    envelopes = [envelope(sound) for sound in sounds]
    return {
        "pitches": [round(pitch_of(sound), 1) for sound in sounds],
        "apart": [round(apart(each, envelopes[0]), 3) for each in envelopes[1:]],
        "spreads": [
            round(max(apart(envelope(part), whole) for part in np.array_split(sound, PARTS)), 3)
            for sound, whole in zip(sounds, envelopes, strict=True)
        ],
    }


def _trial(studio: Studio, number: int) -> Trial:
    script = scripts.monologue(number, KEPT_SENTENCES)
    (kept,) = studio.takes([studio.request(script, seed=number)])
    assert kept.samples is not None and kept.voices is not None and kept.voices[0] is not None
    voice = VoicePrompt(codes=kept.codes.astype(np.int64), transcript=script)
    texts = [scripts.monologue(1000 * (k + 1) + number, TAKE_SENTENCES) for k in range(TAKES)]
    requests = [studio.request(text, seed=7 + k, voice=voice) for k, text in enumerate(texts)]
    made = [_in_voice(studio, request) for request in requests]
    sounds = [kept.samples, *(result.samples for result, _ in made)]
    said = [text.removeprefix("[S1] ") for text in (script, *texts)]
    sentences = TAKE_SENTENCES if studio.is_quick else LONG_SENTENCES
    long = studio.speak(
        studio.request(scripts.monologue(500 + number, sentences), seed=number + 1, voice=voice)
    )
    edges = [*long.starts, len(long.samples)]
    for chunk, (start, end) in enumerate(pairwise(edges)):
        sounds.append(long.samples[start:end])
        said.append(" ".join(word.word for word in long.words if long.chunk_of(word) == chunk))
    taught = [teach(studio, words, kept.voices[0])[0] for words in said]
    return {
        "voice": kept.voices[0],
        "again": sum(again for _, again in made),
        "made": _measure([sound for sound in sounds if sound is not None]),
        "taught": _measure(taught),
    }


def _off_pitch(trials: Sequence[Trial]) -> np.ndarray:
    """How far each sound's pitch is from the median of its trial, as a share of it."""
    return np.concatenate([np.array(t["pitches"]) / np.median(t["pitches"]) - 1 for t in trials])


def _within_spread(trials: Sequence[Trial]) -> list[bool]:
    """Of each sound but the first, whether it is as near to that as parts of a sound are to it."""
    return [far <= max(t["spreads"]) for t in trials for far in t["apart"]]


def _lines(trials: Sequence[Trial]) -> list[Line]:
    made, taught = ([t[who] for t in trials] for who in ("made", "taught"))
    off, near_taught = _off_pitch(made), np.mean(np.abs(_off_pitch(taught)) <= PITCH)
    to_kept = [pitch / t["pitches"][0] - 1 for t in made for pitch in t["pitches"][1:]]
    again = sum(t["again"] for t in trials)
    near_kept = np.mean(np.abs(to_kept) <= PITCH)
    within_kept = np.mean([far <= t["spreads"][0] for t in made for far in t["apart"]])
    return [
        share_line(
            "kept voice: median pitch of a take or chunk within 5% of all of them", 1,
            (np.abs(off) <= PITCH).tolist(),
            f"{len(trials)} voices, {again} takes made again, {off.min():+.1%} to "
            f"{off.max():+.1%}; within 5% of the kept take's alone: {near_kept:.0%}; "
            f"of the teacher, whose voice cannot change: {near_taught:.1%}",
        ),
        share_line(
            "kept voice: spectral distance within the spread of one take", 1, _within_spread(made),
            f"of the kept take alone: {within_kept:.0%}; "
            f"of the teacher: {np.mean(_within_spread(taught)):.1%}",
        ),
    ]  # fmt: skip


BARS = (
    Bar("voices", COUNT, 1, _trial, _lines, modules=("pyworld", "librosa"), programs=("flite",)),
)
