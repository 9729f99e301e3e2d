"""What a comparison can and cannot show, before any take is made. Its result is in `result`."""

from __future__ import annotations

from collections.abc import Sequence

from dia_demo import stats
from dia_demo.services.listening.plan import ComparisonKind, Setting, differences
from dia_demo.services.wording import plural

# With fewer scripts, even a majority for the same side on all of them is not significant.
FEWEST_SCRIPTS = 6
# With fewer answers, guessing gets all of them right too often.
FEWEST_ANSWERS = 5
# The assumed rate at which the better side wins a vote, for the power of a test, and the power
# below which a test is called small.
RATE, ENOUGH_POWER = 0.75, 0.8


def abx_warning(kind: str, settings: Sequence[Setting]) -> str | None:
    """A warning for an ABX test whose takes differ by chance; None if they do not.

    They do not if the settings differ only in speed, which does not change the codes, or if no side
    samples.
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
    """What a comparison (of each two settings) can and cannot show, before any take is made."""
    if kind == ComparisonKind.SIGHTED:
        return "Not blind: good for tuning, but expectations matter, so it proves nothing."
    if kind == ComparisonKind.ABX:
        return _what_abx_can_show(scripts * seeds)
    pairs = plural(scripts * seeds, "pair")
    of_scripts = plural(scripts, "script")
    needed = stats.fewest_significant(scripts)
    if needed is None:
        return (
            f"{pairs} of {of_scripts} can show nothing, however you vote: preferences differ "
            "between scripts, so all seeds of one script count once. Use "
            f"{FEWEST_SCRIPTS} scripts or more."
        )
    p = stats.binomial_two_sided(needed, scripts)
    power = stats.power(scripts, seeds, RATE)
    wins = f"all {of_scripts}" if needed == scripts else f"{needed} of {of_scripts}"
    even, only, more = "If", "", ""
    if power < ENOUGH_POWER:
        even, only, more = "Even if", "only ", ": take more scripts"
        more += ", which show more than more seeds" if seeds > 1 else ""
    return (
        f"One side must be ahead on {wins} to be preferred beyond chance (p = {p:.3f}). {even} one "
        f"side really is better three times in four, a test of {pairs} notices it {only}"
        f"{power:.0%} of the time{more}."
    )


def _what_abx_can_show(pairs: int) -> str:
    needed = stats.fewest_above_chance(pairs)
    if needed is None:
        return (
            f"{plural(pairs, 'pair')} can show nothing: guessing all of them right is too likely. "
            f"Use {FEWEST_ANSWERS} or more."
        )
    p = stats.binomial_at_least(needed, pairs)
    return (
        f"With {plural(pairs, 'pair')}, {needed} right answers are better than guessing "
        f"(p = {p:.3f})."
    )
