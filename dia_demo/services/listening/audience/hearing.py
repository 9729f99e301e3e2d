"""What a listener can have heard of a pair: pages claim it, and the server's clock bounds it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from dia_demo.errors import InputError

# Clocks of sound cards are not exact, and a page counts until its fade has ended.
TOLERANCE_SECONDS, TOLERANCE_PART = 0.5, 0.02
AGAIN = (
    "This vote was not counted, because this pair's clips have not been sent to this page "
    "since the program started. Listen to them again, then vote."
)
TOO_SOON = (
    "This vote was not counted: it claims {claimed:.1f} s of listening, and the clips were sent "
    "only {passed:.1f} s before. Listen to them again, then vote."
)


class UnheardError(InputError):
    """The clips cannot have been listened to for as long as a page says."""


class Hearing:
    """When each clip was first sent to the listener. Only one can be played at a time.

    clock: seconds, which nobody can set back.
    """

    def __init__(self) -> None:
        self.clock = time.monotonic
        self._sent: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def note_sent(self, trial: str, letter: str) -> None:
        """A clip of a trial is sent now."""
        with self._lock:
            self._sent.setdefault((trial, letter), self.clock())

    def check(self, trial: str, letters: Sequence[str], claims: Mapping[str, float]) -> None:
        """Raise UnheardError if the clips cannot have been heard so long (see `check_claims`)."""
        with self._lock:
            sent = [self._sent.get((trial, letter)) for letter in letters]
            now = self.clock()
        check_claims(sent, [claims.get(letter, 0.0) for letter in letters], now)


def check_claims(sent: Sequence[float | None], claims: Sequence[float], now: float) -> None:
    """Raise UnheardError if the seconds that a page claims for each clip have not passed since it
    was sent, or their sum since the first was. sent: None for a clip that was not."""
    times = [at for at in sent if at is not None]
    if len(times) < len(claims):
        raise UnheardError(AGAIN)
    for claimed, at in zip(claims, times, strict=True):
        _check_one(claimed, now - at)
    _check_one(sum(claims), now - min(times))


def _check_one(claimed: float, passed: float) -> None:
    # Written so that it refuses what is not a number.
    if not claimed <= passed * (1 + TOLERANCE_PART) + TOLERANCE_SECONDS:
        raise UnheardError(TOO_SOON.format(claimed=claimed, passed=passed))
