"""The disk space of all comparisons together, and what is removed when the limit is reached.

Audio is removed first, because its plan generates the same audio again: of finished comparisons
before the rest, and of the least recently used ones first. If that is not enough, comparisons
without votes are deleted, and then the voice prompts of the others, so that nobody can fill the
space permanently. Whatever was used within the last hour is kept, and so are the plan, votes and
result of a comparison with votes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import time

from dia_demo.errors import DiaDemoError, InputError
from dia_demo.files import bytes_in, size_of
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan_file import NAME

IN_USE_SECONDS = 3600.0


@dataclass(frozen=True)
class _Step:
    """Something that may be removed. rank: its order. size: the bytes that it frees."""

    rank: tuple[int, float]
    size: int
    comparison: Comparison
    remove: Callable[[Comparison], bool]


def enforce_quota(
    home: Path,
    limit: int,
    needed: int,
    open_folder: Callable[[Path], Comparison],
    remove: Callable[[Comparison], bool],
) -> list[Path]:
    """Make room for `needed` more bytes within `limit`; returns the folders that lost something.

    remove: deletes a whole comparison. Raises InputError, and removes nothing, if even that would
    not be enough.
    """
    excess = _used_bytes(home) + needed - limit
    if excess <= 0:
        return []
    chosen = []
    for step in sorted(_steps(home, open_folder, remove), key=lambda candidate: candidate.rank):
        if excess <= 0:
            break
        chosen.append(step)
        excess -= step.size
    if excess > 0:
        raise InputError(
            f"Comparisons may use {limit / 1e9:.1f} GB on this machine, and there is no room for "
            f"{needed / 1e6:,.0f} MB more. Delete one of yours, choose fewer pairs, or try again "
            "in an hour. The administrator can raise the limit (DIA_KEPT_GB)."
        )
    return [step.comparison.folder for step in chosen if step.remove(step.comparison)]


def _steps(home: Path, open_folder, remove: Callable[[Comparison], bool]) -> Iterator[_Step]:
    """What may be removed: whatever was not used within the last hour."""
    for plan in home.glob(f"*/comparisons/*/{NAME}"):
        try:
            comparison = open_folder(plan.parent)
            used, sound = comparison.last_used(), comparison.sound_bytes()
            votes = comparison.votes
        except (DiaDemoError, OSError):
            continue  # a damaged one: its owner deletes it
        if comparison.running or time() - used <= IN_USE_SECONDS:
            continue
        if sound:
            first = 0 if comparison.is_unblinded else 1
            if comparison.plan.is_uploaded:
                first = 4  # last: nothing can generate it
            yield _Step((first, used), sound, comparison, Comparison.remove_sound)
        voice = comparison.plan.voice_file
        if not votes:
            yield _Step((2, used), bytes_in(comparison.folder) - sound, comparison, remove)
        elif voice is not None and (size := size_of(comparison.folder / voice)):
            yield _Step((3, used), size, comparison, _remove_voice)


def _remove_voice(comparison: Comparison) -> bool:
    return comparison.remove_sound(and_voice=True)


def _used_bytes(home: Path) -> int:
    kinds = ("comparisons", "panels")
    return sum(bytes_in(folder) for kind in kinds for folder in home.glob(f"*/{kind}"))
