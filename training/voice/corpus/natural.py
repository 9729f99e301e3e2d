"""English-like sentences drawn from an n-gram model, and strings of rarer words.

The model is pocketsphinx's general English trigram: it knows which everyday words follow which and
how often, so that training sees words about as often as people say them. A word is drawn among a
few hundred candidates by weight (sampling, importance, resampling): asking for all is too slow.
Nothing of the model is stored here. Not here: the hand-written grammar (grammar.py).
"""

from __future__ import annotations

import re
from bisect import bisect
from functools import lru_cache
from itertools import accumulate
from math import exp
from pathlib import Path
from random import Random

from training.voice.corpus.grammar import capital

DICTIONARY = Path("/usr/share/dict/words")
LOG_BASE = 1e-4  # pocketsphinx counts logarithms in units of ln(1.0001)
VOCABULARY = 7000  # words the sentences are made of
RARE_FROM, RARE_TO = 1500, 30000  # ranks of the words in strings of rarer ones
CANDIDATES = 180
FLATTER = 0.75  # candidates are drawn by frequency to this power
SHARPER = 1.15  # and chosen by the model's probability to this power
END = "</s>"
ABBREVIATIONS = frozenset("mr mrs ms st dr jr sr etc vs ft".split())
COARSE = re.compile("fuck|shit|cunt|nigg|bitch|whore|slut|rape|rapist|porn|cock|dick|pussy|asshole")
ASKING = frozenset(
    "do does did is are was were can could will would should have has what where when who why how "
    "which whose isn't aren't don't doesn't didn't can't couldn't won't wouldn't haven't".split()
)
OPENING = frozenset(
    "yes no well oh okay hey sorry hello hi anyway alright sure right please".split()
)
JOINING = frozenset("but so because and or if when then although while".split())


def pocketsphinx_model() -> Path:
    import pocketsphinx

    return Path(pocketsphinx.__file__).parent / "model" / "en-us"


def pronunciations_file() -> Path:
    return pocketsphinx_model() / "cmudict-en-us.dict"


@lru_cache
def spellings() -> dict[str, str]:
    """Lower-case word -> how wamerican writes it ("monday" -> "Monday"); lower case wins."""
    found: dict[str, str] = {}
    for word in DICTIONARY.read_text().split():
        if not re.fullmatch(r"[A-Za-z]?[a-z]+('[a-z]{1,2})?|[AI]", word):
            continue
        if word.lower() not in found or word.islower():
            found[word.lower()] = word
    found = {k: capital(v) if re.match("i('|$)", k) else v for k, v in found.items()}
    kept = (k for k in found if k not in ABBREVIATIONS and not COARSE.match(k))
    return {k: found[k] for k in kept if len(k) > 1 or k in "ai"}


@lru_cache
def _ngrams():
    import pocketsphinx

    return pocketsphinx.NGramModel.readfile(str(pocketsphinx_model() / "en-us.lm.bin"))


@lru_cache
def _ranked_words() -> list[str]:
    """Every word that model, pronunciations and wamerican know, most common first."""
    known = spellings()
    lexicon = {line.split()[0] for line in pronunciations_file().read_text().splitlines()}
    probability = _ngrams().prob
    return [
        w for _, w in sorted(((probability([w]), w) for w in lexicon & set(known)), reverse=True)
    ]


def ranked_words(count: int) -> list[str]:
    """The `count` most common lower-case English words, without names and contractions."""
    plain = (w for w in _ranked_words() if spellings()[w] == w and "'" not in w and w != "i")
    return [w for w, _ in zip(plain, range(count), strict=False)]


class Sentences:
    """Draws sentences without any of the words in `banned`."""

    def __init__(self, banned: frozenset[str]) -> None:
        self.words = [w for w in _ranked_words()[:VOCABULARY] if w not in banned]
        self.weights = [exp(_ngrams().prob([w]) * LOG_BASE * FLATTER) for w in self.words]
        self.totals = list(accumulate(self.weights))

    def _next(self, r: Random, before: list[str]) -> str:
        """The word after `before` (latest first), or END."""
        probability, last = _ngrams().prob, self.totals[-1]
        picks = [bisect(self.totals, r.random() * last) for _ in range(CANDIDATES)]
        weights = [
            exp(probability([self.words[k], *before]) * LOG_BASE * SHARPER) / self.weights[k]
            for k in picks
        ]
        end = exp(probability([END, *before]) * LOG_BASE * SHARPER)
        end *= CANDIDATES / last
        place = bisect(list(accumulate(weights)), r.random() * (sum(weights) + end))
        return END if place >= len(picks) else self.words[picks[place]]

    def _words(self, r: Random, least: int, most: int) -> list[str]:
        while True:
            said: list[str] = []
            while len(said) <= most:
                word = self._next(r, [*said[::-1][:2], *(["<s>"] if len(said) < 2 else [])])
                if word == END:
                    break
                said.append(word)
            if least <= len(said) <= most:
                return said

    def draw(self, r: Random, least: int = 2, most: int = 22) -> str:
        """One sentence with capitals and marks: commas where people often pause."""
        said = self._words(r, least, most)
        asks = said[0] in ASKING and r.random() < 0.85
        text = spellings()[said[0]]
        for before, word in zip(said, said[1:], strict=False):
            pause = 0.02
            if word in JOINING and len(said) > 5:
                pause = 0.3
            elif before in OPENING and word not in OPENING:
                pause = 0.5
            text += ("," if r.random() < pause else "") + " " + spellings()[word]
        return capital(text) + (
            "?" if asks or r.random() < 0.03 else "!" if r.random() < 0.1 else "."
        )


def with_rarer(text: str, r: Random, banned: frozenset[str]) -> str:
    """`text` with one of its longer words made a rarer one, as if somebody talked of it."""
    places = [m for m in re.finditer(r"(?<=[ (])[a-z]{4,}", text)]
    word = r.choice(ranked_words(RARE_TO)[RARE_FROM:])
    if not places or word in banned:
        return text
    place = r.choice(places)
    return text[: place.start()] + word + text[place.end() :]


def rare_string(r: Random, banned: frozenset[str]) -> str:
    """One to six rarer words, at times with a small word between them."""
    ranks = ranked_words(RARE_TO)
    said: list[str] = []
    for _ in range(r.choice([1, 2, 3, 4, 4, 5, 5, 6])):
        word = r.choice(ranks[RARE_FROM:])
        if word in banned:
            continue
        if said and r.random() < 0.3:
            said.append(r.choice("the a of and in to for with or is are was my his by on".split()))
        said.append(word)
    if not said:
        return rare_string(r, banned)
    if len(said) > 3 and r.random() < 0.4:
        k = r.randrange(1, len(said) - 1)
        said[k] += ","
    return capital(" ".join(said)) + r.choice(".....?!")
