"""Compares Dia2 here with nari-labs/dia2's own code, on random small checkpoints.

    git clone https://github.com/nari-labs/dia2 CHECKOUT
    python -m tools.compare_dia2 CHECKOUT

Codes, actions, text tokens, word times and cuts have to be equal: greedy and with the same
uniforms, with guidance and without, with breaks, with prompts of one and two speakers, up to the
end of the script and up to the end of the context. Both models of this program are compared, in
float32: torch's modules, and the compiled parts that users run, which need numba. Here all takes of
a checkpoint are generated together, there one by one. Nothing of the checkout is changed; it needs
transformers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from tools.compare_dia2.cases import CONFIGS, comparisons
from tools.compare_dia2.make_random_dia2 import write_checkpoint
from tools.compare_dia2.ours import COMPILED, Ours
from tools.compare_dia2.upstream import Made, Upstream

TOKENS = "tokenizer"


def differences(ours: Made, theirs: Made) -> list[str]:
    """What is not equal."""
    found = []
    if ours.actions != theirs.actions:
        pairs = zip(ours.actions, theirs.actions, strict=False)
        first = next((f"step {step}" for step, (a, b) in enumerate(pairs) if a != b), "the end")
        found.append(f"actions and text from {first}")
    if ours.codes.shape != theirs.codes.shape:
        found.append(f"cut or end: {len(ours.codes)} frames, not {len(theirs.codes)}")
    elif not np.array_equal(ours.codes, theirs.codes):
        frame = int(np.argwhere((ours.codes != theirs.codes).any(axis=1))[0, 0])
        found.append(f"codes from frame {frame}")
    if ours.words != theirs.words:
        found.append("words or their times")
    return found


def compare_checkpoint(name: str, folder: Path, checkout: Path) -> tuple[Counter, Counter]:
    """Prints one line a generation, with a word for each model of ours; how many were compared and
    how many of them differ, by model."""
    ours, upstream = Ours(folder), Upstream(checkout, folder)
    todo, compared, differ = list(comparisons(ours.config)), Counter[str](), Counter[str]()
    for text in ("[S1] Hello there,", "[S2] it's", "émigré", "word"):
        compared[TOKENS] += 1
        if ours.tokenizer.encode(text) != upstream.encode(text):
            print(f"{name}: tokens of {text!r} differ")
            differ[TOKENS] += 1
    made = ours.make(todo)
    for number, comparison in enumerate(todo):
        theirs = upstream.make(comparison, ours.uniforms(comparison.params.seed))
        found = {model: differences(mine[number], theirs) for model, mine in made.items()}
        size = f"{len(theirs.actions)} steps, {len(theirs.codes)} frames, {len(theirs.words)} words"
        each = "; ".join(f"{model}: {', '.join(its) or 'equal'}" for model, its in found.items())
        print(f"{name}: {comparison.name}: {size}: {each}", flush=True)
        compared.update(found.keys())
        differ.update(model for model, its in found.items() if its)
    return compared, differ


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="a checkout of nari-labs/dia2")
    options = parser.parse_args()
    torch.set_num_threads(1)  # For matrices this small, others only wait.
    compared, differ = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        for seed, (name, config) in enumerate(CONFIGS.items()):
            folder = write_checkpoint(Path(scratch) / str(seed), config, seed)
            its_compared, its_different = compare_checkpoint(name, folder, options.checkout)
            compared, differ = compared + its_compared, differ + its_different
    for what, count in compared.items():
        print(f"{what}: {count - differ[what]} of {count} equal")
    if COMPILED not in compared:
        print(f"{COMPILED}: not compared, because numba is not installed or does not work here")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
