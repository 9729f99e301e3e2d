"""Turns to train on: grammar sentences, random word strings and short replies.

The frequency list is derived at run time from installed packages (the unigrams of pocketsphinx's
language model, kept where Debian's wamerican knows the word); nothing of it is stored here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from random import Random

from tools.voice import words
from tools.voice.grammar import capital, reply, sentence

DICTIONARY = Path("/usr/share/dict/words")
VOCABULARY = 2500  # commonest words used in random strings
TURN_LIMIT = 100  # characters
ABBREVIATIONS = frozenset("mr mrs ms st dr jr sr etc vs ft".split())


def _pocketsphinx_model() -> Path:
    import pocketsphinx

    return Path(pocketsphinx.__file__).parent / "model" / "en-us"


@lru_cache
def ranked_words(count: int = VOCABULARY) -> list[str]:
    """The commonest `count` English words that both packages know, commonest first."""
    import pocketsphinx

    known = {w for w in DICTIONARY.read_text().split() if re.fullmatch(r"[a-z]{2,}|a", w)}
    known -= ABBREVIATIONS
    model = pocketsphinx.NGramModel.readfile(str(_pocketsphinx_model() / "en-us.lm.bin"))
    lexicon = {line.split()[0] for line in pronunciations_file().read_text().splitlines()}
    scored = sorted(((model.prob([w]), w) for w in lexicon & known), reverse=True)
    return [w for _, w in scored[:count]]


def pronunciations_file() -> Path:
    return _pocketsphinx_model() / "cmudict-en-us.dict"


@lru_cache
def own_words() -> list[str]:
    """Every word of our own lists."""
    found: set[str] = set()
    for value in vars(words).values():
        if isinstance(value, list):
            for entry in value:
                for piece in entry if isinstance(entry, tuple) else (entry,):
                    found.update(piece.split())
    return sorted(found)


def _random_word(r: Random) -> str:
    """Common words more often, but every word of the list often enough to be learnt."""
    k = r.random()
    if k < 0.12:
        return r.choice(words.CONTRACTIONS)
    if k < 0.35:
        return r.choice(own_words())
    ranked = ranked_words()
    return ranked[int(len(ranked) * r.random() ** 1.4)]


def random_string(r: Random) -> str:
    """One to nine random words, at times a comma."""
    chosen = [_random_word(r) for _ in range(r.choice([1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 9]))]
    if len(chosen) > 3 and r.random() < 0.4:
        chosen[r.randrange(1, len(chosen) - 1)] += ","
    end = r.choice(".?!") if r.random() < 0.35 else "."
    return capital(" ".join(chosen)) + end


def turn(r: Random) -> str:
    """What one speaker says at a stretch, at most TURN_LIMIT characters."""
    while True:
        k = r.random()
        if k < 0.42:
            text = sentence(r)
        elif k < 0.52:
            text = f"{sentence(r)} {reply(r) if r.random() < 0.4 else sentence(r)}"
        elif k < 0.63:
            text = reply(r)
        else:
            text = random_string(r)
        if r.random() < 0.02:
            text = text.rstrip(".")
        if len(text) <= TURN_LIMIT:
            return text


def corpus(count: int, seed: int, banned: frozenset[str] = frozenset()) -> list[str]:
    """`count` turns, none of them in `banned`."""
    r, out = Random(seed), []
    while len(out) < count:
        text = turn(r)
        if text not in banned:
            out.append(text)
    return out
