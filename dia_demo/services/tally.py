"""What the votes say: rates, intervals, exact tests, and one plain sentence about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from dia_demo import stats
from dia_demo.services.plan import NAMES, Plan
from dia_demo.services.votes import Vote


@dataclass(frozen=True)
class Count:
    """Votes of two settings, or right answers of ABX against wrong ones.

    rate is first / (first + second) with its exact 95% interval; ties count in neither.
    """

    label: str
    first: int
    second: int
    ties: int
    rate: float | None
    interval: tuple[float, float]
    p: float

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
class Tally:
    """The result so far. failed counts pairs without clips: they are missing from the votes."""

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


def tally(plan: Plan, votes: Mapping[str, Vote]) -> Tally:
    """The result of the votes given so far."""
    given = list(votes.values())
    failed = sum(
        any(slot.state == "failed" for slot in plan.slots_of(trial))
        for trial in plan.trials
        if not trial.made
    )
    strengths = [int(vote.strength) for vote in given if vote.strength]
    common = dict(
        kind=plan.kind,
        pairs=len(plan.trials),
        voted=len(given),
        failed=failed,
        listening_seconds=round(sum(map(_listened, given)), 1),
        mean_strength=sum(strengths) / len(strengths) if strengths else None,
        notes=_notes(plan, len(given), failed),
    )
    if len(plan.settings) > 2:
        return _round(plan, given, common)
    overall = _count(plan, "all pairs", given)
    sentence = _abx_sentence(overall) if plan.kind == "abx" else _sentence(overall)
    return Tally(
        sentence=sentence,
        overall=overall,
        by_script=_split(plan, given, "script", lambda vote: vote.script),
        by_seed=_split(plan, given, "seed", lambda vote: vote.seed),
        **common,
    )


def _listened(vote: Vote) -> float:
    return vote.seconds_a + vote.seconds_b + vote.seconds_x


def _notes(plan: Plan, voted: int, failed: int) -> tuple[str, ...]:
    found = []
    if voted < len(plan.trials) - failed:
        found.append(
            f"Only {voted} of {len(plan.trials)} pairs are judged. The number was fixed beforehand "
            "for a reason: stopping when it looks good makes chance look like a result."
        )
    if failed:
        found.append(f"{failed} pairs could not be made and are missing here: retry them.")
    if len(plan.scripts) == 1:
        found.append("It holds for this one script: another script may differ.")
    return tuple(found)


def _count(plan: Plan, label: str, votes: Iterable[Vote], pair: str = "AB") -> Count:
    votes = list(votes)
    if plan.kind == "abx":
        first = sum(vote.correct == "yes" for vote in votes)
        second, ties = len(votes) - first, 0
        p = stats.binomial_at_least(first, first + second)
    else:
        first = sum(vote.winner == pair[0] for vote in votes)
        second = sum(vote.winner == pair[1] for vote in votes)
        ties = len(votes) - first - second
        p = stats.binomial_two_sided(first, first + second)
    n = first + second
    interval = stats.clopper_pearson(first, n)
    return Count(label, first, second, ties, first / n if n else None, interval, p)


def _split(plan: Plan, votes: list[Vote], word: str, key) -> tuple[Count, ...]:
    values = sorted({key(vote) for vote in votes})
    return tuple(
        _count(plan, f"{word} {value}", [vote for vote in votes if key(vote) == value])
        for value in values
    )


def _sentence(count: Count) -> str:
    n = count.decided
    ties = f" {count.ties} without a difference." if count.ties else ""
    if n == 0:
        return "No pair has been decided yet." + ties
    winner, won = ("A", count.first) if count.first >= count.second else ("B", count.second)
    said = f"Settings {winner} won {won} of {n} decided pairs (p = {count.p:.3f}).{ties}"
    if count.first == count.second:
        said = f"Both sides won {won} of {n} decided pairs.{ties}"
    if count.p < stats.SIGNIFICANT:
        return said + " That is more than chance explains: you prefer it on scripts like these."
    if stats.fewest_significant(n) is None:
        return said + f" {n} decided pairs are too few to conclude anything: take at least 6."
    return said + " Chance may well do that: no preference is shown, nor that there is none."


def _abx_sentence(count: Count) -> str:
    n = count.decided
    if n == 0:
        return "Nothing has been answered yet."
    said = f"{count.first} of {n} answers were right (p = {count.p:.3f} against guessing)."
    if count.p < stats.SIGNIFICANT:
        return said + " The difference can be heard."
    if stats.fewest_above_chance(n) is None:
        return said + f" {n} answers are too few to conclude anything: take at least 5."
    return said + " No sign that it can be heard; that does not prove that nobody can."


def _round(plan: Plan, votes: list[Vote], common: dict) -> Tally:
    size = len(plan.settings)
    wins = np.zeros((size, size))
    for vote in votes:
        one, other = NAMES.index(vote.heard_a), NAMES.index(vote.heard_b)
        if vote.winner:
            best = NAMES.index(vote.winner)
            wins[best, other if best == one else one] += 1
        else:
            wins[one, other] += 0.5
            wins[other, one] += 0.5
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
        return Tally(sentence=sentence, by_pair=tuple(pairs), **common)
    ranking = [
        Strength(
            NAMES[index],
            float(fit.strengths[index]),
            *map(float, fit.intervals[index]),
            float(wins[index].sum()),
            int(wins[index].sum() + wins[:, index].sum()),
        )
        for index in np.argsort(-fit.strengths)
    ]
    return Tally(
        sentence=_round_sentence(ranking),
        by_pair=tuple(pairs),
        ranking=tuple(ranking),
        softened=fit.softened,
        **common,
    )


def _round_sentence(ranking: list[Strength]) -> str:
    first, second = ranking[:2]
    said = f"Settings {first.setting} come first, then {second.setting}."
    if first.low > second.high:
        return said + " Their intervals lie apart: that is more than chance explains."
    return said + " Their intervals overlap: who is really first is not settled."
