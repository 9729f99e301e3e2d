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
        "Takes with these settings differ by chance, just as two seeds of one setting do, so right "
        "answers do not show that the setting is audible. ABX shows that at temperature 0, for the "
        "speed, and wherever both sides have the same codes."
    )


def what_it_can_show(kind: str, scripts: int, seeds: int) -> str:
    """What a comparison (for each two settings) can and cannot show, before any take is made."""
    if kind == ComparisonKind.SIGHTED:
        return "Not blind: good for tuning, but expectations matter, so it proves nothing."
    if kind == ComparisonKind.ABX:
        return _what_abx_can_show(scripts * seeds)
    pairs = scripts * seeds
    size = "1 pair" if pairs == 1 else f"{pairs} pairs"
    of_scripts = "1 script" if scripts == 1 else f"{scripts} scripts"
    needed = stats.fewest_significant(scripts)
    if needed is None:
        return (
            f"{size} of {of_scripts} can show nothing, however you vote: preferences differ "
            "between scripts, so all seeds of one script count once. Use "
            f"{FEWEST_SCRIPTS} scripts or more."
        )
    p = stats.binomial_two_sided(needed, scripts)
    power = stats.power(scripts, seeds, 0.75)
    wins = f"all {of_scripts}" if needed == scripts else f"{needed} of {of_scripts}"
    more = " More scripts show more than more seeds." if seeds > 1 else ""
    return (
        f"With {size} of {of_scripts}, a side must win {wins} for a significant result "
        f"(p = {p:.3f}). If it is the better one three times in four, {power:.0%} of such tests "
        f"find that.{more}"
    )


def _what_abx_can_show(pairs: int) -> str:
    size = "1 pair" if pairs == 1 else f"{pairs} pairs"
    needed = stats.fewest_above_chance(pairs)
    if needed is None:
        return f"{size} can show nothing: guessing all of them right is too likely. Use 5 or more."
    p = stats.binomial_at_least(needed, pairs)
    return f"With {size}, {needed} right answers are better than guessing (p = {p:.3f})."
