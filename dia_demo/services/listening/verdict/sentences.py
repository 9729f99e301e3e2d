"""A result as a sentence, from numbers and names.

Whether a result is significant is decided in `stats`; how votes become numbers is in `result`.
"""

from __future__ import annotations

from collections.abc import Sequence

from dia_demo.services.listening.plan.names import capitalize
from dia_demo.services.listening.verdict import stats
from dia_demo.services.listening.verdict.claims import FEWEST_ANSWERS
from dia_demo.services.listening.verdict.planning import FEWEST_SCRIPTS
from dia_demo.services.wording import plural

# Above this probability, the result is what chance usually gives.
_NEARLY_ALWAYS = 0.95
_FRACTIONS = (
    (9 / 10, "nine times in ten"),
    (4 / 5, "four times in five"),
    (3 / 4, "three times in four"),
    (2 / 3, "two times in three"),
    (3 / 5, "three times in five"),
    (1 / 2, "half the time"),
    (2 / 5, "two times in five"),
    (1 / 3, "one time in three"),
    (1 / 4, "one time in four"),
)
_SMALLEST_FRACTION = 0.225
_NUMBERS = "three four five six seven eight nine ten".split()


def how_often(p: float) -> str:
    """A probability as a frequency: "two times in three", "one time in 26"."""
    if p >= _SMALLEST_FRACTION:
        return min(_FRACTIONS, key=lambda fraction: abs(fraction[0] - p))[1]
    if p < 0.001:
        return "less than one time in 1,000"
    times = round(1 / p)
    return f"one time in {_NUMBERS[times - 3] if times <= 10 else times}"


def chance_clause(p: float, source: str = "chance") -> str:
    """How often chance gives a result at least as one-sided, as a clause ("which chance …")."""
    if p >= _NEARLY_ALWAYS:
        return f"which is what {source} gives"
    only = "alone does only" if p < stats.SIGNIFICANT else "does"
    return f"which {source} {only} {how_often(p)}"


def preference_sentence(
    names: Sequence[str], wins: tuple[int, int], ties: int, leads: Sequence[int]
) -> str:
    """Which of two settings was preferred. leads: by how many votes the first leads on each script.

    names: of the settings, by their values.
    """
    decided = sum(wins)
    if decided == 0:
        if not ties:
            return "No pair was judged."
        return f"No difference was heard{f' in any of {ties} pairs' if ties > 1 else ''}."
    first_ahead, second_ahead, p = stats.sign_flip_test(leads)
    scripts, lead = first_ahead + second_ahead, sum(leads)
    more = f" In {plural(ties, 'more pair')} no difference was heard." if ties else ""
    winner = 0 if lead > 0 else 1
    pairs = plural(decided, "pair")
    chosen = f"{names[winner]} was chosen in {wins[winner]} of {pairs}"
    if lead == 0:
        chosen = f"{names[0]} and {names[1]} were each chosen in {wins[0]} of {pairs}"
    if scripts < FEWEST_SCRIPTS:
        return (
            f"Too few scripts to tell: {chosen}. {_majority_clause(scripts)}, and at least "
            f"{FEWEST_SCRIPTS} are needed.{more}"
        )
    if lead == 0:
        return f"No preference: {chosen}.{more}"
    if decided > scripts:
        ahead = (first_ahead, second_ahead)[winner]
        chosen += f" and is ahead on {ahead} of {scripts} scripts"
    verdict = "Clear preference" if p < stats.SIGNIFICANT else "No clear preference"
    return f"{verdict}: {chosen}, {chance_clause(p)}.{more}"


def _majority_clause(scripts: int) -> str:
    if scripts == 0:
        return "No script has a majority"
    return f"Only {plural(scripts, 'script')} {'has' if scripts == 1 else 'have'} a majority"


def abx_sentence(right: int, answers: int, scripts: int, by_setting: bool) -> str:
    """Whether a difference was heard. by_setting: only the setting can have caused it."""
    if not answers:
        return "No pair was answered."
    p = stats.binomial_at_least(right, answers)
    counts = f"{right} of {plural(answers, 'answer')} {'was' if answers == 1 else 'were'} right"
    if stats.fewest_above_chance(answers) is None:
        return f"Too few answers to tell: {counts}. At least {FEWEST_ANSWERS} are needed."
    guessed = f"{counts}, {chance_clause(p, 'guessing')}."
    if p >= stats.SIGNIFICANT:
        return f"No audible difference was shown: {guessed}"
    if by_setting:
        return f"The difference is audible on {name_scripts(scripts)}: {guessed}"
    return (
        f"The two takes of a pair can be told apart: {guessed} So can two seeds of one setting, so "
        "this does not show that the setting itself is audible."
    )


def round_sentence(names: Sequence[str], shared: int, differ: bool, leads: Sequence[int]) -> str:
    """Which of several settings comes first.

    names: of the settings, the best first. shared: how many of them share the first place. differ:
    whether the strengths of the first two differ by more than chance explains. leads: by how many
    votes the first leads the second on each script.
    """
    if shared > 1:
        others = capitalize(", ".join(names[: shared - 1]))
        return f"{others} and {names[shared - 1]} share the first place."
    first, second = names[:2]
    if not differ:
        return (
            f"No clear first place: {first} leads, followed by {second}, but the difference is "
            "within what chance explains."
        )
    for_first, for_second, p = stats.sign_flip_test(leads)
    scripts = plural(for_first + for_second, "script")
    if p < stats.SIGNIFICANT:
        return (
            f"Clear first place: {first} is ahead of {second} on {for_first} of {scripts}, "
            f"{chance_clause(p)}."
        )
    return (
        f"No clear first place: {first} leads, but is ahead of {second} on only {for_first} of "
        f"{scripts}. More scripts would settle it, more seeds would not."
    )


def name_scripts(count: int) -> str:
    """The scripts that a result applies to: "this script", "these 12 scripts"."""
    return "this script" if count == 1 else f"these {count} scripts"
