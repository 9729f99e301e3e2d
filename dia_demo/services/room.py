"""The room that everybody's comparisons have together on this machine, and how more is made.

Only sound goes, never a plan, a vote or a result: the same plan makes the same sound again. What is
finished goes first, the longest unused before the others; what was used within the last hour stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import time

from dia_demo.errors import DiaDemoError, InputError
from dia_demo.services.compare import Comparison
from dia_demo.services.plan_file import NAME

IN_USE_SECONDS = 3600.0


def make_room(
    home: Path, limit: int, needed: int, open_folder: Callable[[Path], Comparison]
) -> list[Path]:
    """See to it that `needed` bytes more stay within `limit`; returns the folders that lost their
    sound. Raises InputError, and removes nothing, where even that would not be enough."""
    excess = _used(home) + needed - limit
    if excess <= 0:
        return []
    found, chosen = sorted(_candidates(home, open_folder), key=lambda one: one[:2]), []
    for *_, size, comparison in found:
        if excess <= 0:
            break
        chosen.append(comparison)
        excess -= size
    if excess > 0:
        raise InputError(
            f"This machine keeps {limit / 1e9:.1f} GB of comparisons, and there is no room for "
            f"{needed / 1e6:,.0f} MB more: delete one of yours, ask for fewer pairs, or try again "
            "in an hour. Whoever runs the program can raise it (DIA_KEPT_GB)."
        )
    return [one.folder for one in chosen if one.remove_sound()]


def _candidates(home: Path, open_folder) -> Iterator[tuple[bool, float, int, Comparison]]:
    """What may lose its sound: (unfinished, last used, bytes of sound, comparison)."""
    for plan in home.glob(f"*/comparisons/*/{NAME}"):
        try:
            comparison = open_folder(plan.parent)
            used, size = comparison.last_used(), comparison.sound_bytes()
        except (DiaDemoError, OSError):
            continue  # a damaged one: its owner deletes it
        if size and not comparison.running and time() - used > IN_USE_SECONDS:
            yield not comparison.open_book, used, size, comparison


def _used(home: Path) -> int:
    return sum(size_of(path) for path in home.glob("*/comparisons/**/*"))


def size_of(path: Path) -> int:
    """Bytes of a file; 0 for what is none, or gone since."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0
