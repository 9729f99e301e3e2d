"""The result of the votes: rates, intervals, exact tests. Its sentences are in `sentences`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from dia_demo.services.listening.plan.names import setting_names
from dia_demo.services.listening.plan.plan import NAMES, ComparisonKind, ComparisonPlan, TakeState
from dia_demo.services.listening.plan.setting import differences
from dia_demo.services.listening.verdict import stats
from dia_demo.services.listening.verdict.claims import abx_warning
from dia_demo.services.listening.verdict.planning import FEWEST_SCRIPTS
from dia_demo.services.listening.verdict.sentences import (
    abx_sentence,
    preference_sentence,
    round_sentence,
)
from dia_demo.services.listening.votes.votes import Vote
from dia_demo.services.wording import plural

# The strengths of a symmetric result differ only by the fit's rounding.
_EQUAL_STRENGTH = 1e-6
# With fewer votes, the interval of a row would be nearly the whole scale.
_FEWEST_VOTES_OF_A_ROW = 3


@dataclass(frozen=True)
class Count:
    """Votes of two settings, or right answers of ABX against wrong ones.

    rate: first / (first + second), with its exact 95% interval for these scripts; ties count for
    neither. p: of the whole test. Rows of its parts have none, since among many rows one is below
    0.05 by chance. settings: the names of the two, by their values.
    """

    label: str
    first: int
    second: int
    ties: int
    rate: float | None
    interval: tuple[float, float]
    p: float | None = None
    settings: tuple[str, ...] = ()

    @property
    def decided(self) -> int:
        return self.first + self.second


@dataclass(frozen=True)
class Strength:
    """A setting's strength in a round: log-strength with its 95% interval. wins: a tie is half.

    setting: its letter. name: by its values.
    """

    setting: str
    strength: float
    low: float
    high: float
    wins: float
    heard: int
    name: str = ""


@dataclass(frozen=True)
class ComparisonResult:
    """The result so far. failed: the number of pairs without clips, which have no votes. names: of
    the settings, by their values.

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
    names: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[Count, ...]:
        """The rows by script and by seed that have enough votes."""
        kinds = [rows for rows in (self.by_script, self.by_seed) if len(rows) > 1]
        rows = [row for kind in kinds for row in kind]
        return tuple(row for row in rows if row.decided + row.ties >= _FEWEST_VOTES_OF_A_ROW)


def interim_result(plan: ComparisonPlan, votes: Mapping[str, Vote]) -> ComparisonResult:
    """The progress of an open test, without its result: stopping at the first result that looks
    good would make chance look like a result."""
    return ComparisonResult(
        kind=plan.kind,
        pairs=len(plan.trials),
        voted=len(votes),
        failed=_count_failed(plan),
        sentence=f"The test is open: {len(votes)} of {len(plan.trials)} pairs judged.",
        notes=_missing_note(_count_failed(plan)),
        open=True,
        names=setting_names(plan.settings),
    )


def evaluate(plan: ComparisonPlan, votes: Mapping[str, Vote]) -> ComparisonResult:
    """The result of the votes so far."""
    all_votes = list(votes.values())
    failed = _count_failed(plan)
    strengths = [int(vote.strength) for vote in all_votes if vote.strength]
    common: dict[str, Any] = dict(
        kind=plan.kind,
        pairs=len(plan.trials),
        voted=len(all_votes),
        failed=failed,
        listening_seconds=round(sum(map(_seconds_listened, all_votes)), 1),
        mean_strength=sum(strengths) / len(strengths) if strengths else None,
        notes=_notes(plan, len(all_votes), failed),
        names=setting_names(plan.settings),
    )
    if len(plan.settings) > 2:
        return _round(plan, all_votes, common)
    overall = _count(plan, "all pairs", all_votes)
    if plan.kind == ComparisonKind.ABX:
        p = stats.binomial_at_least(overall.first, overall.decided)
        sentence = _abx_sentence(plan, all_votes, overall)
    else:
        leads = _leads_by_script(
            all_votes, lambda vote: (vote.winner == "A") - (vote.winner == "B")
        )
        *_, p = stats.sign_flip_test(leads)
        wins = overall.first, overall.second
        sentence = preference_sentence(common["names"], wins, overall.ties, leads)
    return ComparisonResult(
        sentence=sentence,
        overall=replace(overall, p=p),
        by_script=_split(plan, all_votes, "script", lambda vote: vote.script),
        by_seed=_split(plan, all_votes, "seed", lambda vote: vote.seed),
        **common,
    )


def _count_failed(plan: ComparisonPlan) -> int:
    return sum(
        any(slot.state == TakeState.FAILED for slot in plan.slots_of(trial))
        for trial in plan.trials
        if not trial.made
    )


def _leads_by_script(votes: Iterable[Vote], lead_of: Callable[[Vote], int]) -> list[int]:
    """The first side's lead on each judged script. Votes on one script are not independent: who
    likes a voice on it will like it with the next seed too."""
    leads: dict[str, int] = defaultdict(int)
    for vote in votes:
        leads[vote.script_sha256] += lead_of(vote)
    return list(leads.values())


def _seconds_listened(vote: Vote) -> float:
    return vote.seconds_a + vote.seconds_b + vote.seconds_x


