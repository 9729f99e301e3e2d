"""What the votes say: rates, intervals, exact tests, and one plain sentence about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dia_demo import stats
from dia_demo.services.listening.claims import FEWEST_SCRIPTS, abx_warning
from dia_demo.services.listening.plan import NAMES, ComparisonKind, ComparisonPlan, TakeState
from dia_demo.services.listening.votes import Vote

# Strengths of a symmetric result come out of the fit equal but for its last digits.
_EQUAL_STRENGTH = 1e-6


@dataclass(frozen=True)
class Count:
    """Votes of two settings, or right answers of ABX against wrong ones.

    rate is first / (first + second) with its exact 95% interval for these scripts; ties count in
    neither. p belongs to the test of the whole; the rows of its parts have none, since among many
    rows one is below 0.05 by chance alone.
    """

    label: str
    first: int
    second: int
    ties: int
    rate: float | None
    interval: tuple[float, float]
    p: float | None = None

    @property
    def decided(self) -> int:
        return self.first + self.second


@dataclass(frozen=True)
class Strength:
    """A setting's place in a round: log-strength with its 95% interval; wins count ties as half."""

    setting: str
    strength: float
    low: float
    high: float
    wins: float
    heard: int


@dataclass(frozen=True)
class ComparisonResult:
    """The result so far. failed counts pairs without clips: they are missing from the votes.

    While the test is open (its sides are hidden and votes still count) there are counts alone.
    """

    kind: str
    pairs: int
    voted: int
    failed: int
    sentence: str
    overall: Count | None = None
    by_script: tuple[Count, ...] = ()
    by_seed: tuple[Count, ...] = ()
    by_pair: tuple[Count, ...] = ()
    ranking: tuple[Strength, ...] = ()
    softened: bool = False
    listening_seconds: float = 0.0
    mean_strength: float | None = None
    notes: tuple[str, ...] = field(default=())
    open: bool = False


def interim_result(plan: ComparisonPlan, votes: Mapping[str, Vote]) -> ComparisonResult:
    """How far an open test is. What the votes say would end it for whoever reads it: stopping at
    the first result that looks good makes chance look like a result."""
    return ComparisonResult(
        kind=plan.kind,
        pairs=len(plan.trials),
        voted=len(votes),
        failed=_failed(plan),
        sentence=f"The test is open: {len(votes)} of {len(plan.trials)} pairs judged.",
        notes=_missing(_failed(plan)),
        open=True,
    )


def evaluate(plan: ComparisonPlan, votes: Mapping[str, Vote]) -> ComparisonResult:
    """The result of the votes given so far."""
    all_votes = list(votes.values())
    failed = _failed(plan)
    strengths = [int(vote.strength) for vote in all_votes if vote.strength]
    common: dict[str, Any] = dict(
        kind=plan.kind,
        pairs=len(plan.trials),
        voted=len(all_votes),
        failed=failed,
        listening_seconds=round(sum(map(_listened, all_votes)), 1),
        mean_strength=sum(strengths) / len(strengths) if strengths else None,
        notes=_notes(plan, len(all_votes), failed),
    )
    if len(plan.settings) > 2:
        return _round(plan, all_votes, common)
    overall = _count(plan, "all pairs", all_votes)
    if plan.kind == ComparisonKind.ABX:
        p = stats.binomial_at_least(overall.first, overall.decided)
        sentence = _abx_sentence(plan, all_votes, overall, p)
    else:
        scripts = _by_script(all_votes, lambda vote: (vote.winner == "A") - (vote.winner == "B"))
        *_, p = stats.sign_test(scripts)
        sentence = _sentence(plan, overall, scripts)
    return ComparisonResult(
        sentence=sentence,
        overall=replace(overall, p=p),
        by_script=_split(plan, all_votes, "script", lambda vote: vote.script),
        by_seed=_split(plan, all_votes, "seed", lambda vote: vote.seed),
        **common,
    )


