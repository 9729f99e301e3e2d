"""Scripts for a teacher to speak: drawn from the text grammar, or the lines of a text file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from dia_demo.errors import InputError
from dia_demo.text.script import encode_script

# Turns in a script and how often. Half are dialogues: leaving out a turn or saying it twice is the
# most frequent mistake of students that predict several frames a step.
TURNS = ((1, 0.30), (2, 0.20), (4, 0.15), (6, 0.35))
LONGEST_TURN = 75  # Bytes, in a script of more than two turns, so that six of them fit.
# How often a turn has the same speaker as the one before, and a script a bare tag at its end.
SAME_SPEAKER, BARE_TAG = 0.15, 0.25


def draw_scripts(seed: int, longest: int) -> Iterator[bytes]:
    """Scripts of one to six turns, of at most `longest` bytes, from the embedded voice's grammar;
    none of them has a sentence or a word that its evaluation measures with."""
    from training.voice.corpus import heldout
    from training.voice.corpus.text import Writer

    random, writer = (
        Random(seed),
        Writer(heldout.banned_sentences(), frozenset(heldout.rare_words())),
    )
    while True:
        count = random.choices(*zip(*TURNS, strict=True))[0]
        speaker, parts = random.choice((1, 2)), []
        for _ in range(count):
            turn = writer.turn(random)
            while count > 2 and len(turn.encode()) > LONGEST_TURN:
                turn = writer.turn(random)
            parts.append(f"[S{speaker}] {turn}")
            if random.random() >= SAME_SPEAKER:
                speaker = 3 - speaker
        if random.random() < BARE_TAG:
            parts.append(f"[S{speaker}]")
        script = encode_script(" ".join(parts))
        if len(script) <= longest:
            yield script


def from_file(path: Path, seed: int, longest: int) -> Iterator[bytes]:
    """The lines of a text file, in an order that the seed decides, again and again."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    scripts = [encode_script(line) for line in lines if line]
    scripts = [script for script in scripts if len(script) <= longest]
    if not scripts:
        raise InputError(f"{path} has no line of at most {longest} bytes.")
    random = Random(seed)
    while True:
        yield from random.sample(scripts, len(scripts))
