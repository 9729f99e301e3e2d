"""The timed trial: errors and failures exclude, noise does not decide, results are stored."""

import json

import pytest
import torch

from dia_demo.model import autotune
from dia_demo.model.autotune import Budget, Case, first_near_fastest, run_trial, time_in_turns

EXPECTED = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
BUDGET = Budget(seconds=0.05, repeats=6, calls=8)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)


@pytest.fixture
def clock(monkeypatch):
    """A clock in seconds that only `clock.time += ...` moves."""

    class Clock:
        time = 0.0

    monkeypatch.setattr(autotune, "perf_counter", lambda: Clock.time)
    return Clock


class Stub:
    """An implementation that takes these seconds, one after another, and then the last again."""

    def __init__(self, clock, *seconds):
        self.clock, self.seconds, self.calls = clock, list(seconds), []

    def __call__(self, times):
        self.calls.append(times)
        seconds = self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]
        self.clock.time += seconds * times


def case(result, largest_error=1e-2):
    return Case(lambda times: result, EXPECTED, largest_error)


def test_an_error_above_the_limit_excludes():
    off = EXPECTED * 1.05
    implementations = {"off": lambda: [case(off)], "right": lambda: [case(EXPECTED)]}
    assert list(run_trial("products", implementations, BUDGET)) == ["right"]
    assert autotune.wrong_results() == {"products": {"off": "5.0e-02"}}


def test_a_later_trial_that_passes_takes_the_note_back():
    run_trial("products", {"off": lambda: [case(EXPECTED * torch.nan)]}, BUDGET)
    run_trial("sums", {"off": lambda: [case(EXPECTED * 2)]}, BUDGET)
    assert set(autotune.wrong_results()) == {"products", "sums"}
    run_trial("products", {"off": lambda: [case(EXPECTED)]}, BUDGET)
    assert autotune.wrong_results() == {"sums": {"off": "1.0e+00"}}


def test_wrong_results_of_another_processor_are_not_named(monkeypatch):
    run_trial("products", {"off": lambda: [case(EXPECTED * 2)]}, BUDGET)
    monkeypatch.setattr(autotune, "digest", lambda: "another processor's")
    assert autotune.wrong_results() == {}


def test_an_error_in_one_case_excludes():
    cases = [case(EXPECTED), case(EXPECTED * torch.nan)]
    assert run_trial("products", {"off": lambda: cases}, BUDGET) == {}


def test_a_reference_has_no_limit():
    assert list(run_trial("products", {"plain": lambda: [case(EXPECTED * 2, None)]}, BUDGET)) == [
        "plain"
    ]


def test_an_implementation_that_raises_is_left_out():
    def broken():
        raise RuntimeError("could not create a primitive")

    implementations = {"broken": broken, "right": lambda: [case(EXPECTED)]}
    assert list(run_trial("products", implementations, BUDGET)) == ["right"]


def test_only_the_rows_that_are_expected_are_compared():
    longer = torch.cat([EXPECTED, torch.full((5,), torch.nan)])
    assert list(run_trial("products", {"long": lambda: [case(longer)]}, BUDGET)) == ["long"]


def test_a_slow_moment_is_shared_by_all(clock):
    """Timed one after the other, only one of two equal implementations would be slowed down."""
    order = []
    runs = {name: [lambda times, name=name: order.append(name)] for name in "ab"}
    time_in_turns(runs, BUDGET)
    assert order[:6] == ["a", "b"] * 3


def test_one_stalled_call_decides_no_trial(clock):
    """Another program may stall any one call: the first took 74 ms where the kernel takes 24."""
    stub = Stub(clock, 0.074, 0.024)
    assert time_in_turns({"a": [stub]}, BUDGET) == {"a": [pytest.approx(24.0)]}
    assert stub.calls == [1, 1, 1]


def test_a_kernel_of_seconds_is_called_once(clock):
    stub = Stub(clock, 2.0)
    assert time_in_turns({"a": [stub]}, BUDGET) == {"a": [pytest.approx(2000.0)]}
    assert stub.calls == [1]


def test_fast_calls_are_timed_together(clock):
    stub = Stub(clock, 1e-4)
    assert time_in_turns({"a": [stub]}, BUDGET) == {"a": [pytest.approx(0.1)]}
    assert stub.calls == [1, 8, 8, 8, 8, 8]


@pytest.mark.parametrize(
    ("milliseconds", "chosen"),
    [
        ({"first": [1.0, 1.2], "other": [0.9, 1.0]}, "first"),
        ({"first": [1.0, 5.0], "other": [1.2, 1.0]}, "other"),
        ({"first": [1.0, 5.0], "other": [3.0, 1.0]}, "other"),
        ({"first": [1.0, 3.0], "other": [5.0, 1.0]}, "first"),
    ],
)
def test_the_choice_is_near_the_fastest_in_every_case(milliseconds, chosen):
    assert first_near_fastest(milliseconds) == chosen


def test_results_of_other_keys_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path / "cache")
    assert autotune.remembered("a") is None
    autotune.remember("a", {"name": "x"})
    autotune.remember("b", {"name": "y"})
    assert autotune.remembered("a") == {"name": "x"} and autotune.remembered("b") == {"name": "y"}


@pytest.mark.parametrize("content", ["{nonsense", "[]", json.dumps({"a": 5})])
def test_a_damaged_file_of_results_counts_as_empty(tmp_path, monkeypatch, content):
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)
    (tmp_path / "kernels.json").write_text(content, encoding="utf-8")
    assert autotune.remembered("a") is None
