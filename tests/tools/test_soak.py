"""The soak: a short one holds its bars, and its table tells wrong answers apart."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dia_demo.files import ROOT
from tools.soak.app import Usage
from tools.soak.jobs import FORMATS, make_jobs
from tools.soak.report import Tally, bars, table

EXPECTED = {"one": b"its own answer", "other": b"that of another"}
USED = Usage(10**9, 10, 5, 20, 3, 0)


def tally(*answers: bytes) -> Tally:
    found = Tally()
    for answer in answers:
        found.note_answer("one", answer, EXPECTED)
    return found


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"that of another", "mixed"),
        (b"its own answerits own answer", "twice"),
        (b"its own answer, nearly", "wrong"),
        (b"its owl answer", "wrong"),
        (b"its own", "wrong"),
        (b"", "wrong"),
    ],
)
def test_a_wrong_answer_is_one_of_three_kinds(answer, kind):
    found = tally(EXPECTED["one"], answer)
    assert found.counts == {"answered": 2, kind: 1}
    assert found.problems[0].startswith(f"{kind}: one: {len(answer)} bytes of 14")
    missed = [line for line, held in bars(found, 0.0, USED, USED, 0).items() if not held]
    assert len(missed) == 1 and missed[0].startswith("1 ")


def test_what_is_left_open_is_missed():
    more = Usage(10**9, 11, 6, 21, 3, 1)
    found = bars(tally(EXPECTED["one"]), 0.06, USED, more, 1)
    assert sum(not held for held in found.values()) == 6
    assert "MISSED threads: 10 before, 11 after" in table(tally(), 60, found, more)
    assert all(bars(tally(EXPECTED["one"]), 0.04, more, USED, 0).values())


def test_memory_is_compared_with_that_after_the_begin():
    found = Tally(
        memory=[(second, 100 + (second >= 10) * 10 + (second > 90)) for second in range(100)]
    )
    assert found.growth(10, 100) == pytest.approx(1 / 110)
    assert found.growth(0, 100) == pytest.approx(11 / 100)
    assert Tally().growth(0, 10) == 0


def test_all_routes_are_asked_for_with_seeds_of_their_own():
    jobs = make_jobs()
    assert len({job.body["seed"] for job in jobs}) == len(jobs)
    assert {job.route for job in jobs} == {
        "speech", "events", "captions", "sentences", "page", "dialogue", "batch",
    }  # fmt: skip
    assert {job.body.get("response_format") for job in jobs} >= set(FORMATS)


@pytest.mark.long
def test_a_short_soak_loses_nothing():
    """Its memory says nothing: the first takes still fill the caches."""
    command = [sys.executable, "-m", "tools.soak", "--clients", "6", "--seconds", "15"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    missed = [line for line in out.stdout.splitlines() if line.startswith("MISSED")]
    assert "held   0 requests that stayed connected were lost" in out.stdout, out.stderr
    assert [line for line in missed if not line.startswith("MISSED memory")] == [], out.stdout