def _notes(plan: ComparisonPlan, voted: int, failed: int) -> tuple[str, ...]:
    notes = []
    if voted < len(plan.trials) - failed:
        notes.append(
            f"The votes cover only {voted} of {plural(len(plan.trials), 'pair')}. The number was "
            "fixed beforehand for a reason: stopping when it looks good makes chance look like a "
            "result."
        )
    notes += _missing_note(failed)
    if plan.kind == ComparisonKind.PREFERENCE and len(set(plan.scripts)) < FEWEST_SCRIPTS:
        scripts = plural(len(set(plan.scripts)), "script")
        notes.append(
            f"It was heard on {scripts} only, and preferences differ between scripts: use at least "
            f"{FEWEST_SCRIPTS} scripts before adding seeds."
        )
    differing = differences(plan.settings)
    if len(differing) > 1 and "model" not in differing:
        notes.append(
            "More than one setting differs, so the result cannot show which one caused it."
        )
    return tuple(notes)


def _missing_note(failed: int) -> tuple[str, ...]:
    if not failed:
        return ()
    verb = "is" if failed == 1 else "are"
    return (f"{plural(failed, 'pair')} could not be generated and {verb} missing here.",)


def _count(
    plan: ComparisonPlan, label: str, votes: Iterable[Vote], pair: tuple[int, int] = (0, 1)
) -> Count:
    votes = list(votes)
    if plan.kind == ComparisonKind.ABX:
        first = sum(vote.correct == "yes" for vote in votes)
        second, ties = len(votes) - first, 0
    else:
        first, second = (sum(vote.winner == NAMES[side] for vote in votes) for side in pair)
        ties = len(votes) - first - second
    n = first + second
    interval = stats.clopper_pearson(first, n)
    names = setting_names(plan.settings)
    settings = tuple(names[side] for side in pair)
    return Count(label, first, second, ties, first / n if n else None, interval, None, settings)


def _split(plan: ComparisonPlan, votes: list[Vote], word: str, key) -> tuple[Count, ...]:
    values = sorted({key(vote) for vote in votes})
    return tuple(
        _count(plan, f"{word} {value}", [vote for vote in votes if key(vote) == value])
        for value in values
    )


def _abx_sentence(plan: ComparisonPlan, votes: list[Vote], count: Count) -> str:
    judged = {vote.trial for vote in votes}
    same_codes = all(plan.same_codes(trial) for trial in plan.trials if trial.id in judged)
    by_setting = same_codes or not abx_warning(plan.kind, plan.settings)
    return abx_sentence(count.first, count.decided, len(set(plan.scripts)), by_setting)


def _round(plan: ComparisonPlan, votes: list[Vote], common: dict) -> ComparisonResult:
    size, names = len(plan.settings), common["names"]
    common["by_pair"] = tuple(_count_of(plan, votes, pair) for pair in combinations(range(size), 2))
    wins = np.zeros((size, size))
    for vote in votes:
        a, b = NAMES.index(vote.heard_a), NAMES.index(vote.heard_b)
        if vote.winner:
            best = NAMES.index(vote.winner)
            wins[best, b if best == a else a] += 1
        else:
            wins[a, b] += 0.5
            wins[b, a] += 0.5
    try:
        fit = stats.bradley_terry(wins)
    except ValueError:
        sentence = "Too few votes to rank: not every setting was compared with the others."
        return ComparisonResult(sentence=sentence, **common)
    ranking = [
        Strength(
            setting=NAMES[index],
            strength=float(fit.strengths[index]),
            low=float(fit.intervals[index][0]),
            high=float(fit.intervals[index][1]),
            wins=float(wins[index].sum()),
            heard=int(wins[index].sum() + wins[:, index].sum()),
            name=names[index],
        )
        for index in _order_by_strength(fit.strengths)
    ]
    return ComparisonResult(
        sentence=_round_sentence(votes, ranking, fit),
        ranking=tuple(ranking),
        softened=fit.softened,
        **common,
    )


def _count_of(plan: ComparisonPlan, votes: list[Vote], pair: tuple[int, int]) -> Count:
    """The votes of a round on two of its settings."""
    first, second = (NAMES[side] for side in pair)
    both = [vote for vote in votes if {vote.heard_a, vote.heard_b} == {first, second}]
    return _count(plan, f"{first} against {second}", both, pair)


def _order_by_strength(strengths: np.ndarray) -> np.ndarray:
    """The order of the settings; equal ones in the order of the form."""
    return np.argsort(-np.round(strengths / _EQUAL_STRENGTH), kind="stable")


def _round_sentence(votes: list[Vote], ranking: list[Strength], fit: stats.BradleyTerry) -> str:
    top = ranking[0].strength
    shared = sum(top - entry.strength < _EQUAL_STRENGTH for entry in ranking)
    first, second = (entry.setting for entry in ranking[:2])
    return round_sentence(
        [entry.name for entry in ranking],
        shared,
        fit.differ(NAMES.index(first), NAMES.index(second)),
        _leads_by_script(votes, lambda vote: _score(vote, first) - _score(vote, second)),
    )


def _score(vote: Vote, setting: str) -> int:
    """1 if the setting won this vote, -1 if it lost, 0 for a tie or another pair."""
    if setting not in (vote.heard_a, vote.heard_b) or not vote.winner:
        return 0
    return 1 if vote.winner == setting else -1
