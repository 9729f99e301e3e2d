"""The time left of a run: its place in the queue, its loading, then its takes.

Before a take begins, its length is estimated from the script and its speed from this machine's
rates. Once it runs, its own steps are timed, and lengths that it has passed are ruled out. Every
event of the run gets the result, so that whoever shows a time shows the same one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TypeVar

from dia_demo.engine.events import (
    Cancelled,
    Event,
    Failed,
    Finished,
    Loading,
    Progress,
    Started,
    Waiting,
)
from dia_demo.engine.time_left import NOTHING, TimeLeft, length_left, longest_time, soonest_time

# As many steps as the expected speed counts beside the take's own.
PRIOR_STEPS = 4
# The first reports include what is done once, so so many steps are needed without an expectation.
FEWEST_STEPS = 3
# Below this fraction of a stage its rest is not extrapolated.
LEAST_FRACTION = 0.15
# How far an extrapolated stage may be off.
STAGE_FACTOR = 1.25
# A loading that takes longer than expected is assumed to take up to this share of it more.
OVERDUE_SHARE = 0.5

Clock = Callable[[], float]
AnyEvent = TypeVar("AnyEvent", bound=Event)


@dataclass(frozen=True)
class ExpectedTake:
    """What is known of a take before it runs.

    steps: its median number of decoder steps, whose logarithm has the standard deviation
    `deviation`; limit: the steps after which it is cut off. step_seconds: of a step that is not
    light, with its share of the codec, alone, None if unknown; factor: how far that may be off.
    reading_seconds: the time until the first step. others: how many takes are made beside it.
    exponent: see `Profile.batch_exponent`. work: the time of its first steps, in steps that are not
    light (`estimate.work`).
    """

    steps: float
    deviation: float
    limit: float
    step_seconds: float | None = None
    factor: float = 1.0
    reading_seconds: float = 0.0
    others: int = 0
    exponent: float = 0.5
    work: Callable[[float], float] = float

    @property
    def left(self) -> TimeLeft | None:
        """The time of the whole take."""
        return RowEstimate(self).left()


class RowEstimate:
    """The time left of one take."""

    def __init__(self, expected: ExpectedTake) -> None:
        self.expected = expected
        self.step, self.ended, self.has_begun = 0, False, False
        self._samples: deque[tuple[float, float]] = deque()  # Times, and the work done then.
        self._others = 0
        self._prior, self._factor = expected.step_seconds, expected.factor
        self.share(expected.others)

    def share(self, others: int) -> None:
        """So many takes are made beside it from now on.

        A common step takes as long as that of one, up to as long as those of all one by one, and
        `exponent` says where between. The steps so far count by that ratio alone.
        """
        if others == self._others:
            return
        more, exponent = (1 + others) / (1 + self._others), self.expected.exponent
        speed, self._others = self._step_seconds(), others
        if speed is not None:
            self._prior = more**exponent * speed.middle
            # To the nearer of the two ends.
            self._factor = max(more, 1 / more) ** min(exponent, 1 - exponent) * sqrt(speed.spread)
        self._samples.clear()

    def note(self, step: int, now: float, others: int = 0) -> None:
        """The take is at this step, beside so many others."""
        self.share(others)
        self.step, done = step, self.expected.work(step)
        self._samples.append((now, done))
        # The later half decides: other programs come and go.
        while len(self._samples) > 2 and self._samples[1][1] <= done / 2:
            self._samples.popleft()

    @property
    def measured(self) -> TimeLeft | None:
        """Seconds of a step, as this take's steps are timed; None before there are some."""
        return self._step_seconds() if len(self._samples) > FEWEST_STEPS else None

    def left(self, measured: TimeLeft | None = None) -> TimeLeft | None:
        """None while nothing is known of the speed. measured: that of a take beside it."""
        if self.ended:
            return NOTHING
        speed = self._step_seconds()
        if not self._samples and measured is not None:
            speed = measured
        if speed is None:
            return None
        known = self.expected
        steps = length_left(known.steps, known.deviation, self.step, known.limit)
        low, high = (
            known.work(self.step + more) - known.work(self.step) for more in (steps.low, steps.high)
        )
        left = TimeLeft(low * speed.low, high * speed.high)
        return left if self.has_begun else left + TimeLeft.from_estimate(known.reading_seconds)

    def _step_seconds(self) -> TimeLeft | None:
        prior, steps, seconds = self._prior, 0.0, 0.0
        if len(self._samples) > 1:
            (began, first), (now, last) = self._samples[0], self._samples[-1]
            steps, seconds = last - first, now - began
        if prior is None:
            return TimeLeft.from_estimate(seconds / steps) if steps >= FEWEST_STEPS else None
        share = PRIOR_STEPS / (PRIOR_STEPS + steps)
        mean = (PRIOR_STEPS * prior + seconds) / (PRIOR_STEPS + steps)
        return TimeLeft.from_estimate(mean, self._factor**share)


