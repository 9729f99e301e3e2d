"""Checks of implementations: order decides, errors and failures exclude, results are stored."""

import json

import pytest
import torch

from dia_demo.model import autotune
from dia_demo.model.autotune import Case, choose_correct, milliseconds_of

EXPECTED = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)


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
    """A call that takes these seconds, one after another, and then the last again."""

    def __init__(self, clock, *seconds):
        self.clock, self.seconds, self.calls = clock, list(seconds), 0

    def __call__(self):
        self.calls += 1
        self.clock.time += self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]


def case(result, largest_error=1e-2):
    return Case(lambda: result, EXPECTED, largest_error)


def test_the_first_that_is_right_is_taken():
    right = {name: lambda: [case(EXPECTED)] for name in ("first", "second")}
    assert choose_correct("products", right) == "first"


def test_an_error_above_the_limit_excludes():
    off = EXPECTED * 1.05
    implementations = {"off": lambda: [case(off)], "right": lambda: [case(EXPECTED)]}
    assert choose_correct("products", implementations) == "right"
    assert autotune.wrong_results() == {"products": {"off": "5.0e-02"}}


def test_a_later_check_that_passes_takes_the_note_back():
    choose_correct("products", {"off": lambda: [case(EXPECTED * torch.nan)]})
    choose_correct("sums", {"off": lambda: [case(EXPECTED * 2)]})
    assert set(autotune.wrong_results()) == {"products", "sums"}
    choose_correct("products", {"off": lambda: [case(EXPECTED)]})
    assert autotune.wrong_results() == {"sums": {"off": "1.0e+00"}}


def test_wrong_results_of_another_processor_are_not_named(monkeypatch):
    choose_correct("products", {"off": lambda: [case(EXPECTED * 2)]})
    monkeypatch.setattr(autotune, "digest", lambda: "another processor's")
    assert autotune.wrong_results() == {}


def test_an_error_in_one_case_excludes():
    cases = [case(EXPECTED), case(EXPECTED * torch.nan)]
    assert choose_correct("products", {"off": lambda: cases}) is None


def test_a_reference_has_no_limit():
    assert choose_correct("products", {"plain": lambda: [case(EXPECTED * 2, None)]}) == "plain"


def test_an_implementation_that_raises_is_left_out():
    def broken():
        raise RuntimeError("could not create a primitive")

    implementations = {"broken": broken, "right": lambda: [case(EXPECTED)]}
    assert choose_correct("products", implementations) == "right"


def test_only_the_rows_that_are_expected_are_compared():
    longer = torch.cat([EXPECTED, torch.full((5,), torch.nan)])
    assert choose_correct("products", {"long": lambda: [case(longer)]}) == "long"


def test_one_stalled_call_is_not_the_time(clock):
    """Another program may stall any one call: the first took 74 ms where the kernel takes 24."""
    stub = Stub(clock, 0.074, 0.024)
    assert milliseconds_of(stub, 0.05, 6) == pytest.approx(24.0)
    assert stub.calls == 3


def test_what_takes_seconds_is_called_once(clock):
    stub = Stub(clock, 2.0)
    assert milliseconds_of(stub, 0.05, 6) == pytest.approx(2000.0)
    assert stub.calls == 1


def test_results_of_other_keys_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path / "cache")
    assert autotune.recall("a") is None
    autotune.remember("a", {"name": "x"})
    autotune.remember("b", {"name": "y"})
    assert autotune.recall("a") == {"name": "x"} and autotune.recall("b") == {"name": "y"}


@pytest.mark.parametrize("content", ["{nonsense", "[]", json.dumps({"a": 5})])
def test_a_damaged_file_of_results_counts_as_empty(tmp_path, monkeypatch, content):
    monkeypatch.setattr(autotune, "cache_folder", lambda: tmp_path)
    (tmp_path / "kernels.json").write_text(content, encoding="utf-8")
    assert autotune.recall("a") is None
