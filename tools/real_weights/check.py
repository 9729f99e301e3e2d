"""What the check of the real weights was asked for, and what it knows so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Check:
    """What was asked for. limits: options of `say` that bound a take."""

    work: Path
    model: str
    precisions: Sequence[str]
    dialogues: Sequence[str]
    frames: int
    limits: Sequence[str]


@dataclass
class Outcome:
    """What is known so far. takes: the figures of each precision's takes."""

    takes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    codes: str = "The first codes were not compared."
