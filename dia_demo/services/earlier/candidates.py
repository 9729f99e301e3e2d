"""Candidates: takes of one request with different seeds, made together to choose from.

Every candidate that was made is one of the person's earlier takes, so nothing is lost with the
list, which is in memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from dia_demo.config import SEED_LIMIT, random_seed
from dia_demo.engine.scheduler import PLACES
from dia_demo.errors import InputError
from dia_demo.services.take import Request

FEWEST, MOST = 2, PLACES
# The people whose candidates are in memory, the latest.
MOST_LISTS = 50
GONE = "These candidates are no longer listed. Your earlier takes have those that were not deleted."


@dataclass
class Candidate:
    """One candidate.

    name: a letter. identity: of the earlier take it is, empty before it is made. state: waiting,
    running, good, faulty (made, but its verdict is not good) or failed. verdict: what is wrong with
    it. seconds: of its audio, so far while it is running.
    """

    name: str
    request: Request
    identity: str = ""
    state: str = "waiting"
    seconds: float = 0.0
    words_per_second: float | None = None
    verdict: str = ""

    @property
    def is_made(self) -> bool:
        return bool(self.identity)


class Candidates:
    """The candidates of one request. chosen: the index of the one that the player has."""

    def __init__(self, request: Request, count: int) -> None:
        """Raises InputError for a number of candidates that is not allowed."""
        if not FEWEST <= count <= MOST:
            raise InputError(f"Choose from {FEWEST} to {MOST} candidates, not {count}.")
        first = request.params.seed
        seeds = [(first + k) % (SEED_LIMIT + 1) for k in range(count)]
        self.all = [
            Candidate(name, with_seed(request, seed))
            for name, seed in zip(ascii_uppercase, seeds, strict=False)
        ]
        self.chosen: int | None = None

    def index_of(self, identity: object) -> int:
        """Which candidate this earlier take is. Raises InputError if it is none of them."""
        for index, candidate in enumerate(self.all):
            if candidate.is_made and candidate.identity == identity:
                return index
        raise InputError(GONE)

    def best(self, indices: Iterable[int]) -> int | None:
        """The first of these that was made and is good, otherwise the first that was made."""
        made = [index for index in indices if self.all[index].is_made]
        good = [index for index in made if self.all[index].state == "good"]
        return next(iter(good or made), None)

    def begin_again(self, index: int) -> Candidate:
        """Put a candidate with another seed in the place of this one, which is returned."""
        before = self.all[index]
        self.all[index] = Candidate(before.name, with_seed(before.request, random_seed()))
        return before

    def keep_chosen(self) -> list[str]:
        """Remove all but the chosen one from the list: the identities of their earlier takes."""
        if self.chosen is None:
            raise InputError("Choose a candidate first.")
        chosen = self.all[self.chosen]
        others = [other.identity for other in self.all if other.is_made and other is not chosen]
        self.all, self.chosen = [chosen], 0
        return others

    def rows(self, running: bool = False) -> dict[str, Any]:
        """What the page's list shows."""
        return {
            "running": running,
            "candidates": [
                {
                    "name": candidate.name,
                    "id": candidate.identity,
                    "state": candidate.state,
                    "seconds": round(candidate.seconds, 1),
                    "pace": candidate.words_per_second,
                    "seed": candidate.request.params.seed,
                    "verdict": candidate.verdict,
                    "chosen": index == self.chosen,
                }
                for index, candidate in enumerate(self.all)
            ],
        }


class CandidateLists:
    """The latest candidates of each person."""

    def __init__(self) -> None:
        self._lists: OrderedDict[str, Candidates] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: str, candidates: Candidates) -> None:
        """Replace the candidates that the person had."""
        with self._lock:
            self._lists[key] = candidates
            self._lists.move_to_end(key)
            while len(self._lists) > MOST_LISTS:
                self._lists.popitem(last=False)

    def has(self, key: object) -> bool:
        """Whether the person has candidates."""
        return str(key) in self._lists

    def get(self, key: object) -> Candidates:
        """The person's candidates. Raises InputError if there are none."""
        with self._lock:
            candidates = self._lists.get(str(key))
        if candidates is None:
            raise InputError(GONE)
        return candidates


def with_seed(request: Request, seed: int) -> Request:
    """The same request with another seed."""
    return replace(request, params=replace(request.params, seed=seed))
