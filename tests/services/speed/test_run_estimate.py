"""The time left that a run shows, against what it turned out: runs with a clock that is set."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import pytest

from dia_demo.engine.events import Loading, Progress, Started, Waiting
from dia_demo.engine.time_left import NOTHING, TimeLeft, length_left
from dia_demo.model.dia2.config import Dia2Config
from dia_demo.services.speed.estimate import work
from dia_demo.services.speed.run_estimate import ExpectedTake, RunEstimate
from dia_demo.services.wording import time_left

UNITS = {"s": 1, "min": 60, "h": 3600}
# Every report comes after at least so many seconds.
REPORT_SECONDS = 0.2
STARTED = Started(1, "nano", "int8", "cpu", 24_000, 5.0)


@dataclass
class Run:
    """A run as it will turn out: seconds of loading in two stages, steps, seconds of a step, and of
    each of its first `light` steps."""

    expected: ExpectedTake
    steps: int
    step_seconds: float
    loading: float = 0.0
    expected_loading: TimeLeft | None = NOTHING
    seed: int = 0
    light: int = 0
    light_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.now = 0.0

    def shown(self) -> Iterator[tuple[float, TimeLeft | None]]:
        """The time of every event, and the time left that it has."""
        noise = random.Random(self.seed)
        estimate = RunEstimate([self.expected], self.expected_loading, clock=lambda: self.now)
        for part in range(101 if self.loading else 0):
            stage = "Reading" if part < 80 else "Building"
            fraction = part / 80 if part < 80 else None
            yield self.now, estimate.note(Loading(stage, fraction)).left
            self.now += self.loading / 101
        yield self.now, estimate.note(STARTED).left
        self.now += self.expected.reading_seconds
        reported = self.now
        for step in range(1, self.steps + 1):
            seconds = self.light_seconds if step <= self.light else self.step_seconds
            self.now += seconds * noise.uniform(0.8, 1.2)
            if self.now - reported >= REPORT_SECONDS:
                reported = self.now
                yield self.now, estimate.note(Progress(step, 0.0, 0.0, 1.0, 1.0)).left

    def judged(self) -> list[tuple[float, float, TimeLeft | None]]:
        """From the first tenth on: the share of the run that has passed, what is left, and the
        time that is shown."""
        shown = list(self.shown())
        return [
            (at / self.now, self.now - at, left)
            for at, left in shown
            if self.now / 10 <= at < self.now
        ]


def figures(text: str) -> list[float]:
    """The figures of a text in seconds."""
    found = re.search(r"([\d.]+)(?: to ([\d.]+))? (s|min|h)(?: ([\d.]+) (s|min))?$", text)
    assert found, text
    ends = [float(number) * UNITS[found[3]] for number in found.groups()[:2] if number]
    rest = float(found[4]) * UNITS[found[5]] if found[4] else 0.0
    return [end + rest for end in ends]


def is_right(text: str, left: float) -> bool:
    """A figure is within 1.5 times of what is left, or a second of it; a range holds it, and an
    upper end is above it."""
    ends = figures(text)
    if text.startswith(("under", "less than")):
        return left <= 1.1 * ends[0] + 0.5
    return ends[0] / 1.5 - 1 <= left <= 1.5 * ends[-1] + 1


# Steps of 4 ms to 2 s, faster and slower than expected, after loadings.
@pytest.mark.parametrize("steps", [100, 1200])
@pytest.mark.parametrize("step_seconds", [0.004, 0.06, 2.0])
@pytest.mark.parametrize("speed", [1.0, 1.3, 0.75, None])
@pytest.mark.parametrize("loading", [0.0, 0.5, 10.0])
def test_the_time_shown_is_right_from_the_first_tenth_on(steps, step_seconds, speed, loading):
    deviation = 0.1
    run_seconds = steps * step_seconds
    for deviations in (-1.2, -0.6, 0.0, 0.6, 1.2):
        expected = ExpectedTake(
            steps, deviation, 4 * steps, None if speed is None else step_seconds / speed, 1.3, 0.05
        )
        run = Run(
            expected,
            round(steps * math.exp(deviations * deviation)),
            step_seconds,
            loading * run_seconds,
            TimeLeft.from_estimate(1.1 * loading * run_seconds, 1.3) if loading else NOTHING,
        )
        wrong = [
            (round(passed, 2), round(left, 1), time_left(known))
            for passed, left, known in run.judged()
            if known is not None and not is_right(time_left(known), left)
        ]
        assert len(wrong) <= 0.02 * len(run.judged()), wrong[:5]


@pytest.mark.parametrize("loading", [0.0, 3.0])
def test_there_is_a_figure_from_the_first_tenth_on(loading):
    expected = ExpectedTake(900, 0.1, 1700, 0.06, 1.3)
    run = Run(expected, 940, 0.06, loading * 54, TimeLeft.from_estimate(loading * 54, 1.3))
    judged = run.judged()
    assert all(left is not None for _, _, left in judged)
    single = [passed for passed, _, left in judged if time_left(left).startswith("about")]
    assert len(single) > 0.6 * len(judged)


@pytest.mark.parametrize("speed", [1.0, 1.3, 0.75, None])
@pytest.mark.parametrize("steps", [40, 100, 400])
@pytest.mark.parametrize("share", [0.35, 0.5])
def test_light_steps_do_not_make_the_others_look_fast(steps, speed, share):
    """Dia2's first steps, which take about 0.45 of the time of the others."""
    known = None if speed is None else 0.1 / speed
    expected = ExpectedTake(steps, 0.1, 4 * steps, known, 1.3, work=partial(work, Dia2Config()))
    run = Run(expected, steps, 0.1, light=17, light_seconds=share * 0.1)
    wrong = [
        (round(passed, 2), round(left, 1), time_left(known))
        for passed, left, known in run.judged()
        if known is not None and not is_right(time_left(known), left)
    ]
    assert wrong == []
    whole = replace(expected, work=float).left
    assert whole is None or whole.high - expected.left.high == pytest.approx(
        17 * 0.55 * known * 1.3
    )


