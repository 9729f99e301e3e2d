"""The tables of docs/listening.md, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dia_demo.services.listening.verdict import stats
from dia_demo.services.listening.verdict.planning import chances
from dia_demo.services.wording import plural

SCRIPTS_OF_TWO = (4, 6, 8, 10, 12, 16, 20)
# Seeds for each script, and the share of "no difference".
DESIGNS_OF_TWO = ((1, 0.0), (2, 0.0), (3, 0.0), (1, 0.3), (3, 0.3))
SCRIPTS_OF_A_ROUND, SETTINGS_OF_A_ROUND = (12, 20), (3, 4)
DESIGNS_OF_A_ROUND = ((1, 0.0), (3, 0.0), (1, 0.3), (3, 0.3))


def table_of_two() -> str:
    """Tests of two settings."""
    rows = [
        (str(scripts), *_needed_cells(scripts), *_found(scripts, 2, DESIGNS_OF_TWO))
        for scripts in SCRIPTS_OF_TWO
    ]
    heads = (
        "scripts",
        "scripts one side must win",
        "p",
        *_heads(DESIGNS_OF_TWO),
    )
    return _table(heads, rows)


def table_of_rounds() -> str:
    """Rounds of several settings."""
    rows = [
        (str(settings), str(scripts), *_found(scripts, settings, DESIGNS_OF_A_ROUND))
        for settings in SETTINGS_OF_A_ROUND
        for scripts in SCRIPTS_OF_A_ROUND
    ]
    return _table(("settings", "scripts", *_heads(DESIGNS_OF_A_ROUND)), rows)


def _needed_cells(scripts: int) -> tuple[str, str]:
    needed = stats.fewest_significant(scripts)
    if needed is None:
        return "none is enough", ""
    return str(needed), f"{stats.binomial_two_sided(needed, scripts):.3f}"


def _found(scripts: int, settings: int, designs: Sequence[tuple[int, float]]) -> Iterator[str]:
    for seeds, ties in designs:
        yield f"{chances(scripts, seeds, settings, ties).found:.0%}"


def _heads(designs: Sequence[tuple[int, float]]) -> Iterator[str]:
    for seeds, ties in designs:
        yield f"{plural(seeds, 'seed')}{f', {ties:.0%} ties' if ties else ''}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines).replace("|  |", "| |")