class LoadingEstimate:
    """The time left of a loading, by its stages.

    expected: of all of it, None if unknown. began: when it began, by the clock.
    """

    def __init__(self, expected: TimeLeft | None, began: float) -> None:
        self.expected, self._began, self._now = expected, began, began
        self._stage, self._stage_began, self._fraction = "", began, 0.0

    def note(self, stage: str, fraction: float | None, now: float) -> None:
        """`fraction` of the stage is done."""
        if stage != self._stage:
            self._stage, self._stage_began = stage, now
        self._now, self._fraction = now, fraction or 0.0

    @property
    def left(self) -> TimeLeft | None:
        """None while nothing is known."""
        stage = self._left_of_stage()
        if self.expected is None:
            return stage
        passed = self._now - self._began
        low, high = self.expected.low - passed, self.expected.high - passed
        rest = TimeLeft(max(0.0, low), high if high > 0 else OVERDUE_SHARE * passed)
        return rest if stage is None else longest_time([rest, stage])

    def _left_of_stage(self) -> TimeLeft | None:
        if not LEAST_FRACTION <= self._fraction <= 1:
            return None
        spent = self._now - self._stage_began
        return TimeLeft.from_estimate(spent * (1 - self._fraction) / self._fraction, STAGE_FACTOR)


class RunEstimate:
    """The time left of a run of one or several takes, from its events.

    loading: of the model, None if unknown. places: how many takes run at once.
    """

    def __init__(
        self,
        takes: Sequence[ExpectedTake],
        loading: TimeLeft | None = NOTHING,
        places: int = 1,
        clock: Clock = time.monotonic,
    ) -> None:
        own = min(places, len(takes)) - 1
        self._rows = [
            RowEstimate(replace(take, others=min(take.others + own, places - 1))) for take in takes
        ]
        self._expected_loading = loading
        self._loading: LoadingEstimate | None = None
        self._places, self._clock = places, clock

    def expect_loading(self, loading: TimeLeft | None) -> None:
        """How long the model will take to load from here on: another run may have loaded it."""
        self._expected_loading = loading

    def note(self, event: AnyEvent) -> AnyEvent:
        """The event with the time left after it, where it has one."""
        match event:
            case Waiting(left=ahead):
                return replace(event, left=_sum(ahead, self._expected_loading, self._takes()))
            case Loading(what=stage, fraction=fraction):
                return replace(event, left=_sum(self._loads(stage, fraction), self._takes()))
            case Started(row=row, others=others):
                self._rows[row].has_begun = True
                self._rows[row].share(others)
                return replace(event, left=self._takes())
            case Progress(row=row, step=step, others=others):
                self._rows[row].note(step, self._clock(), others)
                return replace(event, left=self._takes())
            case Finished(row=row) | Cancelled(row=row) | Failed(row=row):
                self._rows[row].ended = True
        return event

    @property
    def left(self) -> TimeLeft | None:
        """Until all takes are complete, loading included; None if unknown."""
        return _sum(self._expected_loading, self._takes())

    @property
    def next_end(self) -> TimeLeft | None:
        """Until the first of the takes that have begun is complete; None if unknown."""
        lefts = [row.left() for row in self._rows if row.has_begun and not row.ended]
        known = [left for left in lefts if left is not None]
        return soonest_time(known) if known else None

    def _loads(self, stage: str, fraction: float | None) -> TimeLeft | None:
        now = self._clock()
        if self._loading is None:
            self._loading = LoadingEstimate(self._expected_loading, now)
        self._loading.note(stage, fraction, now)
        return self._loading.left

    def _takes(self) -> TimeLeft | None:
        """Until all takes are complete; None while that of one is not known."""
        measured = next((speed for row in self._rows if (speed := row.measured)), None)
        lefts = []
        for row in self._rows:
            if (left := row.left(measured)) is None:
                return None
            lefts.append(left)
        together = longest_time(lefts)
        if len(lefts) <= self._places:
            return together
        return longest_time([together, sum(lefts, NOTHING) * (1 / self._places)])


def _sum(*parts: TimeLeft | None) -> TimeLeft | None:
    known = [part for part in parts if part is not None]
    return sum(known, NOTHING) if len(known) == len(parts) else None
