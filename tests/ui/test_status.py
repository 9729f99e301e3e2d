"""What the progress bar shows when a run is over, on the Generate and the Compare tab."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dia_demo.engine.events import Cancelled, Failed, Finished, Loading, Progress
from dia_demo.services.listening.render import RenderEnded
from dia_demo.ui.compare.progress import status_of as plan_status
from dia_demo.ui.html import status_card
from dia_demo.ui.status import PREPARING, Status, status_of
from tests.helpers.page.page_stubs import result

# 24 of an expected 30 seconds: the bar is at 80%.
SPEAKING = status_of(
    Progress(
        step=1000,
        audio_seconds=24.0,
        wall_seconds=60.0,
        realtime_factor=0.4,
        expected_seconds=30.0,
    ),
    PREPARING,
)


def bar(status: Status) -> tuple[int, int, bool]:
    """A status card's (told percentage, drawn percentage, whether it is drawn at once)."""
    html = status_card(status)
    told = int(re.search(r'aria-valuenow="(\d+)"', html)[1])
    style = re.search(r'class="bar-fill" style="width: (\d+)%([^"]*)"', html)
    return told, int(style[1]), "transition: none" in style[2]


def test_the_bar_glides_while_a_run_speaks():
    assert bar(SPEAKING) == (80, 80, False)


@pytest.mark.parametrize(
    ("event", "percent"),
    [
        (Finished(result("end")), 100),
        (Finished(result("max_tokens")), 100),
        (Cancelled(result("cancelled")), 80),
        (Cancelled(result("cancelled", samples=0)), 0),
        (Cancelled(None), 0),
        (Failed("The disk is full."), 0),
    ],
    ids=[
        "done early",
        "cut",
        "stopped",
        "stopped before a sound",
        "stopped in the queue",
        "failed",
    ],
)
def test_at_the_end_the_bar_is_at_once_where_it_belongs(event, percent):
    """Full for a take that is whole, however short; where it was for one that was stopped."""
    assert bar(status_of(event, SPEAKING)) == (percent, percent, True)


def test_a_run_stopped_while_nothing_is_known_has_an_empty_bar():
    waiting = replace(status_of(Loading("Reading", 0.5), PREPARING), fraction=None)
    assert bar(status_of(Cancelled(result("cancelled")), waiting)) == (0, 0, True)


@pytest.mark.parametrize(
    ("ended", "percent"),
    [
        (RenderEnded(False, 6, 6, 12.0, 40.0, ()), 100),
        (RenderEnded(True, 3, 6, 12.0, 40.0, ()), 50),
        (RenderEnded(False, 3, 6, 12.0, 40.0, ("It was silent.",)), 50),
    ],
    ids=["done", "stopped", "a take failed"],
)
def test_a_plan_fills_the_bar_by_the_pairs_it_made(ended, percent):
    status = plan_status(ended)
    assert bar(status) == (percent, percent, True) and status.announcement
