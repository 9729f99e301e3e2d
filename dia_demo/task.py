"""Long tasks as generators that yield their progress and return their result."""

from __future__ import annotations

from collections.abc import Generator
from typing import Generic, TypeVar

Progress = TypeVar("Progress")
Result = TypeVar("Result")


class Task(Generic[Progress, Result]):
    """An iterable generator whose return value is `result` after the loop.

        task = Task(checkpoint.load(folder, "float32"))
        for fraction in task:
            show(fraction)
        model = task.result

    `close`, or closing the generator that loops over the task, stops the work.
    """

    result: Result

    def __init__(self, work: Generator[Progress, None, Result]) -> None:
        self._work = work

    def __iter__(self) -> Generator[Progress, None, None]:
        self.result = yield from self._work

    def close(self) -> None:
        self._work.close()


def result_of(work: Generator[object, None, Result]) -> Result:
    """Run a task to its end and return its result, ignoring its progress."""
    task = Task(work)
    for _ in task:
        pass
    return task.result
