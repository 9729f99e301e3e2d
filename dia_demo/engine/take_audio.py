"""A take's sound from the codec's samples: faded at both ends, then a short silence.

A codec begins and ends with a click, since its network sees zeros beyond the take; and a model may
stop on its last phone, or go on in silence.
"""

from __future__ import annotations

import numpy as np

FADE_SECONDS = 0.005
# After the last sound this much stays as it was made; then zeros until SILENCE_SECONDS after it.
KEPT_SECONDS = 0.020
SILENCE_SECONDS = 0.180
# A sound is a piece of this length whose RMS is not this far below the take's loudest piece; the
# end of a whisper after a shout, which may be, is recognised by its level below full scale.
PIECE_SECONDS = 0.010
BELOW_LOUDEST_DB = 40.0
ALWAYS_SOUND_DB = -50.0


def finish_audio(samples: np.ndarray, sample_rate: int, ended_by_itself: bool) -> np.ndarray:
    """Float32 [n] as a take, whole: see `TakeAudio`."""
    audio = TakeAudio(sample_rate)
    return np.concatenate([audio.push(samples), audio.finish(ended_by_itself)])


class TakeAudio:
    """One take, as its samples come: all that is returned, in order, is the take.

    It begins and ends with exactly 0. Samples that would be changed or dropped if the take ended
    here are held back: the last 5 ms, and silence until another sound follows.
    """

    def __init__(self, sample_rate: int) -> None:
        def samples(seconds: float) -> int:
            return round(seconds * sample_rate)

        self._piece, self._kept = samples(PIECE_SECONDS), samples(KEPT_SECONDS)
        self._silence = samples(SILENCE_SECONDS)
        fade = samples(FADE_SECONDS)
        self._fade_in = (np.sin(0.5 * np.pi * np.arange(fade) / fade) ** 2).astype(np.float32)
        self._waiting = np.zeros(0, np.float32)  # Not returned yet.
        self._unmeasured = np.zeros(0, np.float32)  # Less than a piece.
        self._made = self._returned = self._sound_end = 0
        self._loudest = 0.0

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Take further float32 [k]; return the samples of the take that are certain now."""
        self._unmeasured = np.concatenate([self._unmeasured, samples])
        self._waiting = np.concatenate([self._waiting, self._faded_in(samples)])
        self._made += len(samples)
        whole = len(self._unmeasured) // self._piece * self._piece
        pieces, self._unmeasured = np.split(self._unmeasured, [whole])
        self._measure(pieces.reshape(-1, self._piece), self._made - len(self._unmeasured))
        # The end can only move on from here, so nothing before its fade changes.
        return self._take(self._cut() - len(self._fade_in))

    def finish(self, ended_by_itself: bool) -> np.ndarray:
        """The rest of the take. One that was cut or stopped gets no more silence than it made."""
        if len(self._unmeasured):
            self._measure(self._unmeasured[None], self._made)
        cut, end = self._cut(), self._sound_end + self._silence
        if not ended_by_itself:
            end = min(end, self._made)
        rest = self._take(cut)
        fading = rest[max(0, len(rest) - len(self._fade_in)) :]
        fading *= self._fade_in[: len(fading)][::-1]
        return np.pad(rest, (0, end - cut)) if self._made else rest

    def _faded_in(self, samples: np.ndarray) -> np.ndarray:
        gains = self._fade_in[self._made : self._made + len(samples)]
        return np.concatenate([samples[: len(gains)] * gains, samples[len(gains) :]])

    def _measure(self, pieces: np.ndarray, end: int) -> None:
        """Note where the last sound ends, given the next pieces [n, samples], up to sample `end`.

        A louder piece raises the bar for those after it alone: it is a sound itself.
        """
        levels = np.sqrt(np.square(pieces, dtype=np.float64).mean(axis=1))
        loudest = np.maximum.accumulate(np.append(self._loudest, levels))
        self._loudest = float(loudest[-1])
        relative = loudest[1:] * 10 ** (-BELOW_LOUDEST_DB / 20)
        sounds = np.flatnonzero(levels >= np.minimum(relative, 10 ** (ALWAYS_SOUND_DB / 20)))
        if len(sounds):
            self._sound_end = end - (len(pieces) - 1 - int(sounds[-1])) * pieces.shape[1]

    def _cut(self) -> int:
        """Where the made samples would end if nothing followed."""
        return min(self._sound_end + self._kept, self._made)

    def _take(self, end: int) -> np.ndarray:
        """What is waiting, up to sample `end` of the take."""
        ready, self._waiting = np.split(self._waiting, [max(0, end - self._returned)])
        self._returned += len(ready)
        return ready
