"""Times of words against the teacher's, which knows when each phone is.

The teacher says the same turns in the same voices; its sound is laid on the take by dynamic time
warping, and with it the times of its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import combinations
from random import Random

import numpy as np

from dia_demo.services.measurements.words import words as words_of
from tools.voice_bars import scripts
from tools.voice_bars.bar import Bar, Line, Trial
from tools.voice_bars.studio import Studio

COUNT = 40
TURNS = 4
MEDIAN, MOST = 0.080, 0.250


@lru_cache(1)
def _tables(studio: Studio) -> dict[str, dict[str, int]]:
    from training.voice.corpus.shards import load_tables

    return load_tables(studio.work)


@lru_cache(10_000)
def _phones(word: str) -> tuple[str, ...]:
    from training.voice.corpus.lexicon import spoken_phones

    return tuple(spoken_phones([word])[0])


def word_spans(words: Sequence[str], phones: Sequence[str]) -> list[tuple[int, int]]:
    """The phones first to last, without the end, of each word of a sentence that has these phones:
    those of the words said one by one, as far as they agree."""
    alone = [(phone, number) for number, word in enumerate(words) for phone in _phones(word)]
    spoken = [k for k, phone in enumerate(phones) if phone != "pau"]
    matcher = SequenceMatcher(None, [p for p, _ in alone], [phones[k] for k in spoken], False)
    owner: dict[int, int] = {}
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            owner[spoken[block.b + offset]] = alone[block.a + offset][1]
    spans = []
    for number in range(len(words)):
        own = [k for k, of in owner.items() if of == number]
        spans.append((min(own), max(own) + 1) if own else (-1, -1))
    return spans


def teach(studio: Studio, text: str, voice: str) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """The teacher's sound of a turn, at 16 kHz, and the samples of each of its words; (-1, -1) for
    one whose phones are not known."""
    from training.voice.teacher.phones import HOP
    from training.voice.teacher.speech import speak
    from training.voice.teacher.voices import VOICES

    spoken = speak(text, VOICES[voice], _tables(studio)[VOICES[voice].source.flite])
    edges = HOP * np.cumsum([0, *spoken.frames])
    spans = word_spans(words_of(text), spoken.phones)
    return spoken.wave, [(int(edges[a]), int(edges[b])) if a >= 0 else (-1, -1) for a, b in spans]


def _trial(studio: Studio, number: int) -> Trial:
    from training.voice.judge.measures import turns as cut_like

    table = studio.request("[S1] Yes.", seed=0).model.config.voices
    assert table is not None, "only a model with voices by name has a teacher"
    pairs = [(a, b) for a, b in combinations(table.voices, 2) if table.are_apart(a, b)]
    one, two = (voice.name for voice in Random(number).choice(pairs))
    lines = [" ".join(line) for line in scripts.turns(100 + number, TURNS)]
    script = " ".join(f"[S{1 + k % 2}] {line}" for k, line in enumerate(lines))
    made = studio.speak(studio.request(script, seed=number, voices=(one, two)))
    waves, spans, start = [], [], 0
    for k, line in enumerate(lines):
        wave, its_spans = teach(studio, line, (one, two)[k % 2])
        waves.append(wave)
        spans += [(start + a, start + b) if a >= 0 else (-1, -1) for a, b in its_spans]
        start += len(wave)
    assert len(spans) == len(made.words), (len(spans), len(made.words))
    known = [k for k, (first, _) in enumerate(spans) if first >= 0]
    edges = [edge for k in known for edge in spans[k]]
    cut = cut_like(made.samples, np.split(np.concatenate(waves), edges))
    mapped = np.cumsum([len(piece) for piece in cut])[:-1] / made.sample_rate
    words = [made.words[k] for k in known]
    ends = mapped[1::2] - [word.end for word in words]
    starts = mapped[::2] - [word.start for word in words]
    return {
        "voices": [one, two],
        "starts": np.round(starts, 3).tolist(),
        "ends": np.round(ends, 3).tolist(),
        "words": [word.word for word in words],
    }


def _lines(trials: Sequence[Trial]) -> list[Line]:
    starts, ends = (
        np.abs(np.concatenate([trial[name] for trial in trials])) for name in ("starts", "ends")
    )
    both = np.concatenate([starts, ends])
    medians = [1000 * float(np.median(each)) for each in (both, starts, ends)]
    within = float((both <= MOST).mean())
    goal, of = f"{1000 * MEDIAN:.0f} ms", f"{len(starts):,} words of {len(trials)} dialogues"
    return [
        Line(
            f"times of words: median error ({of})", f"≤ {goal}", len(trials),
            "{:.0f} ms (starts {:.0f}, ends {:.0f})".format(*medians), medians[0] <= 1000 * MEDIAN,
        ),
        Line(
            "times of words: within 250 ms", "≥ 95%", len(trials), f"{within:.1%}", within >= 0.95
        ),
    ]  # fmt: skip


BARS = (
    Bar("times", COUNT, 1, _trial, _lines, modules=("pyworld", "librosa"), programs=("flite",)),
)
