"""What the tests of the distillation share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.helpers.models.checkpoints import SMALL
from training.distill import guidance

SCALES = (0.0, 1.0, 2.0)
DEFAULTS = replace(SMALL.defaults, cfg_scale=1.0, max_tokens=40, top_k=12)
PLAN = guidance.Plan(steps=40, lr=2e-3, positions=400)
TEXTS = [b"\x01 Hello there.", b"\x02 Rain, again, and no boat in sight.", b"\x01 Yes."]


def given_to(teacher: Path, folder: Path) -> tuple[Path, str]:
    """Where a command writes its student, and its arguments for two scripts."""
    scripts, out = folder / "scripts.txt", folder / "out"
    scripts.write_text("[S1] Hello there.\n\n[S2] Rain again.\n")
    return out, f"--teacher {teacher} --out {out} --text {scripts}"
