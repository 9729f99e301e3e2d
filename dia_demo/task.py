"""Long work as a generator: it yields its progress and returns its result."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

Progress = TypeVar("Progress")
Result = TypeVar("Result")


class Task(Generic[Progress, Result]):
    """A generator that can be looped over, with its return value as `result` after the loop.

        task = Task(checkpoint.load(folder, "float32"))
        for fraction in task:
            show(fraction)
        model = task.result

    Closing the generator that loops over a task, or `close`, ends the work.
    """

    result: Result

    def __init__(self, work: Generator[Progress, None, Result]) -> None:
        self._work = work

    def __iter__(self) -> Iterator[Progress]:
        self.result = yield from self._work

    def close(self) -> None:
        self._work.close()


def result_of(work: Generator[object, None, Result]) -> Result:
    """The result of work whose progress nobody watches."""
    task = Task(work)
    for _ in task:
        pass
    return task.result
