"""What a comparison can and cannot show, before any take is made. Its result is in `result`."""

from __future__ import annotations

from collections.abc import Sequence

from dia_demo import stats
from dia_demo.services.listening.plan import ComparisonKind, Setting, differences

# Whichever side is ahead on each of them, fewer scripts cannot differ from chance.
FEWEST_SCRIPTS = 6


def abx_warning(kind: str, settings: Sequence[Setting]) -> str | None:
    """What to know before an ABX test whose takes differ by chance; None where they do not.

    They do not where the settings differ in speed alone, which leaves the codes as they are, or
    where no side samples.
    """
    unsampled = all(setting.params.temperature == 0 for setting in settings)
    if kind != ComparisonKind.ABX or unsampled or not differences(settings).keys() - {"speed"}:
        return None
    return (
        "These settings give takes that differ by chance. Two seeds of one setting can be told "
        "apart as well, so right answers do not show that the setting is heard. ABX shows that at "
        "temperature 0, for the speed, and wherever both sides come out with the same codes."
    )


def what_it_can_show(kind: str, scripts: int, seeds: int) -> str:
    """What a comparison (for each two settings) can and cannot show, before any take is made."""
    if kind == ComparisonKind.SIGHTED:
        return "Not blind: good for tuning, but what you know you also hear. It proves nothing."
    if kind == ComparisonKind.ABX:
        return _what_abx_can_show(scripts * seeds)
    pairs = scripts * seeds
    said = "1 pair" if pairs == 1 else f"{pairs} pairs"
    of_scripts = "1 script" if scripts == 1 else f"{scripts} scripts"
    needed = stats.fewest_significant(scripts)
    if needed is None:
        return (
            f"{said} of {of_scripts} can show nothing, however you vote: taste differs from "
            f"script to script, so all seeds of one script count once. Take {FEWEST_SCRIPTS} "
            "scripts or more."
        )
    p = stats.binomial_two_sided(needed, scripts)
    found = stats.power(scripts, seeds, 0.75)
    need = "only a clean sweep is" if needed == scripts else f"{needed} of {of_scripts} won are"
    more = " More scripts show more than more seeds." if seeds > 1 else ""
    return (
        f"With {said} of {of_scripts} {need} significant (p = {p:.3f}). A side that is truly "
        f"better three times in four is found in {found:.0%} of such tests.{more}"
    )


def _what_abx_can_show(pairs: int) -> str:
    said = "1 pair" if pairs == 1 else f"{pairs} pairs"
    needed = stats.fewest_above_chance(pairs)
    if needed is None:
        return f"{said} can show nothing: guessing gets them all right too often. Take 5."
    p = stats.binomial_at_least(needed, pairs)
    return f"With {said}, {needed} right answers tell hearing from guessing (p = {p:.3f})."
