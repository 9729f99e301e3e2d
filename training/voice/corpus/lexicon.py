"""How English words are said, without saying them: text and phones for the spelling loss alone.

Speech for every word of a dictionary would take days to train on; the text encoder needs only the
words and the teacher's phones for them, at a twentieth of the work. Lines of words drawn at random
from all that wamerican, pocketsphinx's dictionary and its language model know.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random

import numpy as np
import torch

from training.voice.corpus import heldout
from training.voice.corpus.grammar import capital
from training.voice.corpus.natural import ranked_words
from training.voice.teacher.phones import PHONES

WORDS = 40_000  # ranks; fewer exist
ASKED_AT_ONCE = 50
VOICE = "kal16"  # the fastest of flite's; all of them share one dictionary
FLATTER = 0.35  # a word is drawn by its rank to minus this power


def spoken_phones(words: list[str]) -> list[list[str]]:
    """flite's phones of every word, each said alone."""
    said = ". ".join(words) + "."
    command = ["flite", "-voice", VOICE, "-ps", "-t", said, "none"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: list[list[str]] = [[]]
    for phone in out.split():
        if phone == "pau":
            found.append([])
        else:
            found[-1].append(phone)
    return [one for one in found if one]


def load_lexicon(work: Path) -> dict[str, list[str]]:
    """Word -> phones, most common first, none of those that are measured; asked of flite once and
    kept in DIR."""
    path = work / "lexicon.json"
    if not path.exists():
        banned = frozenset(heldout.rare_words())
        words = [w for w in ranked_words(WORDS) if w not in banned]
        lexicon = {}
        for start in range(0, len(words), ASKED_AT_ONCE):
            part = words[start : start + ASKED_AT_ONCE]
            said = spoken_phones(part)
            if len(said) == len(part):
                lexicon |= dict(zip(part, said, strict=True))
        path.write_text(json.dumps(lexicon))
    return json.loads(path.read_text())


class Spellings:
    """An endless, seeded source of lines of words and their phones."""

    def __init__(self, lexicon: dict[str, list[str]], seed: int) -> None:
        self.random, self.words = Random(seed), list(lexicon)
        self.phones = [[PHONES.index(p) for p in lexicon[w]] for w in self.words]
        self.weights = np.cumsum(np.arange(1, len(self.words) + 1, dtype=float) ** -FLATTER)

    def line(self, words: int) -> tuple[bytes, list[int]]:
        """A tag and `words` words as a sentence, and its phones."""
        draws = [self.random.random() * self.weights[-1] for _ in range(words)]
        places = np.searchsorted(self.weights, draws).tolist()
        said = [self.words[k] for k in places]
        if words > 3 and self.random.random() < 0.4:
            said[self.random.randrange(1, words - 1)] += ","
        text = capital(" ".join(said)) + self.random.choice("....?!")
        phones = [p for k in places for p in self.phones[k]]
        return bytes([self.random.randrange(1, 3)]) + b" " + text.encode(), phones

    def batch(self, lines: int):
        """text [B, S], mask [B, S], phones [B, P] padded, their number [B]."""
        drawn = [self.line(self.random.randrange(3, 8)) for _ in range(lines)]
        text = np.zeros((lines, max(len(t) for t, _ in drawn)), np.int64)
        counts = np.array([len(phones) for _, phones in drawn])
        spelling = np.zeros((lines, counts.max()), np.int64)
        for k, (line, phones) in enumerate(drawn):
            text[k, : len(line)] = list(line)
            spelling[k, : len(phones)] = phones
        arrays = (text, text != 0, spelling, counts)
        return tuple(torch.from_numpy(x) for x in arrays)
