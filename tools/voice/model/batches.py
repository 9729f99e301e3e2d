"""Training items of the small Dia: turns joined at code level into scripts, with guides.

Two guides exist in training only. Every frame knows which letter it should read (for the guided
attention), and which phone it is in and how many frames of it are left (for the auxiliary head).

Most scripts have a voice mark in every turn (codec/marks.py). The others are as after a voice
prompt, in whose silence there is none; what their first turn has in its place is not learnt, since
a take without a prompt is to begin with a mark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

import numpy as np
import torch

from tools.voice.codec.marks import MARK_FRAME
from tools.voice.corpus import shards
from tools.voice.corpus.natural import pronunciations_file
from tools.voice.model.network import BOS, CHANNELS, DELAYS, EOS, PAD, REMAINING
from tools.voice.teacher.phones import PHONES
from tools.voice.teacher.prosody import stretches

MAX_FRAMES = 960  # 23 s, the longest script trained on
GUIDE_WIDTH = 2.5  # letters: how sharp the attention guide is
IGNORE = -100
PHONE_INDEX = {p: i for i, p in enumerate(PHONES)}
# turns in a script and how often
TURNS = ((1, 0.33), (2, 0.20), (3, 0.13), (4, 0.12), (6, 0.15), (8, 0.07))
SAME_SPEAKER = 0.15  # the next turn is the same speaker's (as after a voice prompt)
BARE_TAG = 0.25  # the script ends with a bare tag, as Dia's authors advise
LOWER, UNPUNCTUATED = 0.12, 0.06  # scripts all in lower case; without their last full stop
MARKED = 0.6  # scripts whose turns have voice marks
TIGHT, UNTAGGED, LINE_END = 0.06, 0.015, 0.05  # no space after tags; no tag at all; a last newline


@dataclass(frozen=True)
class Turn:
    """One utterance: bytes without tag, codes [T, C], letter read [T], phone and rest [T, 2].

    spelling holds its phones once each, without pauses.
    """

    text: bytes
    voice: str
    codes: np.ndarray
    letters: np.ndarray
    phones: np.ndarray
    spelling: list[int]


@dataclass(frozen=True)
class Item:
    """A script. marks: frames whose code in the last book is a voice mark; skipped: frames whose
    code there is not learnt."""

    text: list[int]
    codes: np.ndarray
    letters: np.ndarray
    phones: np.ndarray
    spelling: list[int]
    marks: list[int]
    skipped: list[int]


@lru_cache
def _phone_counts() -> dict[str, int]:
    counts: dict[str, int] = {}
    for line in pronunciations_file().read_text().splitlines():
        parts = line.split()
        counts.setdefault(parts[0], len(parts) - 1)
    return counts


def _clauses(text: str) -> list[list[tuple[int, int]]]:
    """(start, end) of the words between marks where the teacher pauses."""
    out = []
    for clause in re.finditer(r"\([a-z]+\)|[^,.?!;:()]+", text):
        words = re.finditer(r"[A-Za-z0-9']+", clause.group())
        spans = [(clause.start() + w.start(), clause.start() + w.end()) for w in words]
        if spans:
            out.append(spans)
    return out


def letters_read(text: str, phones: list[str], frames: list[int]) -> np.ndarray:
    """For each frame the (fractional) position in `text` it speaks.

    Words take their share of the phones between two pauses, by their dictionary lengths; inside a
    word the position moves evenly.
    """
    clauses, spoken = _clauses(text), stretches(phones)
    if len(clauses) != len(spoken):  # a mark without pause: align the whole line at once
        clauses = [[w for c in clauses for w in c]]
        spoken = [[i for s in spoken for i in s]]
    ends = np.cumsum([0, *frames])
    times, places = [0.0], [0.0]
    for words, stretch in zip(clauses, spoken, strict=True):
        counts = [
            _phone_counts().get(text[a:b].lower(), max(1, round((b - a) * 0.8))) for a, b in words
        ]
        bounds = np.cumsum([0, *counts]) * len(stretch) / max(1, sum(counts))
        for (a, b), low, high in zip(words, bounds[:-1], bounds[1:], strict=True):
            first = stretch[min(len(stretch) - 1, round(low))]
            last = stretch[min(len(stretch) - 1, max(round(low), round(high) - 1))]
            start = max(float(ends[first]), times[-1] + 1e-3)
            times += [start, max(float(ends[last + 1]), start + 1)]
            places += [a, b - 0.3]
    times.append(max(float(ends[-1]), times[-1] + 1))
    places.append(len(text) - 0.5)
    return np.interp(np.arange(ends[-1]) + 0.5, times, places)


def _phone_targets(phones: list[str], frames: list[int]) -> np.ndarray:
    unknown = len(PHONES)
    return np.array(
        [
            (PHONE_INDEX.get(p, unknown), min(REMAINING - 1, n - 1 - k))
            for p, n in zip(phones, frames, strict=True)
            for k in range(n)
        ]
    )


def load_turns(work: Path) -> list[Turn]:
    """Every turn of every shard that has been encoded."""
    turns = []
    for path in sorted((work / "codes").glob("[0-9][0-9][0-9].npy")):
        codes = np.load(path)
        record, _ = shards.read_shard(work, path.stem)
        start = 0
        for (text, voice), phones, frames in zip(
            record["items"], record["phones"], record["frames"], strict=True
        ):
            count = sum(frames)
            turn = Turn(
                text.encode(),
                voice,
                codes[start : start + count].astype(np.int64),
                letters_read(text, phones, frames),
                _phone_targets(phones, frames),
                [PHONE_INDEX[p] for p in phones if p != "pau" and p in PHONE_INDEX],
            )
            start += count
            if count <= MAX_FRAMES:
                turns.append(turn)
    return turns


class Scripts:
    """An endless, seeded source of items made from `turns`.

    marks: of each voice; turns of voices without one are left out (a corpus made before a voice was
    dropped still has them).
    """

    def __init__(self, turns: list[Turn], marks: dict[str, int], seed: int) -> None:
        self.random, self.marks = Random(seed), marks
        self.by_voice: dict[str, list[Turn]] = {}
        for turn in turns:
            if turn.voice in marks:
                self.by_voice.setdefault(turn.voice, []).append(turn)

    def _choose(self) -> list[tuple[int, Turn]]:
        """Turns with their speakers' tags (1 or 2); each speaker is one of the voices."""
        r = self.random
        count = r.choices([n for n, _ in TURNS], [w for _, w in TURNS])[0]
        cast = r.sample(sorted(self.by_voice), 2)
        chosen: list[tuple[int, Turn]] = []
        tag, frames = r.randrange(1, 3), 0
        while len(chosen) < count:
            turn = r.choice(self.by_voice[cast[tag - 1]])
            frames += len(turn.codes)
            if chosen and frames > MAX_FRAMES:
                break
            chosen.append((tag, turn))
            tag = tag if r.random() < SAME_SPEAKER else 3 - tag
        return chosen

    def item(self) -> Item:
        r = self.random
        text, letters = bytearray(), []
        join = b"\n" if r.random() < 0.3 else b" "
        space = b"" if r.random() < TIGHT else b" "
        chosen = self._choose()
        untagged = len(chosen) == 1 and r.random() < UNTAGGED
        for tag, turn in chosen:
            text += (join if text else b"") + (b"" if untagged else bytes([tag]) + space)
            letters.append(turn.letters + len(text))
            text += turn.text
        if r.random() < BARE_TAG:
            last = chosen[-1][0]
            text += join + bytes([3 - last if r.random() < 0.8 else last])
        elif r.random() < UNPUNCTUATED and text[-1:] in b".!":
            del text[-1]  # frames at the end then read a letter less: the guide allows for it
        if r.random() < LINE_END:
            text += b"\n"
        codes = np.concatenate([t.codes for _, t in chosen])
        starts = np.cumsum([0, *(len(t.codes) for _, t in chosen[:-1])])
        places = (starts + MARK_FRAME).tolist()
        is_marked = r.random() < MARKED
        if is_marked:
            codes[places, -1] = [self.marks[t.voice] for _, t in chosen]
        return Item(
            list(text.lower() if r.random() < LOWER else text),
            codes,
            np.concatenate(letters),
            np.concatenate([t.phones for _, t in chosen]),
            [p for _, t in chosen for p in t.spelling],
            places if is_marked else [],
            [] if is_marked else places[:1],
        )

    def batches(self, frames: int, pool: int = 128):
        """Lists of items of like length, about `frames` frames a batch with padding."""
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


