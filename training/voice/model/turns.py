"""The corpus as turns, text and codes of an utterance and what each of its frames says.
`python -m training.voice.model.turns --work DIR`.

Writes DIR/turns.npz, all that training reads of the corpus: small enough to carry to a machine with
a GPU, which needs neither flite nor dictionaries then. Run again after encoding further shards.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from dia_demo.files import write_atomic
from training.voice.corpus import drift, shards
from training.voice.corpus.natural import pronunciations_file
from training.voice.model.network import CHANNELS, REMAINING
from training.voice.teacher.phones import HOP, PHONES, SAMPLE_RATE
from training.voice.teacher.prosody import stretches

FILE = "turns.npz"
MAX_FRAMES = 960  # 23 s, the longest script trained on
PHONE_INDEX = {p: i for i, p in enumerate(PHONES)}


@dataclass(frozen=True)
class Turn:
    """One utterance: bytes without tag, codes [T, C], letter read [T], phone and rest [T, 2].

    spelling holds its phones once each, without pauses. drifted [T, C]: the same in a voice nearby,
    where that has been made (corpus/drift.py).
    """

    text: bytes
    voice: str
    codes: np.ndarray
    letters: np.ndarray
    phones: np.ndarray
    spelling: list[int]
    drifted: np.ndarray | None = None


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


def read_corpus(work: Path) -> list[Turn]:
    """Every turn of every shard that has been encoded."""
    turns = []
    for path in sorted((work / "codes").glob("[0-9][0-9][0-9].npy")):
        codes = np.load(path).astype(np.int64)
        nearby = path.with_stem(path.stem + drift.SUFFIX)
        drifted = np.load(nearby).astype(np.int64) if nearby.exists() else None
        record, _ = shards.read_shard(work, path.stem)
        start = 0
        for (text, voice), phones, frames in zip(
            record["items"], record["phones"], record["frames"], strict=True
        ):
            count = sum(frames)
            its_own = slice(start, start + count)
            turn = Turn(
                text.encode(),
                voice,
                codes[its_own],
                letters_read(text, phones, frames),
                _phone_targets(phones, frames),
                [PHONE_INDEX[p] for p in phones if p != "pau" and p in PHONE_INDEX],
                None if drifted is None else drifted[its_own],
            )
            start += count
            if count <= MAX_FRAMES:
                turns.append(turn)
    return turns


def save_turns(path: Path, turns: list[Turn]) -> None:
    """Letters are rounded to half precision: an eighth of a letter in the longest text."""
    with write_atomic(path) as part, open(part, "wb") as file:
        np.savez_compressed(
            file,
            text=np.frombuffer(b"".join(turn.text for turn in turns), np.uint8),
            text_sizes=[len(turn.text) for turn in turns],
            voices=[turn.voice for turn in turns],
            codes=np.concatenate([turn.codes for turn in turns]).astype(np.uint8),
            frames=[len(turn.codes) for turn in turns],
            letters=np.concatenate([turn.letters for turn in turns]).astype(np.float16),
            phones=np.concatenate([turn.phones for turn in turns]).astype(np.uint8),
            spelling=np.concatenate([turn.spelling for turn in turns]).astype(np.uint8),
            spelling_sizes=[len(turn.spelling) for turn in turns],
            has_drifted=[turn.drifted is not None for turn in turns],
            drifted=np.concatenate(
                [np.empty((0, CHANNELS)), *(t.drifted for t in turns if t.drifted is not None)]
            ).astype(np.uint8),
        )


def load_turns(work: Path) -> list[Turn]:
    """What save_turns wrote to DIR/turns.npz. Raises FileNotFoundError if it did not."""
    path = work / FILE
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is missing: run python -m training.voice.model.turns first."
        )
    saved = dict(np.load(path))

    def parts(name: str, sizes: np.ndarray, dtype: type) -> list[np.ndarray]:
        return np.split(saved[name].astype(dtype), np.cumsum(sizes)[:-1])

    frames, has_drifted = saved["frames"], saved["has_drifted"]
    drifted = iter(parts("drifted", frames[has_drifted], np.int64))
    return [
        Turn(
            text.tobytes(),
            str(voice),
            codes,
            letters,
            phones,
            spelling.tolist(),
            next(drifted) if has else None,
        )
        for text, voice, codes, letters, phones, spelling, has in zip(
            parts("text", saved["text_sizes"], np.uint8),
            saved["voices"],
            parts("codes", frames, np.int64),
            parts("letters", frames, np.float64),
            parts("phones", frames, np.int64),
            parts("spelling", saved["spelling_sizes"], np.int64),
            has_drifted,
            strict=True,
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    args = parser.parse_args()
    turns = read_corpus(args.work)
    save_turns(args.work / FILE, turns)
    hours = sum(len(turn.codes) for turn in turns) * HOP / SAMPLE_RATE / 3600
    print(f"{len(turns)} turns, {hours:.1f} h")


if __name__ == "__main__":
    main()
