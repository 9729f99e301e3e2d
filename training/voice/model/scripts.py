"""Scripts to train the small Dia on: turns joined at code level, with what guides the training.

Turns begin with a voice mark (codec/marks.py), except those of a speaker with a voice prompt, in
whose silence there is none; what the first of them has in its place is not learnt, since a take
without a prompt is to begin with a mark. Voices without a name have no marks, so they only ever
speak as after a prompt.

What the model reads of the frames before is not always what it is to say: part of a turn has
drifted to a voice nearby (corpus/drift.py), unless nothing else tells the voice, and part of it is
a slip, sound from elsewhere in the script. A model that has only read faultless frames starts a
sentence again after a slip of its own, or goes on from where those sounds belong. Turns of some
scripts share as many words as can be found, so that their sounds alone do not tell where the model
is.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from training.voice.codec.marks import MARK_FRAME
from training.voice.model.network import CHANNELS, DELAYS
from training.voice.model.turns import MAX_FRAMES, Turn
from training.voice.teacher.voices import FREE_NAME

IGNORE = -100  # targets that are not learnt
ANY = -1  # a draw among all voices
TAGS = (1, 2)  # bytes of [S1] and [S2]
SILENT = 6  # first frames of a turn, its silence
DRIFT = 0.7  # turns with a part that has drifted
DRIFT_AFTER = 12  # frames of a turn that has not
DRIFT_FRAMES = 8, 60  # that have: at least, and on average how many more
SLIP = 0.5  # turns with a slip
SLIP_AFTER = 8  # frames of a turn
SLIP_FRAMES = 3, 12  # at least, and on average how many more
# turns in a script and how often
TURNS = ((1, 0.18), (2, 0.2), (3, 0.15), (4, 0.15), (6, 0.2), (8, 0.12))
ALIKE, ALIKE_OF = 0.4, 24  # scripts whose turns share words; each the most similar of so many
SAME_SPEAKER = 0.3  # the next turn is the same speaker's (as after a voice prompt)
FREE_CAST = 0.55  # a speaker has a voice without a name
CONTINUED = 0.4  # such a turn has no tag: another sentence of the turn before
BARE_TAG = 0.5  # the script ends with a bare tag, as Dia's authors advise
LOWER, UNPUNCTUATED = 0.12, 0.06  # scripts all in lower case; without their last full stop
# whose turns have no voice marks, and how often: nobody's, the first speaker's, both speakers'
PROMPTED = ((0, 0.6), (1, 0.25), (2, 0.15))
TIGHT, UNTAGGED, LINE_END = 0.06, 0.015, 0.05  # no space after tags; no tag at all; a last newline


@dataclass(frozen=True)
class Item:
    """A script: what it says, `codes`, and what the model reads of it, `history`, both [T, C].

    marks: frames whose code in the last book is a voice mark; drawn: those of them that nothing
    before says, and the mark of the voice that the other speaker has, or ANY; skipped: frames whose
    code there is not learnt; turns: the first frame of each turn whose voice is known, the frame
    from which it is, the end, and the voice's place among all; voices [T]: that place in every
    frame, IGNORE in the silence before a turn; tags [T]: how many tags the text has up to what a
    frame says.
    """

    text: list[int]
    codes: np.ndarray
    history: np.ndarray
    letters: np.ndarray
    phones: np.ndarray
    spelling: list[int]
    marks: list[int]
    drawn: list[tuple[int, int]]
    skipped: list[int]
    turns: list[tuple[int, int, int, int]]
    voices: np.ndarray
    tags: np.ndarray


class Scripts:
    """An endless, seeded source of items made from `turns`.

    marks: of each voice that has a name. Turns of other voices are left out, unless free_voice has
    drawn them (a corpus made before a voice was dropped still has its turns). drift, slip: the
    shares of the turns that drift and that have a slip.
    """

    def __init__(
        self,
        turns: list[Turn],
        marks: dict[str, int],
        seed: int,
        drift: float = DRIFT,
        slip: float = SLIP,
    ) -> None:
        self.random, self.marks, self.drift, self.slip = Random(seed), marks, drift, slip
        self.by_voice: dict[str, list[Turn]] = {}
        for turn in turns:
            if turn.voice in marks or FREE_NAME.fullmatch(turn.voice):
                self.by_voice.setdefault(turn.voice, []).append(turn)
        self.named = sorted(voice for voice in self.by_voice if voice in marks)
        self.free = sorted(
            voice
            for voice, its_turns in self.by_voice.items()
            if voice not in marks and len(its_turns) > 1
        )
        voices = [*sorted(marks), *sorted(self.by_voice.keys() - marks.keys())]
        self.places = {voice: place for place, voice in enumerate(voices)}

    def _cast(self) -> list[str]:
        """The voices of a script's two speakers."""
        r = self.random
        cast, free = r.sample(self.named, 2), r.sample(self.free, min(2, len(self.free)))
        return [free.pop() if free and r.random() < FREE_CAST else voice for voice in cast]

    def _choose(self) -> list[tuple[int, Turn, bool]]:
        """Speakers' tags (1 or 2) and their turns; True where a turn only continues the one before.

        Each speaker is one of the voices.
        """
        r = self.random
        count = r.choices([n for n, _ in TURNS], [w for _, w in TURNS])[0]
        spoken = [self.by_voice[voice] for voice in self._cast()]
        choice = ALIKE_OF if r.random() < ALIKE else 1
        unsaid = [r.sample(turns, min(count * choice, len(turns))) for turns in spoken]
        chosen: list[tuple[int, Turn, bool]] = []
        said: set[bytes] = set()
        tag, frames, continues = r.randrange(1, 3), 0, False
        while len(chosen) < count and unsaid[tag - 1]:
            turn = most_similar(unsaid[tag - 1], choice, said)  # none twice: it would be copied
            said.update(words_of(turn))
            frames += len(turn.codes)
            if chosen and frames > MAX_FRAMES:
                break
            chosen.append((tag, turn, continues))
            is_same = r.random() < SAME_SPEAKER
            continues = is_same and r.random() < CONTINUED
            tag = tag if is_same else 3 - tag
        return chosen

    def item(self) -> Item:
        r = self.random
        text, letters, tags = bytearray(), [], []
        join = b"\n" if r.random() < 0.3 else b" "
        space = b"" if r.random() < TIGHT else b" "
        chosen = self._choose()
        untagged = len(chosen) == 1 and r.random() < UNTAGGED
        for tag, turn, continues in chosen:
            if continues:
                text += b" "
            else:
                text += (join if text else b"") + (b"" if untagged else bytes([tag]) + space)
            letters.append(turn.letters + len(text))
            tags.append(np.full(len(turn.codes), sum(byte in TAGS for byte in text)))
            text += turn.text
        if r.random() < BARE_TAG:
            last = chosen[-1][0]
            text += join + bytes([3 - last if r.random() < 0.8 else last])
        elif r.random() < UNPUNCTUATED and text[-1:] in b".!":
            del text[-1]  # frames at the end then read a letter less: the guide allows for it
        if r.random() < LINE_END:
            text += b"\n"
        codes = np.concatenate([t.codes for _, t, _ in chosen])
        marks, drawn, skipped, turns = self._mark(chosen, codes)
        return Item(
            list(text.lower() if r.random() < LOWER else text),
            codes,
            self._history(chosen, codes, {first for first, *_ in turns}),
            np.concatenate(letters),
            np.concatenate([t.phones for _, t, _ in chosen]),
            [p for _, t, _ in chosen for p in t.spelling],
            marks,
            drawn,
            skipped,
            turns,
            np.concatenate([self._frame_voices(turn) for _, turn, _ in chosen]),
            np.concatenate(tags),
        )

    def _frame_voices(self, turn: Turn) -> np.ndarray:
        places = np.full(len(turn.codes), self.places[turn.voice])
        places[:SILENT] = IGNORE
        return places

    def _mark(
        self, chosen: list[tuple[int, Turn, bool]], codes: np.ndarray
    ) -> tuple[list[int], list[tuple[int, int]], list[int], list[tuple[int, int, int, int]]]:
        """Write voice marks into `codes`; an item's marks, drawn marks, skipped frames, turns."""
        count = self.random.choices([n for n, _ in PROMPTED], [w for _, w in PROMPTED])[0]
        prompted = list(dict.fromkeys(tag for tag, _, _ in chosen))[:count]
        starts = np.cumsum([0, *(len(t.codes) for _, t, _ in chosen[:-1])])
        marks, drawn, skipped, turns, met = [], [], [], [], {}
        for (tag, turn, continues), start in zip(chosen, starts.tolist(), strict=True):
            place = start + MARK_FRAME
            end, voice = start + len(turn.codes), self.places[turn.voice]
            is_marked = turn.voice in self.marks and tag not in prompted and not continues
            if is_marked:
                codes[place, -1] = self.marks[turn.voice]
                marks.append(place)
            elif tag not in met:
                skipped.append(place)
            if tag in met:
                turns.append((start, start, end, voice))
            elif is_marked:
                drawn.append((place, met.get(3 - tag, ANY)))
                turns.append((start, place + DELAYS[-1] + 1, end, voice))
            met[tag] = self.marks.get(turn.voice, ANY)
        return marks, drawn, skipped, turns

    def _history(
        self, chosen: list[tuple[int, Turn, bool]], codes: np.ndarray, known: set[int]
    ) -> np.ndarray:
        """`codes` with parts in voices nearby, and slips. known: where turns of known voices
        begin."""
        r, history, begin = self.random, codes.copy(), 0
        speech: dict[int, list[np.ndarray]] = {}  # of either speaker, without marks
        for tag, turn, _ in chosen:
            speech.setdefault(tag, []).append(turn.codes[SILENT:])
        for tag, turn, _ in chosen:
            own = history[begin : begin + len(turn.codes)]
            if turn.drifted is not None and begin in known and r.random() < self.drift:
                place = self._part(len(own), DRIFT_AFTER, DRIFT_FRAMES)
                own[place] = turn.drifted[place]
            if r.random() < self.slip:
                place = self._part(len(own), SLIP_AFTER, SLIP_FRAMES)
                length = place.stop - place.start
                elsewhere = r.choice(speech[tag])
                first = r.randrange(max(1, len(elsewhere) - length))
                slip = elsewhere[first : first + length]
                own[place.start : place.start + len(slip)] = slip
            begin += len(own)
        return history

    def _part(self, length: int, earliest: int, frames: tuple[int, int]) -> slice:
        """A part of a turn of `length` frames, none of it before `earliest`. frames: its least
        length, and how much more on average. Empty if the turn is too short for one."""
        least, more = frames
        if length - least <= earliest:
            return slice(0, 0)
        start = self.random.randrange(earliest, length - least)
        return slice(start, min(length, start + least + round(self.random.expovariate(1 / more))))

    def openings(self, count: int) -> list[Item]:
        """Items cut after the first mark, which nothing says: many draws for little work."""
        found: list[Item] = []
        while len(found) < count:
            item = self.item()
            if item.drawn[:1] == [(MARK_FRAME, ANY)]:
                found.append(
                    Item(
                        item.text,
                        item.codes[: MARK_FRAME + 1],
                        item.history[: MARK_FRAME + 1],
                        item.letters[: MARK_FRAME + 1],
                        item.phones[: MARK_FRAME + 1],
                        item.spelling,
                        item.marks[:1],
                        item.drawn[:1],
                        [],
                        [],
                        item.voices[: MARK_FRAME + 1],
                        item.tags[: MARK_FRAME + 1],
                    )
                )
        return found

    def batches(self, frames: int):
        """Lists of items of like length, about `frames` frames a batch with padding."""
        pool = max(128, frames // 24)  # about ten batches
        while True:
            items = sorted((self.item() for _ in range(pool)), key=lambda i: len(i.codes))
            groups, group = [], []
            for item in items:
                if group and (len(group) + 1) * (len(item.codes) + CHANNELS) > frames:
                    groups.append(group)
                    group = []
                group.append(item)
            groups.append(group)
            self.random.shuffle(groups)
            yield from groups


def words_of(turn: Turn) -> set[bytes]:
    return set(turn.text.lower().split())


def most_similar(turns: list[Turn], choice: int, said: set[bytes]) -> Turn:
    """Takes out of `turns` that of its last `choice` which shares most words with `said`, long
    ones not preferred."""
    first = max(0, len(turns) - choice)

    def similarity(place: int) -> float:
        own = words_of(turns[place])
        return len(own & said) / len(own) ** 0.5

    return turns.pop(max(range(first, len(turns)), key=similarity))
