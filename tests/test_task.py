"""Tasks: progress, then a result; ending early ends the work."""

import pytest

from dia_demo.task import Task, result_of


def counting(ended):
    try:
        yield from range(3)
        return "done"
    finally:
        ended.append(True)


def test_progress_then_result():
    task = Task(counting([]))
    assert list(task) == [0, 1, 2] and task.result == "done"
    assert result_of(counting([])) == "done"


def test_there_is_no_result_before_the_end():
    task = Task(counting([]))
    next(iter(task))
    with pytest.raises(AttributeError):
        _ = task.result


@pytest.mark.parametrize("close", ["the task", "the generator around it"])
def test_closing_ends_the_work(close):
    ended = []

    def around():
        task = Task(counting(ended))
        for number in task:
            yield number, task

    generator = around()
    _, task = next(generator)
    assert not ended
    task.close() if close == "the task" else generator.close()
    assert ended == [True]


def test_an_error_of_the_work_reaches_the_loop():
    def failing():
        yield 1
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        result_of(failing())
