"""A take's audio from the codec's samples: faded at both ends, followed by a short silence.

A codec's output begins and ends with a click, because its network sees zeros beyond the take; and a
model may stop right on its last phone, or continue with silence.
"""

from __future__ import annotations

import numpy as np

FADE_SECONDS = 0.005
# After the last sound this much is kept as generated; then zeros until SILENCE_SECONDS after it.
TAIL_SECONDS = 0.020
SILENCE_SECONDS = 0.180
# A piece of this length is sound unless its RMS is this far below the take's loudest piece. The end
# of a whisper after a shout may be that far below it, so a piece of at least ALWAYS_SOUND_DB of
# full scale is always sound.
PIECE_SECONDS = 0.010
BELOW_LOUDEST_DB = 40.0
ALWAYS_SOUND_DB = -50.0


class TakeAudio:
    """One take, as its samples arrive: the returned samples, in order, are the take.

    It begins and ends with exactly 0. Samples that would be changed or dropped if the take ended
    now are held back: the last 5 ms, and silence until another sound follows.
    """

    def __init__(self, sample_rate: int) -> None:
        def samples(seconds: float) -> int:
            return round(seconds * sample_rate)

        self._piece, self._tail = samples(PIECE_SECONDS), samples(TAIL_SECONDS)
        self._silence = samples(SILENCE_SECONDS)
        fade = samples(FADE_SECONDS)
        self._fade_in = (np.sin(0.5 * np.pi * np.arange(fade) / fade) ** 2).astype(np.float32)
        self._pending = np.zeros(0, np.float32)  # Not returned yet.
        self._unmeasured = np.zeros(0, np.float32)  # Less than a piece.
        self._received = self._returned = self._sound_end = 0
        self._loudest = 0.0

    def push(self, samples: np.ndarray) -> np.ndarray:
        """Add float32 [k]; returns the samples of the take that are final."""
        self._unmeasured = np.concatenate([self._unmeasured, samples])
        self._pending = np.concatenate([self._pending, self._apply_fade_in(samples)])
        self._received += len(samples)
        whole = len(self._unmeasured) // self._piece * self._piece
        pieces, self._unmeasured = np.split(self._unmeasured, [whole])
        self._measure(pieces.reshape(-1, self._piece), self._received - len(self._unmeasured))
        # The end can only move later, so nothing before its fade changes.
        return self._take(self._cut() - len(self._fade_in))

    def finish(self, ended_by_itself: bool) -> np.ndarray:
        """The rest of the take. To one that was cut or stopped no silence is added."""
        if len(self._unmeasured):
            self._measure(self._unmeasured[None], self._received)
        cut, end = self._cut(), self._sound_end + self._silence
        if not ended_by_itself:
            end = min(end, self._received)
        rest = self._take(cut)
        fading = rest[max(0, len(rest) - len(self._fade_in)) :]
        fading *= self._fade_in[: len(fading)][::-1]
        return np.pad(rest, (0, end - cut)) if self._received else rest

    def _apply_fade_in(self, samples: np.ndarray) -> np.ndarray:
        gains = self._fade_in[self._received : self._received + len(samples)]
        return np.concatenate([samples[: len(gains)] * gains, samples[len(gains) :]])

    def _measure(self, pieces: np.ndarray, end: int) -> None:
        """Update where the last sound ends, from the next pieces [n, samples] up to sample `end`.

        A louder piece raises the threshold only for the pieces after it.
        """
        levels = np.sqrt(np.square(pieces, dtype=np.float64).mean(axis=1))
        loudest = np.maximum.accumulate(np.append(self._loudest, levels))
        self._loudest = float(loudest[-1])
        relative = loudest[1:] * 10 ** (-BELOW_LOUDEST_DB / 20)
        sounds = np.flatnonzero(levels >= np.minimum(relative, 10 ** (ALWAYS_SOUND_DB / 20)))
        if len(sounds):
            self._sound_end = end - (len(pieces) - 1 - int(sounds[-1])) * pieces.shape[1]

    def _cut(self) -> int:
        """Where the received samples would end if no more followed."""
        return min(self._sound_end + self._tail, self._received)

    def _take(self, end: int) -> np.ndarray:
        """Pending samples up to sample `end` of the take."""
        samples, self._pending = np.split(self._pending, [max(0, end - self._returned)])
        self._returned += len(samples)
        return samples