def _failed(plan: ComparisonPlan) -> int:
    return sum(
        any(slot.state == TakeState.FAILED for slot in plan.slots_of(trial))
        for trial in plan.trials
        if not trial.made
    )


def _by_script(votes: Iterable[Vote], lead_of: Callable[[Vote], int]) -> list[int]:
    """The first side's lead on each script that was judged. Votes on one script are not
    independent of each other: whoever likes a voice on it will like it with the next seed too."""
    leads: dict[str, int] = defaultdict(int)
    for vote in votes:
        leads[vote.script_sha256] += lead_of(vote)
    return list(leads.values())


def _listened(vote: Vote) -> float:
    return vote.seconds_a + vote.seconds_b + vote.seconds_x


def _notes(plan: ComparisonPlan, voted: int, failed: int) -> tuple[str, ...]:
    notes = []
    if voted < len(plan.trials) - failed:
        notes.append(
            f"Only {voted} of {len(plan.trials)} pairs are judged. The number was fixed beforehand "
            "for a reason: stopping when it looks good makes chance look like a result."
        )
    notes += _missing(failed)
    if plan.kind == ComparisonKind.PREFERENCE and len(set(plan.scripts)) < FEWEST_SCRIPTS:
        notes.append(
            f"It was heard {_on_these(plan)} alone, and taste differs from script to script: take "
            f"at least {FEWEST_SCRIPTS} scripts before more seeds."
        )
    return tuple(notes)


def _missing(failed: int) -> tuple[str, ...]:
    if not failed:
        return ()
    return (f"{failed} pairs could not be made and are missing here: retry them.",)


def _count(plan: ComparisonPlan, label: str, votes: Iterable[Vote], pair: str = "AB") -> Count:
    votes = list(votes)
    if plan.kind == ComparisonKind.ABX:
        first = sum(vote.correct == "yes" for vote in votes)
        second, ties = len(votes) - first, 0
    else:
        first = sum(vote.winner == pair[0] for vote in votes)
        second = sum(vote.winner == pair[1] for vote in votes)
        ties = len(votes) - first - second
    n = first + second
    interval = stats.clopper_pearson(first, n)
    return Count(label, first, second, ties, first / n if n else None, interval)


def _split(plan: ComparisonPlan, votes: list[Vote], word: str, key) -> tuple[Count, ...]:
    values = sorted({key(vote) for vote in votes})
    return tuple(
        _count(plan, f"{word} {value}", [vote for vote in votes if key(vote) == value])
        for value in values
    )


def _sentence(plan: ComparisonPlan, count: Count, leads: list[int]) -> str:
    n = count.decided
    ties = f" {count.ties} without a difference." if count.ties else ""
    if n == 0:
        return "No pair has been decided yet." + ties
    for_a, for_b, p = stats.sign_test(leads)
    lead = for_a - for_b or count.first - count.second
    if lead == 0:
        text = f"Both sides won {count.first} of {n} decided pairs.{ties}"
    else:
        winner, won = ("A", count.first) if lead > 0 else ("B", count.second)
        scripts = _scripts(for_a + for_b)
        text = (
            f"Settings {winner} won {won} of {n} decided pairs, ahead on {max(for_a, for_b)} of "
            f"{scripts} (p = {p:.3f}).{ties}"
        )
    if p < stats.SIGNIFICANT:
        return f"{text} That is more than chance explains {_on_these(plan)}."
    if for_a + for_b < FEWEST_SCRIPTS:
        return (
            f"{text} {_scripts(for_a + for_b)} with a majority are too few to conclude anything: "
            f"take at least {FEWEST_SCRIPTS}, before more seeds."
        )
    return f"{text} Chance may well do that: no preference is shown, nor that there is none."


def _scripts(count: int) -> str:
    return "1 script" if count == 1 else f"{count} scripts"


def _on_these(plan: ComparisonPlan) -> str:
    count = len(set(plan.scripts))
    return "on this 1 script" if count == 1 else f"on these {count} scripts"


