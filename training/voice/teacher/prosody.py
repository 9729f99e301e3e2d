"""How the teacher times and intones a line: pauses, breaths, phone durations, pitch, laughter.

All of it follows from the text and the source's own speech, in few distinct levels, so that a small
model can learn it. flite's pitch falls at the end of every sentence, so a question that asks for
yes or no is made to rise from its last full vowel.

Not here: sound (vocoder.py).
"""

from __future__ import annotations

import re

from training.voice.teacher.phones import PAUSE, VOWELS

PAUSE_EDGE = 6  # frames of silence at both ends, 144 ms
PAUSE_COMMA, PAUSE_STOP = 7, 11  # inside: after a comma (and the like), after a sentence
SHORT, LONG = 0.72, 1.3  # times a phone's mean duration: the limits of its middle length
STRETCH = 1.4  # how much longer a long phone is
UNKNOWN_FRAMES = 4  # of a phone without a mean

WEAK = {"ax": 0, "er": 1, "ih": 2, "iy": 2}  # vowels often without stress, the weakest first
CLAUSE = re.compile(r"([^,.?!;:]*[A-Za-z0-9][^,.?!;:]*)([,.?!;:]*)")
ASKS_WHAT = re.compile(
    r"\W*((and|but|so|or|then|well) )?(who|what|when|where|why|how|which|whose)\b", re.I
)
LAUGHTER = re.compile(r"\W*(ha\W*)+", re.I)
# laughter, syllable after syllable: semitones and loudness; frames of its phones (5 "ha" a second)
LAUGH_TONES = (6, 5, 3, 1, -1)
LAUGH_LOUDNESS = (1.0, 0.95, 0.8, 0.65, 0.5)
LAUGH_FRAMES = 4
BREATH_AFTER = 25  # phones, about 2.5 s: the next pause has a breath
RISE_VOWEL, RISE_END = 3, 5  # semitones of a question's last full vowel, and of what follows it
RANGE = 6  # semitones: the melody goes no farther from its middle


def clauses(text: str) -> list[tuple[str, str]]:
    """(words, the marks after them) of every part that the teacher may pause after."""
    return CLAUSE.findall(text)


def stretches(phones: list[str]) -> list[list[int]]:
    """Indices of phones between pauses."""
    out: list[list[int]] = [[]]
    for i, phone in enumerate(phones):
        if phone == PAUSE:
            out.append([])
        else:
            out[-1].append(i)
    return [s for s in out if s]


def frames(
    phones: list[str], durations: list[float], table: dict[str, int], text: str
) -> list[int]:
    """Frames of every phone: its mean in `table`, less or more where the source's durations are."""
    last = len(phones) - 1
    inside = [i for i, p in enumerate(phones) if p == PAUSE and 0 < i < last]
    marks = [m for _, m in clauses(text)][:-1]
    if len(marks) != len(inside):  # a mark without pause, or a pause without mark
        marks = [","] * len(inside)
    pauses = {
        i: PAUSE_STOP if set(m) & set(".?!") else PAUSE_COMMA
        for i, m in zip(inside, marks, strict=True)
    }
    out = [
        pauses.get(i, PAUSE_EDGE) if p == PAUSE else _length(table.get(p, UNKNOWN_FRAMES), n)
        for i, (p, n) in enumerate(zip(phones, durations, strict=True))
    ]
    for i in laughter(phones, text):
        out[i] = LAUGH_FRAMES
    return out


def _length(mean: int, duration: float) -> int:
    if duration > LONG * mean:
        return max(mean + 1, round(mean * STRETCH))
    return mean - 1 if duration < SHORT * mean and mean > 3 else mean


def _tail(phones: list[str], stretch: list[int]) -> int:
    """Where the melody of a stretch turns: its last vowel, or a stronger one before."""
    nuclei = [i for i in stretch if phones[i] in VOWELS]
    if not nuclei:
        return stretch[-1]
    return max(nuclei[-2:], key=lambda i: (WEAK.get(phones[i], len(WEAK)), i))


def _asks_yes_or_no(words: str, marks: str, sentence: str) -> bool:
    return "?" in marks and not (ASKS_WHAT.match(words) or ASKS_WHAT.match(sentence))


def _stretches_with_words(phones: list[str], text: str) -> list[tuple[list[int], str, str]]:
    """The stretches of phones with the words that they speak and the marks after these."""
    spoken, written = stretches(phones), clauses(text)
    if len(written) != len(spoken):  # only the end is certain
        spoken, written = spoken[-1:], written[-1:]
    return [(each, *clause) for each, clause in zip(spoken, written, strict=False)]


def laughter(phones: list[str], text: str) -> dict[int, int]:
    """The phones that are laughter, and which "ha" each belongs to."""
    out = {}
    for stretch, words, _ in _stretches_with_words(phones, text):
        if LAUGHTER.fullmatch(words):
            syllable = -1
            for i in stretch:
                syllable += phones[i] == "hh"
                out[i] = min(max(syllable, 0), len(LAUGH_TONES) - 1)
    return out


def loudness(phones: list[str], text: str) -> list[float]:
    """Of every phone, 0 in a pause and 1 in speech; laughter dies away."""
    out = [float(phone != PAUSE) for phone in phones]
    for i, syllable in laughter(phones, text).items():
        out[i] = LAUGH_LOUDNESS[syllable]
    return out


def breaths(phones: list[str], text: str) -> list[int]:
    """The pauses with a breath in them: inside a line, after BREATH_AFTER phones or a laugh."""
    laughing, out, spoken = laughter(phones, text), [], 0
    for i, phone in enumerate(phones[:-1]):
        if phone != PAUSE:
            spoken += 1
        elif i and (spoken >= BREATH_AFTER or i - 1 in laughing):
            out.append(i)
            spoken = 0
    return out


def tones(phones: list[str], pitch: list[float], text: str) -> list[int]:
    """The semitones of every phone from the middle of its voice; `pitch` has the source's."""
    levels = [min(max(round(x), -RANGE), RANGE) for x in pitch]
    sentence = ""
    for stretch, words, marks in _stretches_with_words(phones, text):
        sentence = sentence or words
        if _asks_yes_or_no(words, marks, sentence):
            turn = _tail(phones, stretch)
            for i in stretch:
                if i >= turn:
                    levels[i] = RISE_VOWEL if i == turn else RISE_END
        if set(marks) & set(".?!"):
            sentence = ""
    for i, syllable in laughter(phones, text).items():
        levels[i] = LAUGH_TONES[syllable]
    return levels
