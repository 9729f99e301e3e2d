"""TimeLeft: how long a run still takes, as the two ends of a range.

Everything that shows a time shows a TimeLeft in the words of services/wording.py: the button, the
status, the player, comparisons, the command line. services/speed/run_estimate.py estimates it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from statistics import NormalDist

# The share of takes that are to end before the lower end, and after the upper one.
TAIL = 0.1
# Beyond so many standard deviations of the estimated length, a length says nothing any more.
MOST_DEVIATIONS = 4.0

_NORMAL = NormalDist()


@dataclass(frozen=True)
class TimeLeft:
    """Seconds until something is complete: at least `low`, at most `high`, as far as is known."""

    low: float
    high: float

    @classmethod
    def from_estimate(cls, seconds: float, factor: float = 1.0) -> TimeLeft:
        """From `seconds` / `factor` to `seconds` * `factor`."""
        return cls(seconds / factor, seconds * factor)

    def __add__(self, other: TimeLeft) -> TimeLeft:
        return TimeLeft(self.low + other.low, self.high + other.high)

    def __mul__(self, factor: float) -> TimeLeft:
        return TimeLeft(factor * self.low, factor * self.high)

    @property
    def middle(self) -> float:
        """The figure that is farthest from neither end, as a ratio."""
        return sqrt(max(0.0, self.low) * self.high)

    @property
    def mean(self) -> float:
        """Between the ends, not near zero where the run may end at any moment."""
        return (self.low + self.high) / 2

    @property
    def spread(self) -> float:
        """The ratio of the ends."""
        return self.high / self.low if self.low > 0 else inf


NOTHING = TimeLeft(0.0, 0.0)


def longest_time(times: Iterable[TimeLeft]) -> TimeLeft:
    """The time until all are complete that run at once."""
    times = list(times)
    return TimeLeft(max(time.low for time in times), max(time.high for time in times))


def soonest_time(times: Iterable[TimeLeft]) -> TimeLeft:
    """The time until the first is complete of those that run at once."""
    times = list(times)
    return TimeLeft(min(time.low for time in times), min(time.high for time in times))


def length_left(expected: float, deviation: float, made: float, limit: float) -> TimeLeft:
    """How much more of a take is to come, in the unit of its length.

    expected: the median length, whose logarithm has this standard deviation. made: its length so
    far, which rules out all shorter ones. limit: the length at which it is cut off.
    """
    ends = [_length(expected, deviation, made, share) for share in (TAIL, 1 - TAIL)]
    low, high = (max(0.0, min(end, limit) - made) for end in ends)
    return TimeLeft(low, high)


def _length(expected: float, deviation: float, made: float, share: float) -> float:
    """The length that `share` of the takes longer than `made` do not reach."""
    if made <= 0:
        return expected * exp(deviation * _NORMAL.inv_cdf(share))
    passed = (log(made) - log(expected)) / deviation
    if passed > MOST_DEVIATIONS:
        # The rest of a normal distribution is almost exponential there.
        return made * exp(-log(1 - share) * deviation / passed)
    longer = 1 - _NORMAL.cdf(passed)
    return expected * exp(deviation * _NORMAL.inv_cdf(1 - (1 - share) * longer))