def _abx_sentence(plan: ComparisonPlan, votes: list[Vote], count: Count, p: float) -> str:
    n = count.decided
    judged = {vote.trial for vote in votes}
    same_codes = all(plan.same_codes(trial) for trial in plan.trials if trial.id in judged)
    if n == 0:
        return "Nothing has been answered yet."
    text = f"{count.first} of {n} answers were right (p = {p:.3f} against guessing)."
    if p < stats.SIGNIFICANT:
        if not same_codes and abx_warning(plan.kind, plan.settings):
            return (
                f"{text} The two takes of a pair can be told apart {_on_these(plan)}. So can two "
                "seeds of one setting, so this does not show that the setting itself is heard."
            )
        return f"{text} The difference can be heard {_on_these(plan)}."
    if stats.fewest_above_chance(n) is None:
        return text + f" {n} answers are too few to conclude anything: take at least 5."
    return text + " No sign that it can be heard; that does not prove that nobody can."


def _round(plan: ComparisonPlan, votes: list[Vote], common: dict) -> ComparisonResult:
    size = len(plan.settings)
    wins = np.zeros((size, size))
    for vote in votes:
        a, b = NAMES.index(vote.heard_a), NAMES.index(vote.heard_b)
        if vote.winner:
            best = NAMES.index(vote.winner)
            wins[best, b if best == a else a] += 1
        else:
            wins[a, b] += 0.5
            wins[b, a] += 0.5
    pairs = [
        _count(
            plan,
            f"{first} against {second}",
            [vote for vote in votes if {vote.heard_a, vote.heard_b} == {first, second}],
            first + second,
        )
        for at, first in enumerate(NAMES[:size])
        for second in NAMES[at + 1 : size]
    ]
    try:
        fit = stats.bradley_terry(wins)
    except ValueError:
        sentence = "Not every setting has been compared with the others yet: go on listening."
        return ComparisonResult(sentence=sentence, by_pair=tuple(pairs), **common)
    ranking = [
        Strength(
            setting=NAMES[index],
            strength=float(fit.strengths[index]),
            low=float(fit.intervals[index][0]),
            high=float(fit.intervals[index][1]),
            wins=float(wins[index].sum()),
            heard=int(wins[index].sum() + wins[:, index].sum()),
        )
        for index in np.argsort(-fit.strengths)
    ]
    return ComparisonResult(
        sentence=_round_sentence(plan, votes, ranking, fit),
        by_pair=tuple(pairs),
        ranking=tuple(ranking),
        softened=fit.softened,
        **common,
    )


def _round_sentence(
    plan: ComparisonPlan, votes: list[Vote], ranking: list[Strength], fit: stats.BradleyTerry
) -> str:
    best = [
        entry.setting for entry in ranking if ranking[0].strength - entry.strength < _EQUAL_STRENGTH
    ]
    if len(best) > 1:
        return f"Settings {', '.join(best[:-1])} and {best[-1]} share the first place."
    first, second = (entry.setting for entry in ranking[:2])
    text = f"Settings {first} come first, then {second}."
    if not fit.differ(NAMES.index(first), NAMES.index(second)):
        return f"{text} The difference of their strengths is within what chance explains."
    leads = _by_script(votes, lambda vote: _score(vote, first) - _score(vote, second))
    for_first, for_second, p = stats.sign_test(leads)
    if p < stats.SIGNIFICANT:
        return f"{text} That is more than chance explains {_on_these(plan)} (p = {p:.3f})."
    return (
        f"{text} But {first} is ahead on {for_first} of {_scripts(for_first + for_second)} only "
        f"(p = {p:.3f}): more scripts would settle it, more seeds would not."
    )


def _score(vote: Vote, setting: str) -> int:
    """1 where a setting was heard and won, -1 where it lost, 0 for a tie or another pair."""
    if setting not in (vote.heard_a, vote.heard_b) or not vote.winner:
        return 0
    return 1 if vote.winner == setting else -1
