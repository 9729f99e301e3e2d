"""How the teacher times and intones a line: pauses, lengths of phones, steps of pitch.

All of it follows from the text and flite's own durations, in few distinct levels, so that a small
model can learn it. The pitch moves by one pulse a frame: down from the last full vowel of what
ends in a stop, up from there in a question that asks for yes or no.

Not here: sound (speech.py).
"""

from __future__ import annotations

import re

PAUSE_EDGE = 2  # frames of silence at both ends
PAUSE_COMMA, PAUSE_STOP = 5, 9  # inside: after a comma (and the like), after a sentence
SHORT, LONG = 0.72, 1.3  # of a phone's mean duration: below and above it is said so
STRETCH = 1.4  # how much longer a long phone is
UNKNOWN_FRAMES = 4  # of a phone without a mean

VOWELS = frozenset("aa ae ah ao aw ax ay eh er ey ih iy ow oy uh uw".split())
WEAK = {"ax": 0, "er": 1, "ih": 2, "iy": 2}  # vowels often without stress, the weakest first
CLAUSE = re.compile(r"([^,.?!;:]*[A-Za-z0-9][^,.?!;:]*)([,.?!;:]*)")
ASKS_WHAT = re.compile(
    r"\W*((and|but|so|or|then|well) )?(who|what|when|where|why|how|which|whose)\b", re.I
)
LAUGHTER = re.compile(r"\W*(ha\W*)+", re.I)
LAUGH_STEPS = (1, 1, 0, 0, -1)


def clauses(text: str) -> list[tuple[str, str]]:
    """(words, the marks after them) of every part that the teacher may pause after."""
    return CLAUSE.findall(text)


def stretches(phones: list[str]) -> list[list[int]]:
    """Indices of phones between pauses."""
    out: list[list[int]] = [[]]
    for i, phone in enumerate(phones):
        if phone == "pau":
            out.append([])
        else:
            out[-1].append(i)
    return [s for s in out if s]


def frames(phones: list[str], said: list[float], table: dict[str, int], text: str) -> list[int]:
    """Frames of every phone: its mean in `table`, less or more where flite's (`said`) are."""
    last = len(phones) - 1
    inside = [i for i, p in enumerate(phones) if p == "pau" and 0 < i < last]
    marks = [m for _, m in clauses(text)][:-1]
    if len(marks) != len(inside):  # a mark without pause, or a pause without mark
        marks = [","] * len(inside)
    pauses = {
        i: PAUSE_STOP if set(m) & set(".?!") else PAUSE_COMMA
        for i, m in zip(inside, marks, strict=True)
    }
    return [
        pauses.get(i, PAUSE_EDGE) if p == "pau" else _length(table.get(p, UNKNOWN_FRAMES), n)
        for i, (p, n) in enumerate(zip(phones, said, strict=True))
    ]


def _length(mean: int, said: float) -> int:
    if said > LONG * mean:
        return max(mean + 1, round(mean * STRETCH))
    return mean - 1 if said < SHORT * mean and mean > 3 else mean


def _tail(phones: list[str], stretch: list[int]) -> int:
    """Where the melody of a stretch turns: its last vowel, or a stronger one before."""
    nuclei = [i for i in stretch if phones[i] in VOWELS]
    if not nuclei:
        return stretch[-1]
    return max(nuclei[-2:], key=lambda i: (WEAK.get(phones[i], len(WEAK)), i))


def _direction(words: str, marks: str, sentence: str) -> int:
    if "?" in marks:
        return -1 if ASKS_WHAT.match(words) or ASKS_WHAT.match(sentence) else 1
    return -1 if set(marks) & set(".!;:") or not marks else 0


def steps(phones: list[str], text: str) -> list[int]:
    """For every phone how many pulses a frame it has more (+1) or fewer (-1) than its voice."""
    found, out = stretches(phones), [0] * len(phones)
    parts = clauses(text)
    if len(parts) != len(found):  # only the end is sure
        found, parts = found[-1:], parts[-1:]
    sentence = ""
    for stretch, (words, marks) in zip(found, parts, strict=False):
        sentence = sentence or words
        if LAUGHTER.fullmatch(words):
            _laugh(out, phones, stretch)
        else:
            turn, step = _tail(phones, stretch), _direction(words, marks, sentence)
            for i in stretch:
                out[i] = step if i >= turn else 0
        if set(marks) & set(".?!"):
            sentence = ""
    return out


def _laugh(out: list[int], phones: list[str], stretch: list[int]) -> None:
    """Down from high, a step for each "ha"."""
    said = -1
    for i in stretch:
        said += phones[i] == "hh"
        out[i] = LAUGH_STEPS[min(max(said, 0), len(LAUGH_STEPS) - 1)]