def delayed(codes: np.ndarray) -> np.ndarray:
    """codes [T, C] -> targets [T + max delay + 1, C]: BOS before, EOS once, PAD after."""
    length = len(codes)
    out = np.full((length + 1 + max(DELAYS), CHANNELS), PAD, np.int64)
    for c, delay in enumerate(DELAYS):
        out[:delay, c] = BOS
        out[delay : delay + length, c] = codes[:, c]
        out[delay + length, c] = EOS
    return out


@dataclass(frozen=True)
class Batch:
    """text [B, S], mask [B, S], inputs and targets [B, T, C], astray [B, T, S], phones [B, T, 2].

    marks [B, T] is True where the target of the last channel is a voice mark.
    astray is the guide's cost of attending to each letter; 0 in frames without a guide.
    spelling [B, P] is padded, spelling_count [B] its lengths.
    """

    text: torch.Tensor
    mask: torch.Tensor
    inputs: torch.Tensor
    targets: torch.Tensor
    marks: torch.Tensor
    astray: torch.Tensor
    phones: torch.Tensor
    spelling: torch.Tensor
    spelling_count: torch.Tensor


def collate(items: list[Item], device: str = "cpu") -> Batch:
    rows, width = len(items), max(len(i.text) for i in items)
    length = max(len(i.codes) for i in items) + 1 + max(DELAYS)
    text = np.zeros((rows, width), np.int64)
    targets = np.full((rows, length, CHANNELS), PAD, np.int64)
    astray = np.zeros((rows, length, width), np.float32)
    phones = np.full((rows, length, 2), IGNORE, np.int64)
    marks = np.zeros((rows, length), bool)
    counts = np.array([len(item.spelling) for item in items])
    spelling = np.zeros((rows, counts.max()), np.int64)
    for k, item in enumerate(items):
        text[k, : len(item.text)] = item.text
        shifted, frames = delayed(item.codes), len(item.codes)
        targets[k, : len(shifted)] = shifted
        phones[k, :frames] = item.phones
        spelling[k, : counts[k]] = item.spelling
        off = np.arange(width)[None] - item.letters[:, None]
        astray[k, :frames] = 1 - np.exp(-(off**2) / (2 * GUIDE_WIDTH**2))
    inputs = np.concatenate([np.full((rows, 1, CHANNELS), BOS), targets[:, :-1]], 1)
    for k, item in enumerate(items):
        marks[k, [frame + DELAYS[-1] for frame in item.marks]] = True
        targets[k, [frame + DELAYS[-1] for frame in item.skipped], -1] = IGNORE
    arrays = (text, text != 0, inputs, targets, marks, astray, phones, spelling, counts)
    return Batch(*(torch.from_numpy(x).to(device) for x in arrays))
