"""What a student's takes lose against another checkpoint's: words, and whole dialogues.

Both say the same scripts with the same seeds, each at its own defaults, and a recogniser writes
down what it hears. The scripts were never trained on by the embedded voice. Needs pocketsphinx.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.errors import InputError
from dia_demo.services.bench import words
from dia_demo.task import result_of
from tools.voice.corpus import heldout
from tools.voice.judge.asr import recognise_all
from tools.voice.judge.trials import is_whole, say

TOGETHER = 16  # rows of a batch
DRAWS = 10_000  # of the bootstrap


@dataclass(frozen=True)
class Heard:
    """What was recognised in each take, and which takes ended by themselves."""

    texts: list[str]
    ended: list[bool]


@dataclass(frozen=True)
class Difference:
    """Word errors of two checkpoints on the same scripts, and the 95% interval of the second's
    minus the first's (bootstrap over scripts)."""

    takes: int
    before: float
    after: float
    low: float
    high: float


def sentences(count: int) -> list[str]:
    """Scripts of one sentence; the speakers take turns."""
    known = heldout.NATURAL
    if count > 2 * len(known):
        raise InputError(f"There are {2 * len(known)} sentences to judge, not {count}.")
    scripts = [f"[S{speaker}] {text}" for text in known for speaker in (1, 2)]
    return scripts[:count]


def listen(folder: str, scripts: Sequence[str], precision: str, threads: int) -> Heard:
    """Takes of the scripts by the checkpoint in `folder`, recognised."""
    runtime = RuntimeConfig(model=folder, precision=precision, threads=threads)
    engine = result_of(Engine.load(runtime))
    engine.load_codec()
    if engine.format.sample_rate != words.SAMPLE_RATE:
        raise InputError(
            f"The recogniser hears {words.SAMPLE_RATE} Hz, and {folder} speaks at "
            f"{engine.format.sample_rate} Hz."
        )
    takes = say(engine, scripts, engine.config.defaults, TOGETHER)
    texts = recognise_all([take.wave for take in takes], threads)
    return Heard(texts, [take.ended for take in takes])


def compare(scripts: Sequence[str], before: Sequence[str], after: Sequence[str]) -> Difference:
    """`before` and `after`: what was recognised in the takes of two checkpoints."""
    said = [words.words(script) for script in scripts]
    lengths = np.array([len(each) for each in said])
    wrong = np.array(
        [
            [words.distance(a, words.words(b)) for a, b in zip(said, heard, strict=True)]
            for heard in (before, after)
        ]
    )
    drawn = np.random.default_rng(0).integers(0, len(said), (DRAWS, len(said)))
    differences = (wrong[1] - wrong[0])[drawn].sum(1) / lengths[drawn].sum(1)
    low, high = np.quantile(differences, (0.025, 0.975))
    first, second = wrong.sum(1) / lengths.sum()
    return Difference(len(said), float(first), float(second), float(low), float(high))


def share_whole(scripts: Sequence[str], heard: Heard) -> float:
    """The share of dialogues that are whole and ended by themselves."""
    takes = zip(scripts, heard.texts, heard.ended, strict=True)
    return float(np.mean([ended and is_whole(script, text) for script, text, ended in takes]))
