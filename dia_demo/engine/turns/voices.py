"""Keeps the voice of every speaker: each turn begins with the mark of its speaker's voice.

A model that was taught voices by name (dia_demo/voices.py) draws marks by itself: two speakers may
get similar voices, a speaker may get another one in a later turn, and a turn may begin without a
mark. Here the seed chooses both voices, and the codes that begin a turn are set while the row is
sampled. Which turn a frame belongs to is known from the place in the text that the model reads.
Where a turn leaves its voice although it has the mark, drift.py brings it back.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from dia_demo.config import ModelConfig
from dia_demo.engine.turns.drift import VoiceDrift
from dia_demo.engine.turns.passages import marks_of, passage_of_bytes, passages, speakers_of
from dia_demo.prompt.voice_traits import TraitsOfBoth, VoiceTraits
from dia_demo.voices import NO_NAMES, Voice, VoiceNames, VoiceTable

# The share of a turn's first codes that its beginning has at least. One or two of them may differ,
# or half of them if a mark is next; elsewhere more than half of them do.
SAME, SAME_BEFORE_MARK = 0.75, 0.5
# A turn that the model does not begin is begun after so many frames of its words: after the first
# number if so much of the turn before has been read. Where words are alike, the place may be in
# another turn for a while.
PATIENCE, LONGEST_PATIENCE, SHARE_READ = 3, 20, 0.6
# A turn begins once more where this share of it has been read, and so many frames are left.
WHOLE_READ, SHORTEST_TURN = 0.9, 17
SILENT_FRAMES = 4  # after the first codes of a turn that is begun here, with its mark


class TurnVoices:
    """The marks of one row.

    said: how many bytes of its text a voice prompt says; prompt: its codes [frames, C]. Its
    speakers keep its voice: with the marks of the prompt, if it is a take of this model, else
    without any. prompt_voice: how it sounds: another speaker gets a voice away from its pitch, if
    it has one. chosen: the voices by name of S1 and S2 that are not the seed's.
    with_marks False: who speaks in the prompt is not known, so turns are
    only followed. Frames are the new ones, counted from 0. begun: of each turn so far, and of each
    sentence that begins like a turn, its first frame and its passage. places: of each frame, the
    byte of the text that was read for it.
    """

    def __init__(
        self,
        config: ModelConfig,
        seed: int,
        text: bytes,
        said: int = 0,
        *,
        prompt: np.ndarray | None = None,
        prompt_voice: VoiceTraits | None = None,
        chosen: VoiceNames = NO_NAMES,
        with_marks: bool = True,
    ) -> None:
        from dia_demo.kernels.turns import count_same

        table = config.voices
        assert table is not None, "the model has voices by name"
        one, two = (None if name is None else table.find(name) for name in chosen)
        drawn = dict(enumerate(table.draw(seed, one, two), start=1))
        prompted = speakers_of(text[:said]) if said else set()
        semitones = None if prompt_voice is None else prompt_voice.semitones
        if semitones is not None and len(prompted) == 1:
            other = table.draw_apart_from(seed, semitones, 1 if prompted == {2} else 2)
            drawn = {1: one or other, 2: two or other}
        self.voices: dict[int, Voice | None] = {
            speaker: None if speaker in prompted else voice for speaker, voice in drawn.items()
        }
        self._marks = {voice.mark for voice in table.voices}
        no_marks = np.setdiff1d(np.arange(config.num_codes), sorted(self._marks))
        # What the turns of each speaker may have in the place of the mark.
        self._codes = {
            speaker: no_marks if voice is None else np.array([voice.mark])
            for speaker, voice in self.voices.items()
        }
        heard = {} if prompt is None else marks_in_prompt(prompt, text[:said], table)
        self._codes |= {speaker: np.array([mark]) for speaker, mark in heard.items()}
        by_mark = {voice.mark: voice for voice in table.voices}
        self._traits = {
            speaker: prompt_voice
            if prompted == {speaker}
            else _traits_of(voice or by_mark.get(heard.get(speaker, -1)))
            for speaker, voice in self.voices.items()
        }
        self._with_marks, self.drift = with_marks, VoiceDrift(table)
        self.table, self.passages = table, passages(text, said)
        self.punctuation = marks_of(text, self.passages)
        self._passage_of = passage_of_bytes(text, self.passages)
        self.begun: list[tuple[int, int]] = []
        self.places: list[int] = []
        # The passage that is spoken; -1 before the first, unless the prompt's speaker goes on.
        goes_on = bool(prompted and self.passages) and self.passages[0].speaker in prompted
        self._current = 0 if goes_on else -1
        self._farthest = 0  # The last byte of it that was read.
        self._begun_here = -np.inf  # The first frame of the last turn that was begun here.
        self._start, self._delay = np.array(table.turn_start), np.array(config.delay_pattern)
        # Frames from the first code of a turn to its mark.
        self._latest = len(self._start) + int(self._delay[-1])
        # In the middle of speech, a mark is followed only in a silence.
        self._opening = np.array([*table.turn_start, *[table.silence] * SILENT_FRAMES])
        self._longest = len(self._opening) + int(self._delay.max())
        self._count_same = count_same

    @property
    def names(self) -> tuple[str | None, str | None] | None:
        """The names of the voices of S1 and S2; None for one that the voice prompt has, or where it
        is not known who has it."""
        if not self._with_marks:
            return None
        one, two = (None if voice is None else voice.name for voice in self.voices.values())
        return one, two

    @property
    def traits(self) -> TraitsOfBoth:
        """How S1 and S2 should sound, None where it is not known: a voice by name as it was taught,
        a voice prompt of one speaker as it sounds."""
        return (self._traits[1], self._traits[2]) if self._with_marks else (None, None)

    def steer(
        self, codes: np.ndarray, logits_V: np.ndarray, tokens: np.ndarray, place: int
    ) -> None:
        """Set those of the codes [C] just sampled that begin a turn, and its mark.

        logits: of the last channel. tokens [positions, C]: code c of frame f is at position
        f + 1 + delay[c]. place: the byte that was read for the frame that code 0 belongs to.
        """
        frame = len(self.places)
        self.places.append(place)
        if not self.passages:
            return
        if self._passage_of[place] == self._current:
            self._farthest = max(self._farthest, place)
        if self._must_begin(int(codes[0]), tokens, frame):
            self._begun_here = frame
        if frame - self._begun_here < self._longest:
            offsets = frame - self._delay - self._begun_here
            for channel in np.flatnonzero((offsets >= 0) & (offsets < len(self._opening))):
                codes[channel] = self._opening[int(offsets[channel]), channel]
        self._set_mark(codes, logits_V, tokens, frame - int(self._delay[-1]))
        if self._with_marks and self._current >= 0:
            voice = self.voices[self.passages[self._current].speaker]
            self.drift.hear(self._current, voice, codes)

    def surplus(self, end: int) -> int | None:
        """How many more turns a row has than its text, where it ended before frame `end` by itself;
        negative if turns at the end of the text were never begun. None where it is not known."""
        if not self._with_marks:
            return None
        if not self.begun or self._current < len(self.passages) - 1:
            return self._current + 1 - len(self.passages) if self.begun else 0
        last = self.passages[-1]
        starts = [start for start, number in self.begun if number == self._current]
        read = np.maximum.accumulate(
            [place if last.start <= place < last.end else 0 for place in self.places]
        )
        whole = last.start + WHOLE_READ * (last.end - last.start)
        return sum(bool(read[at] >= whole) and end - at >= SHORTEST_TURN for at in starts)

    def _set_mark(
        self, codes: np.ndarray, logits_V: np.ndarray, tokens: np.ndarray, frame: int
    ) -> None:
        """Of `frame`, that the last of the codes belongs to, if a turn begins before it."""
        start = frame - len(self._start)
        if start < 0:
            return
        same = self._share_same(tokens, frame)
        if same < (SAME_BEFORE_MARK if int(codes[-1]) in self._marks else SAME):
            return
        self._begin(start)
        if self._with_marks:
            allowed = self._codes[self.passages[self._current].speaker]
            if codes[-1] not in allowed:
                codes[-1] = allowed[logits_V[allowed].argmax()]

    def _share_same(self, tokens: np.ndarray, frame: int) -> float:
        """The share of a turn's first codes that the frames before `frame` have."""
        return self._count_same(tokens, frame, self._delay, self._start) / self._start.size

    def _begin(self, start: int) -> None:
        """Note the turn that begins at this frame: the current one goes on, or the next one begins,
        by the words that are read since then."""
        now, after = self._current, min(self._current + 1, len(self.passages) - 1)
        votes = Counter(int(self._passage_of[place]) for place in self.places[start:])
        is_next = start == self._begun_here or now < 0
        # If most of the current one is not read yet, the place may be in the next one for a moment.
        if is_next or (self._is_read(now) and votes[after] >= votes[now]):
            self._current, self._farthest = after, 0
        self.begun.append((start, self._current))

    def _is_read(self, number: int) -> bool:
        """Whether enough of a passage has been read for the next one to begin."""
        passage = self.passages[number]
        read = self._farthest - passage.start
        return read >= SHARE_READ * (passage.end - passage.start)

    def _must_begin(self, code: int, tokens: np.ndarray, frame: int) -> bool:
        """Whether the words of the next speaker are read, but the model has not begun his turn."""
        if not self._with_marks or frame - self._begun_here < self._latest:
            return False
        now = self._current
        if self._passage_of[self.places[-1]] != now + 1:
            return False
        patience = PATIENCE if now < 0 or self._is_read(now) else LONGEST_PATIENCE
        there = {int(self._passage_of[place]) for place in self.places[-patience:]}
        if there != {now + 1} or len(self.places) < patience:
            return False
        # The first code of the turn may be known already, and then the next one.
        first = [*tokens[max(1, frame + 1 - self._latest) : frame + 1, 0], code]
        begins = [int(code) for code in self._start[:2, 0]]
        return first[-1] != begins[0] and not any(
            first[place : place + 2] == begins for place in range(len(first))
        )


def _traits_of(voice: Voice | None) -> VoiceTraits | None:
    return None if voice is None else VoiceTraits(voice.semitones, voice.spectrum)


def marks_in_prompt(prompt: np.ndarray, text: bytes, table: VoiceTable) -> dict[int, int]:
    """The mark of each speaker of a voice prompt, codes [frames, C] that say `text`.

    Empty where its turns do not show who has which: only a take of the same model has marks.
    """
    start, marks = np.array(table.turn_start), {voice.mark for voice in table.voices}
    length = len(start)
    found: list[int] = []
    for frame in range(length, len(prompt)):
        mark = int(prompt[frame, -1])
        if mark in marks and (prompt[frame - length : frame] == start).mean() >= SAME:
            # A sentence may begin like a turn.
            found += [mark] if found[-1:] != [mark] else []
    speakers = [passage.speaker for passage in passages(text, 0)]
    pairs = set(zip(speakers, found, strict=False))
    if len(found) != len(speakers) or len(pairs) != len(set(speakers)):
        return {}
    return dict(pairs)
