"""Rows whose listeners have little sound left are served first, and remain the same rows."""

import numpy as np
import pytest

from dia_demo.engine.batch import Prefill
from dia_demo.engine.row import Row
from dia_demo.engine.scheduler import (
    ENOUGH_SECONDS,
    LONGEST_BREAK_SECONDS,
    FirstCome,
    Scheduler,
    choose_rows,
)
from tests.engine.test_scheduler import different_rows, fast_model, finish, make_row, model

pytestmark = pytest.mark.processor
__all__ = ["fast_model", "model"]  # Fixtures.


def heard(seconds: float, **params) -> Row:
    """A row whose listener always has so much sound left."""
    row = make_row(**params)
    row.sound_left = lambda now: seconds
    return row


def silent(rested: float) -> Row:
    """A row without a listener, at time 0, that was left out for so many seconds."""
    row = make_row()
    row.stepped_at = -rested
    return row


def test_who_has_little_sound_left_is_served_first():
    hungry, fed, bulk = heard(0.1), heard(ENOUGH_SECONDS + 1), silent(0.0)
    assert choose_rows([fed, hungry, bulk], 8, 0.0) == [hungry]
    assert choose_rows([fed, bulk], 8, 0.0) == [fed, bulk]


def test_a_row_without_a_listener_is_not_left_out_for_long():
    hungry, bulk = heard(0.1), silent(LONGEST_BREAK_SECONDS + 0.01)
    assert choose_rows([hungry, bulk], 8, 0.0) == [hungry, bulk]
    assert choose_rows([hungry, bulk], 8, 0.1) == [hungry]


def test_rows_without_listeners_take_part_together():
    """Each by itself would change the batch as often as there are rows."""
    hungry, overdue, others = heard(0.1), silent(LONGEST_BREAK_SECONDS + 0.01), silent(0.0)
    assert choose_rows([others, hungry, overdue], 8, 0.0) == [others, hungry, overdue]


def test_while_sound_is_awaited_that_another_thread_makes_only_those_left_out_for_long_go_on():
    fed, bulk = heard(ENOUGH_SECONDS + 1), silent(0.0)
    assert choose_rows([fed, bulk], 8, 0.0, is_sound_awaited=True) == []
    later = LONGEST_BREAK_SECONDS + 0.01
    assert choose_rows([fed, bulk], 8, later, is_sound_awaited=True) == [bulk]


def test_of_more_rows_than_places_those_with_the_least_sound_go_first():
    rows = [heard(seconds) for seconds in (1.0, -3.0, 0.5, 1.5)]
    assert choose_rows(rows, 2, 0.0) == [rows[1], rows[2]]


def test_a_row_that_is_left_out_at_times_is_the_same(fast_model):
    alone = finish(fast_model, different_rows())
    rows, calls = different_rows(), iter(range(10**6))
    for number, row in enumerate(rows):
        row.sound_left = lambda now, number=number: 0.0 if next(calls) % 5 != number else 99.0
    for mine, other in zip(finish(fast_model, rows), alone, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_spare_places_are_for_those_who_may_exceed(model):
    class Generous(FirstCome):
        def next(self, waiting):
            return next((row for row in waiting if row.owner == "new"), waiting[0])

        def may_exceed(self, row):
            return row.owner == "new"

    scheduler = Scheduler(model, 1, Generous(), spare=1)
    rows = [make_row(seed=seed) for seed in range(3)]
    rows[2].owner = "new"
    scheduler.add(rows[:2])
    scheduler.schedule()
    assert scheduler.running == rows[:1] and scheduler.waiting == rows[1:2]
    scheduler.add(rows[2:])
    scheduler.schedule()
    assert scheduler.running == [rows[0], rows[2]] and scheduler.waiting == [rows[1]]
    scheduler.close()


@pytest.mark.parametrize(
    "left, others_left, read",
    [(None, None, 3), (-0.5, -0.1, 3), (-0.5, None, 1), (0.5, None, 1), (0.5, -0.1, 1)],
)
def test_more_than_advance_are_read_at_once_unless_a_listener_would_wait(
    model, monkeypatch, left, others_left, read
):
    """Beside steps it takes longer: one that advances waits for two that come with it, but not for
    those without a listener if it has one."""
    beside = []
    monkeypatch.setattr(Prefill, "begin", lambda prefill, row: beside.append(row))
    scheduler, rows = Scheduler(model), [make_row(seed=seed) for seed in range(4)]
    for row, seconds in zip(rows, (left, others_left, others_left, None), strict=True):
        row.sound_left = lambda now, seconds=seconds: seconds
    for coming in (rows[:1], rows[1:3], rows[3:]):
        scheduler.add(coming)
        scheduler.schedule()
        scheduler.step()
    assert [row.cache is not None for row in rows] == [True] * read + [False] * (4 - read)
    assert beside[-1] is rows[read]
    scheduler.close()


def test_those_with_listeners_are_read_first(model, monkeypatch):
    begun = []
    monkeypatch.setattr(Prefill, "begin", lambda prefill, row: begun.append(row))
    scheduler, rows = Scheduler(model), [make_row(seed=seed) for seed in range(4)]
    rows[3].sound_left = lambda now: -0.1
    for coming in (rows[:2], rows[2:]):
        scheduler.add(coming)
        scheduler.schedule()
        scheduler.step()
    assert begun == [rows[3]]
    scheduler.close()
