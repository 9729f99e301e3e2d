"""Turns to train on: English-like sentences, grammar sentences, word strings and short replies.

Word frequencies come from installed packages at run time (natural.py); nothing of them is stored.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

from training.voice.corpus import words
from training.voice.corpus.grammar import capital, reply, sentence
from training.voice.corpus.natural import Sentences, ranked_words, rare_string, with_rarer

COMMON = 2500  # words in strings of common ones
RARER = 0.4  # of the drawn sentences, those that get a rarer word
ASKED = 0.12  # of statements, those that become questions by their mark alone
TURN_LIMIT, LONG_LIMIT = 110, 240  # characters
LAUGH, LAUGH_SPOKEN = "(laughs)", "ha ha ha ha ha."
FIGURES = (
    "I have {}.|There are {} of them.|It costs {} dollars.|She is {} years old.|Call me at {}.|"
    "It was in {}.|Take number {}.|We need {} more.|{}, {}, {}.|That was {} days ago.|Page {}."
).split("|")


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


def _common_word(r: Random) -> str:
    """Common words more often, but every word of the list often enough to be learnt."""
    k = r.random()
    if k < 0.12:
        return r.choice(words.CONTRACTIONS)
    if k < 0.35:
        return r.choice(own_words())
    ranked = ranked_words(COMMON)
    return ranked[int(len(ranked) * r.random() ** 1.4)]


def common_string(r: Random) -> str:
    """One to nine common words in any order, at times a comma."""
    chosen = [_common_word(r) for _ in range(r.choice([1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 9]))]
    if len(chosen) > 3 and r.random() < 0.4:
        chosen[r.randrange(1, len(chosen) - 1)] += ","
    end = r.choice(".?!") if r.random() < 0.35 else "."
    return capital(" ".join(chosen)) + end


def figures(r: Random) -> str:
    """A sentence with a number in digits."""
    form = r.choice(FIGURES)
    return form.format(
        *(r.choice([r.randrange(10), r.randrange(100), r.randrange(2100)]) for _ in "123")
    )


class Writer:
    """Draws turns that hold none of `banned_words` and are none of `banned`."""

    def __init__(self, banned: frozenset[str], banned_words: frozenset[str]) -> None:
        self.banned, self.banned_words = banned, banned_words
        self.sentences = Sentences(banned_words)

    def _sentence(self, r: Random) -> str:
        said = self._statement(r)
        return said[:-1] + "?" if said.endswith(".") and r.random() < ASKED else said

    def _statement(self, r: Random) -> str:
        k = r.random()
        if k < 0.45:
            drawn = self.sentences.draw(r)
            return with_rarer(drawn, r, self.banned_words) if r.random() < RARER else drawn
        if k < 0.60:
            return sentence(r)
        if k < 0.66:
            return reply(r)
        if k < 0.73:
            return common_string(r)
        return rare_string(r, self.banned_words) if k < 0.98 else figures(r)

    def turn(self, r: Random) -> str:
        """What one speaker says at a stretch: mostly a sentence, at times up to LONG_LIMIT."""
        while True:
            k = r.random()
            count = 1 if k < 0.72 else 2 if k < 0.88 else r.randrange(3, 8)
            parts = [self._sentence(r) for _ in range(count)]
            if r.random() < 0.03:
                parts.insert(r.randrange(len(parts) + 1), LAUGH)
            text = " ".join(parts)
            if r.random() < 0.02:
                text = text.rstrip(".")
            if r.random() < 0.02:
                text = text.lower()
            if len(text) <= (TURN_LIMIT if count <= 2 else LONG_LIMIT) and self.allows(text):
                return text

    def allows(self, text: str) -> bool:
        return text not in self.banned and not self.banned_words & set(plain(text))


def plain(text: str) -> list[str]:
    """The words of a text in lower case."""
    return "".join(c if c.isalpha() or c == "'" else " " for c in text.lower()).split()


def corpus(count: int, seed: int, banned=frozenset(), banned_words=frozenset()) -> list[str]:
    """`count` turns, none of them in `banned`, none with a word of `banned_words`."""
    r, writer = Random(seed), Writer(banned, banned_words)
    return [writer.turn(r) for _ in range(count)]
