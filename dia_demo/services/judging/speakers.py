"""Who speaks when in a chunk, and whether it is in the voices that it should have.

How a voice should sound is known of voices by name and of a voice prompt with one speaker.
Thresholds: docs/dialogues.md.
"""

from __future__ import annotations

import numpy as np

from dia_demo.engine.turns.passages import passages
from dia_demo.prompt.prompt import resample_for_analysis
from dia_demo.prompt.voice_traits import VoiceTraits, distance, voice_traits
from dia_demo.services.judging.alignment import Alignment
from dia_demo.services.judging.chunk_take import ChunkTake
from dia_demo.services.judging.sound import Sound

# How far a voice may be from what it should be: in semitones of its median pitch and nepers of its
# spectrum, and how much more, over the seconds that it speaks: a few words have a pitch and sounds
# of their own. Of models that do not report which word they are speaking only the pitch counts.
PITCH, MORE_PITCH, PITCH_UNALIGNED = 1.5, 3.0, 5.0
SPECTRUM, MORE_SPECTRUM = 0.9, 0.9
# Less speech than this is not compared.
LEAST_SECONDS, LEAST_OF_TURN = 1.0, 2.0

Spans = list[tuple[int, int, int]]


def speaker_spans(
    take: ChunkTake, sound: Sound, alignment: Alignment | None, frames_per_second: float
) -> Spans:
    """Who speaks from which sample to which; 0 for both, where it is not known."""
    turns = passages(take.text, take.said)
    if alignment is None or not alignment.words or len(turns) < 2:
        speaker = turns[0].speaker if len(turns) == 1 else 0
        return [(speaker, 0, len(take.samples))]
    spans, start = [], 0
    for turn, after in zip(turns, [*turns[1:], None], strict=True):
        end = len(take.samples)
        if after is not None:
            said = [word for word in alignment.words if turn.start <= word.start < turn.end]
            to_say = [word for word in alignment.words if word.start >= after.start]
            until = to_say[0].first if to_say else 0
            since = said[-1].last if said else until
            first, last = (since - 2) / frames_per_second, (until + 3) / frames_per_second
            end = max(start, sound.quietest(first, last))
        spans.append((turn.speaker, start, end))
        start = end
    return spans


def samples_of(take: ChunkTake, spans: Spans, speaker: int) -> np.ndarray:
    """What one speaker says in a chunk, float32 [n]."""
    own = [take.samples[start:end] for who, start, end in spans if who == speaker]
    return np.concatenate([take.samples[:0], *own])


def has_another_voice(take: ChunkTake, spans: Spans, is_aligned: bool) -> bool:
    """Whether somebody sounds unlike the voice that they should have, in all that they say or in
    one turn."""
    rate = take.sample_rate
    for speaker, expected in enumerate(take.expected_voices, start=1):
        if expected is None:
            continue
        own = [take.samples[start:end] for who, start, end in spans if who == speaker]
        turns = own if len(own) > 1 else []
        pieces = [piece for piece in turns if len(piece) >= LEAST_OF_TURN * rate]
        whole = samples_of(take, spans, speaker)
        pieces += [whole] if len(whole) >= LEAST_SECONDS * rate else []
        if any(_is_unlike(piece, rate, expected, is_aligned) for piece in pieces):
            return True
    return False


def _is_unlike(samples: np.ndarray, rate: int, expected: VoiceTraits, is_aligned: bool) -> bool:
    seconds = len(samples) / rate
    heard = voice_traits(resample_for_analysis(samples, rate))
    if heard.semitones is not None and expected.semitones is not None:
        pitch, more = (PITCH, MORE_PITCH / seconds) if is_aligned else (PITCH_UNALIGNED, 0.0)
        if abs(heard.semitones - expected.semitones) > pitch + more:
            return True
    if not (is_aligned and expected.spectrum):
        return False
    limit = SPECTRUM + MORE_SPECTRUM / seconds
    return distance(heard.spectrum, expected.spectrum) > limit
