"""Keeps the voice of every speaker: the mark at the beginning of a turn is that of its speaker.

A model that was taught voices by name (dia_demo/voices.py) draws marks by itself: two speakers may
get similar voices, and a speaker may get another one in a later turn. Here the seed chooses both
voices, and the marks are set while the row is sampled.
"""

from __future__ import annotations

import numpy as np

from dia_demo.config import ModelConfig
from dia_demo.engine.turns.passages import passages, speakers_of
from dia_demo.voices import Voice

# Share of the first codes of a turn that it must have: at a high temperature one or two differ, and
# elsewhere more than half of them do.
SAME = 0.75


# How far the length of speech is from that of its text, standard deviation.
SPREAD = 0.12
# By how much less likely it is, as a logarithm, that a turn has no mark: about one in 500 has none.
UNMARKED = 6.0


class TurnVoices:
    """The marks of one row.

    said: how many bytes of its text a voice prompt says. The prompt's speakers have no mark: they
    keep its voice. begun: of each turn so far, the frame of its mark, and its passage.
    """

    def __init__(self, config: ModelConfig, seed: int, text: bytes, said: int = 0) -> None:
        table = config.voices
        assert table is not None, "the model has voices by name"
        drawn = dict(enumerate(table.drawn(seed), start=1))
        prompted = speakers_of(text[:said]) if said else set()
        self.voices: dict[int, Voice | None] = {
            speaker: None if speaker in prompted else voice for speaker, voice in drawn.items()
        }
        self._marks = np.array([voice.mark for voice in table.voices])
        self._no_marks = np.setdiff1d(np.arange(config.num_codes), self._marks)
        # What the turns of each speaker may have in the place of the mark.
        self._codes = {
            speaker: self._no_marks if voice is None else np.array([voice.mark])
            for speaker, voice in self.voices.items()
        }
        self.table, self.passages = table, passages(text, said)
        self.begun: list[tuple[int, int]] = []
        self._heard: set[int] = set()
        self._start = np.array(table.turn_start)
        frames = np.arange(len(self._start))[:, None] - len(self._start)
        # Of the codes of _start, from the frame after them on.
        self._positions = frames + 1 + np.array(config.delay_pattern)
        self._channels = np.arange(self._start.shape[1])

    @property
    def names(self) -> tuple[str | None, str | None]:
        """The names of the voices of S1 and S2; None for one that the voice prompt has."""
        one, two = (None if voice is None else voice.name for voice in self.voices.values())
        return one, two

    def begins(self, tokens: np.ndarray, frame: int, first: int) -> bool:
        """Whether a turn's first codes end before `frame`, in the tokens [positions, C] of a row
        whose first frame is `first`."""
        if frame - len(self._start) < first:
            return False
        found = tokens[frame + self._positions, self._channels]
        return int((found == self._start).sum()) >= SAME * self._start.size

    def surplus(self, end: int) -> int:
        """How many more turns a row has than its text, where it ended at frame `end` by itself;
        negative if turns at the end of the text were never begun."""
        if not self.begun:
            return 0
        now = self.begun[-1][1]
        began, *others = (frame for frame, place in self.begun if place == now)
        rest = [len(passage.words) for passage in self.passages[now:]]
        if len(rest) > 1:
            # The next ones may have begun without a mark.
            spoken = [self.table.frames(sum(rest[:k]), k) for k in range(1, len(rest) + 1)]
            return 1 + _nearest(spoken, end - began) - len(rest)
        # A turn that begins where a sentence of the last passage ends is that passage, going on.
        ends = [self.table.frames(length, 1) for length in (*self.passages[now].ends, *rest)]
        begins = [frame for frame in others if end - frame >= self.table.frames_per_turn]
        return sum(_nearest(ends, frame - began) == len(ends) - 1 for frame in begins)

    def mark(self, code: int, logits_V: np.ndarray, frame: int) -> int:
        """The code of `frame`, where a turn begins, for the sampled one and its logits."""
        speaker = self._next_speaker(logits_V, frame)
        self._heard.add(speaker)
        allowed = self._codes[speaker]
        return code if code in allowed else int(allowed[logits_V[allowed].argmax()])

    def _next_speaker(self, logits_V: np.ndarray, frame: int) -> int:
        """Whose turn begins: the next passage's, unless the current one goes on."""
        if not self.passages:
            return 1
        now = self.begun[-1][1] if self.begun else -1
        steps = self._steps(now, logits_V, frame) if 0 <= now < len(self.passages) - 1 else 1
        self.begun.append((frame, min(now + steps, len(self.passages) - 1)))
        return self.passages[self.begun[-1][1]].speaker

    def _steps(self, now: int, logits_V: np.ndarray, frame: int) -> int:
        """How many passages the turn is after passage `now`: none where that goes on, two where the
        next one began without a mark. By the mark that the model expects, and by how long it has
        spoken."""
        here, there = self.passages[now : now + 2]
        spoken = frame - next(frame for frame, place in self.begun if place == now)

        def fit(characters: int, turns: int = 1) -> float:
            expected = self.table.frames(characters, turns)
            return -0.5 * ((spoken - expected) / (SPREAD * expected)) ** 2

        expected = self._expected(here.speaker, there.speaker, logits_V)
        scores = {1: fit(len(here.words))}
        if here.ends:
            scores[0] = max(map(fit, here.ends)) + expected
        if now + 2 < len(self.passages):
            scores[2] = fit(len(here.words) + len(there.words), turns=2) + expected - UNMARKED
        return max(scores, key=lambda steps: scores[steps])

    def _expected(self, here: int, there: int, logits_V: np.ndarray) -> float:
        """By how much the logits of the codes that continue speaker `here` are above those of the
        codes that begin a turn of `there`."""
        same, other = self._codes[here], self._codes[there]
        if self.voices[there] is not None:
            # A continued turn may have no mark, and a new speaker is expected to have any.
            same = np.union1d(same, self._no_marks)
            other = other if there in self._heard else np.setdiff1d(self._marks, same)
        return float(logits_V[same].max() - logits_V[other].max())


def _nearest(lengths: list[float], length: int) -> int:
    """The index of the length that is nearest, as a ratio."""
    return int(np.abs(np.log(np.array(lengths) / max(1, length))).argmin())
