"""The first codes beside those of transformers on the same weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dia_demo.checkpoint_config import read_model_config
from dia_demo.checkpoint_files import fingerprint
from dia_demo.files import write_atomic
from tools.real_weights.check import Check, Outcome
from tools.real_weights.takes import python, say
from tools.transformers_codes import CFG_SCALE, TOP_K, max_tokens_for


def compare_codes(check: Check, folder: Path, outcome: Outcome) -> None:
    """Greedy in float32: ours beside those of transformers, each in a process of its own.

    Those that an earlier run made, of the same weights and as many frames, are used again.
    """
    home = check.work / "codes"
    home.mkdir(parents=True, exist_ok=True)
    script, most = check.dialogues[0], max_tokens_for(read_model_config(folder), check.frames)
    name = f"{fingerprint(folder)}-{check.frames}"
    ours, theirs = home / f"{name}-ours.npy", home / f"{name}-transformers.npy"
    try:
        if not theirs.is_file():
            with write_atomic(theirs) as part:
                arguments = (folder, script, "-o", part, "--frames", check.frames)
                python("-m", "tools.transformers_codes", *arguments)
        if not ours.is_file():
            greedy = ("--temperature", 0, "--cfg-scale", CFG_SCALE, "--top-k", TOP_K)
            part = home / "unfinished.npy"  # Whatever is in it, nothing reads it.
            limits = ("--precision", "float32", "--max-tokens", most)
            say(check, script, *greedy, *limits, "--codes", part)
            part.replace(ours)
    except RuntimeError as error:
        outcome.failures.append(f"first codes: {error}")
        return
    outcome.codes, are_equal = describe_difference(np.load(ours), np.load(theirs))
    if not are_equal:
        outcome.failures.append(outcome.codes)


def describe_difference(ours: np.ndarray, theirs: np.ndarray) -> tuple[str, bool]:
    """The comparison in words, and whether all codes are equal."""
    frames = min(len(ours), len(theirs))
    differing = np.argwhere(ours[:frames] != theirs[:frames])
    what = "Greedy codes in float32 against transformers on the same weights"
    if len(ours) != len(theirs) and not len(differing):
        return f"{what}: ours end after {len(ours)} frames, theirs after {len(theirs)}.", False
    if not len(differing):
        return f"{what}: all of {frames} frames equal in {ours.shape[1]} channels.", True
    frame, channel = differing[0]
    share = 1 - len(differing) / ours[:frames].size
    return (
        f"{what}: equal up to frame {frame}, where channel {channel} differs; {share:.1%} of "
        f"{frames} frames in all. Rounding may choose another of two codes that are equally "
        "likely; after that everything differs.",
        False,
    )
