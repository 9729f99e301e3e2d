"""What a student's takes lose against another checkpoint's: words, and whole dialogues.

Both say the same scripts with the same seeds, each at its own defaults, and a recogniser writes
down what it hears. The scripts were never trained on by the embedded voice. Needs pocketsphinx.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.errors import InputError
from dia_demo.families.resolve import resolve
from dia_demo.services.measurements import words
from dia_demo.task import result_of
from dia_demo.text.script import parse_turns
from training.voice.corpus import heldout
from training.voice.judge.asr import recognise_all
from training.voice.judge.trials import say

TOGETHER = 16  # rows of a batch
DRAWS = 10_000  # of the bootstrap
# A dialogue is whole if every turn has this share of its words, and nowhere are more words than
# this heard that nobody was to say: a sentence has at least six.
LEAST_OF_TURN, MOST_EXTRA = 0.5, 4


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
    engine = result_of(Engine.load(resolve(folder), runtime))
    engine.load_codec()
    if engine.info.codec.sample_rate != words.SAMPLE_RATE:
        raise InputError(
            f"The recogniser hears {words.SAMPLE_RATE} Hz, and {folder} speaks at "
            f"{engine.info.codec.sample_rate} Hz."
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


def is_whole(script: str, heard: str) -> bool:
    """Whether no turn of a script was dropped or said twice, as far as the words tell."""
    turns = [words.words(turn.text) for turn in parse_turns(script)]
    turn_of = [number for number, turn in enumerate(turns) for _ in turn]
    said = [word for turn in turns for word in turn]
    match = SequenceMatcher(None, said, words.words(heard), autojunk=False)
    found = Counter(
        turn_of[place]
        for block in match.get_matching_blocks()
        for place in range(block.a, block.a + block.size)
    )
    extra = max((last - first) - (b - a) for _, a, b, first, last in match.get_opcodes())
    return extra <= MOST_EXTRA and all(
        found[number] >= LEAST_OF_TURN * len(turn) for number, turn in enumerate(turns)
    )


def share_whole(scripts: Sequence[str], heard: Heard) -> float:
    """The share of dialogues that are whole and ended by themselves."""
    takes = zip(scripts, heard.texts, heard.ended, strict=True)
    return float(np.mean([ended and is_whole(script, text) for script, text, ended in takes]))
