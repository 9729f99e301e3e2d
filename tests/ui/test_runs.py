"""A run with Start and Stop buttons: its updates, its events, its sessions."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import pytest

from dia_demo.services.people import Visitor
from dia_demo.ui.runs import LongRun, Sessions, Trigger, UpdateTimes, connect_run, visitor_of
from tests.helpers.page.page_stubs import RUNNING

PAGE = SimpleNamespace(session_hash="page")


def run_updates(work):
    """A run named by its buttons, and the generator of its updates."""
    run = LongRun(["start", "other start"], "stop")
    return run, run.updates(PAGE, {"status": "begun"}, work, lambda error: {"status": str(error)})


def test_the_first_update_enables_stop_alone():
    _, updates = run_updates(lambda cancel: iter(()))
    first = next(updates)
    states = {button: first[button]["interactive"] for button in ("start", "other start", "stop")}
    assert states == {"start": False, "other start": False, "stop": True}
    assert first["status"] == "begun"


def test_every_update_has_the_buttons():
    """gradio's page loses those of an update that another one follows at once."""
    run, updates = run_updates(lambda cancel: iter([{"status": "half"}, {}]))
    states = [(update["start"]["interactive"], update["stop"]["interactive"]) for update in updates]
    assert states == [(False, True)] * 3


def test_stop_is_not_offered_again_after_it_was_pressed():
    run, updates = run_updates(lambda cancel: iter([{"status": "half"}, {"status": "late"}]))
    assert [next(updates)["stop"]["interactive"] for _ in range(2)] == [True, True]
    run.stop(PAGE)
    assert not next(updates)["stop"]["interactive"]


def test_the_idle_buttons_start_a_run():
    run, _ = run_updates(lambda cancel: iter(()))
    states = {button: update["interactive"] for button, update in run.idle().items()}
    assert states == {"start": True, "other start": True, "stop": False}


def test_the_work_has_the_last_word():
    """gradio's page may lose an update that another one follows."""
    _, updates = run_updates(lambda cancel: iter([{"status": "half"}, {"status": "done"}]))
    assert [update["status"] for update in updates] == ["begun", "half", "done"]


def test_an_error_is_the_last_update():
    def work(cancel):
        yield {"status": "half"}
        raise ValueError("broken")

    _, updates = run_updates(work)
    assert [update["status"] for update in updates] == ["begun", "half", "broken"]


@pytest.mark.parametrize("end", ["stop", "page_closed", "generator closed"])
def test_every_end_sets_the_flag(end):
    flags = []

    def work(cancel):
        flags.append(cancel)
        yield {"status": "half"}
        yield {"status": "late"}

    run, updates = run_updates(work)
    next(updates), next(updates)
    assert not flags[0].is_set()
    if end == "generator closed":
        updates.close()
    else:
        getattr(run, end)(PAGE)
    assert flags[0].is_set()


def test_a_stop_before_the_work_begins_is_not_lost():
    flags = []
    run, updates = run_updates(lambda cancel: iter(flags.append(cancel) or ()))
    next(updates)
    run.stop(PAGE)
    list(updates)
    assert flags[0].is_set()


def test_connected_buttons_return_after_an_error():
    """`then` alone is skipped by gradio's page after an error."""
    with gr.Blocks() as page:
        start, stop = gr.Button(), gr.Button()

        def generate():
            yield {}

        connect_run(page, LongRun([start], stop), [Trigger(start, generate, [])], [start, stop])
    events = list(page.fns.values())
    assert all(
        event.api_visibility == "private" for event in events if event.targets[0][1] == "click"
    )
    names = [event.api_name for event in events]
    assert "press_generate" in names and "generate" not in names
    (press,) = [event for event in events if event.api_name == "press_generate"]
    after = [event for event in events if event.trigger_after == press._id]
    assert sorted(event.trigger_only_on_failure for event in after) == [False, True]
    assert all({start, stop} == set(event.outputs) for event in after)


def test_stop_reaches_only_the_page_that_asked():
    sessions = Sessions()
    ann, ben = (SimpleNamespace(session_hash=name) for name in "ab")
    with sessions.run(ann) as first, sessions.run(ben) as second:
        sessions.stop("a")
        sessions.stop("nobody")
        assert first.is_set() and not second.is_set()
    assert second.is_set(), "a finished run must not keep the engine"


def test_a_call_that_disconnects_before_it_begins_does_not_begin():
    sessions, call = Sessions(), "0123456789abcdef" * 2
    sessions.stop_disconnected(call)
    with sessions.run(SimpleNamespace(session_hash=call)) as flag:
        assert flag.is_set()
    # A page that lost its connection may press again.
    sessions.stop_disconnected("abc4defgh7i")
    with sessions.run(SimpleNamespace(session_hash="abc4defgh7i")) as flag:
        assert not flag.is_set()


def request_from(host: str, path: str = "/gradio_api/queue/join", session: str = "s"):
    url = SimpleNamespace(path=path)
    return SimpleNamespace(session_hash=session, client=SimpleNamespace(host=host), url=url)


def test_a_visitor_is_identified_by_address_with_session():
    assert visitor_of(request_from("10.0.0.7")) == Visitor("10.0.0.7", "s")
    assert visitor_of(request_from("10.0.0.7", session=None)) == Visitor("10.0.0.7", "")
    # Each call of a program is a session of its own: together they are one visitor.
    calls = [request_from("10.0.0.7", "/x/gradio_api/call/generate", one) for one in "ab"]
    assert {visitor_of(one) for one in calls} == {Visitor("10.0.0.7", "")}
    # One person has 2^64 addresses of version 6.
    near = [request_from(f"2001:db8:0:1::{last}") for last in ("7", "ffff")]
    assert {visitor_of(one).address for one in near} == {"2001:db8:0:1::/64"}
    assert visitor_of(request_from("2001:db8:0:2::7")).address != "2001:db8:0:1::/64"
    assert visitor_of(SimpleNamespace(session_hash="s")) == Visitor("", "s")


def test_a_take_slower_than_playback_updates_the_page_less_often(monkeypatch):
    """At most five times a second before the first sound, at once with it, then once a second."""
    times, now, shown = UpdateTimes(), [100.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for number in range(50):
        seconds = max(0, number - 15) / 16  # Of sound: half of the time.
        if times.is_due(replace(RUNNING, audio_seconds=seconds)):
            shown.append(number)
        now[0] += 0.125
    assert shown == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 30, 38, 46]


def test_a_take_faster_than_playback_is_shown_as_it_comes(monkeypatch):
    times, now = UpdateTimes(), [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    shown = []
    for number in range(30):
        shown.append(times.is_due(replace(RUNNING, audio_seconds=number / 4)))
        now[0] += 0.125
    assert shown == [True, True, *[False, True] * 14]