def test_an_unknown_speed_is_known_after_a_few_steps():
    lefts = [left for _, left in Run(ExpectedTake(500, 0.2, 900), 500, 1.0).shown()]
    assert lefts[0] is None and all(lefts[6:])


def test_a_loading_of_unknown_length_is_extrapolated():
    expected = ExpectedTake(500, 0.1, 900, 0.01, 1.3)
    run = Run(expected, 500, 0.01, 60.0, None)
    in_reading = [(at, left) for at, left in run.shown() if 10 < at < 45]
    assert all(left is not None and left.low <= 65 - at for at, left in in_reading)


def test_the_time_includes_the_wait_in_the_queue_and_the_loading():
    take = ExpectedTake(100, 0.1, 200, 0.1)
    alone = RunEstimate([take]).note(STARTED).left
    behind = RunEstimate([take], TimeLeft(3, 3)).note(Waiting(1, TimeLeft(20, 20))).left
    assert behind.low == pytest.approx(alone.low + 23)
    assert RunEstimate([take]).note(Waiting(2)).left is None, "nobody knows"


def test_takes_made_together_are_at_least_as_long_as_the_longest():
    short, long = ExpectedTake(100, 0.1, 400, 0.1), ExpectedTake(200, 0.1, 400, 0.1)
    started = replace(STARTED, others=1)
    together = RunEstimate([short, long], places=2).note(started).left
    assert together.low == pytest.approx(long.left.low)
    assert together.high == pytest.approx(2 * long.left.high), "and at most as one after another"
    after_another = RunEstimate([short, long, long], places=2).note(started).left
    assert after_another.low == pytest.approx(short.left.low / 2 + long.left.low)


def test_no_more_takes_are_expected_beside_one_than_there_are_places():
    take = ExpectedTake(100, 0.1, 400, 0.1)
    crowd, pair = replace(take, others=9), replace(take, others=1)
    waiting = Waiting(1, TimeLeft(0, 0))
    assert RunEstimate([crowd], places=2).note(waiting) == RunEstimate([pair], places=2).note(
        waiting
    )


@pytest.mark.parametrize("made", [0, 50, 99, 101, 150, 199, 200, 2000])
def test_a_length_that_was_passed_is_ruled_out_and_none_is_beyond_the_limit(made):
    left = length_left(100, 0.1, made, 200)
    assert 0 <= left.low <= left.high <= max(0, 200 - made)
    assert left.high > 0 or made >= 200


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.2, 0.8, "under 1 s"),
        (30, 45, "about 35 s"),
        (120, 360, "about 2 to 6 min"),
        (125, 240, "about 3 min"),
        (2, 8, "about 2 to 8 s"),
        (1, 9, "less than 9 s"),
        (0, 50, "less than 50 s"),
        (0, 3601, "less than 1 h 5 min"),
    ],
)
def test_the_wording(low, high, text):
    assert time_left(TimeLeft(low, high)) == text
