"""The Compare tab without a browser: what the room is sent, and what the page shows."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import InputError
from dia_demo.services.listening.render import RenderEnded, RenderProgress
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import new_key
from dia_demo.ui.compare.form.fields import CompareForm
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.html import result
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.compare.progress import status_of
from dia_demo.ui.compare.room_api import RoomApi
from tests.helpers.comparisons import HEARD
from tests.helpers.page.page_stubs import COMPARE_SCRIPT, compare_values, parts_by_name

# What a page sends of a pair that was listened to.
LISTENED = {"heard": HEARD, "covered": HEARD}
PAGE = SimpleNamespace(session_hash="page")


@pytest.fixture(scope="module")
def unvoted(synthesis, side_values, tmp_path_factory):
    """Ann's comparison, made and not voted on: the store it is in, her key, its id, the room."""
    store, key = ComparisonStore(tmp_path_factory.mktemp("kept"), synthesis), new_key()
    identity = store.create(
        key, CompareForm.from_values(compare_values(side_values)).plan(synthesis)
    )
    list(store.run(key, identity, threading.Event()))
    return SimpleNamespace(store=store, key=key, id=identity, lab=RoomApi(store))


@pytest.fixture
def copied_id(unvoted):
    """The id of a copy of Ann's comparison for a test to vote on."""
    identity = unvoted.store.repeat(unvoted.key, unvoted.id)
    list(unvoted.store.run(unvoted.key, identity, threading.Event()))
    return identity


def test_the_room_is_told_nothing_of_the_sides(unvoted):
    state = unvoted.lab.ask({"do": "look", "key": unvoted.key, "id": unvoted.id})
    assert state["trial"]["letters"] == "AB" and state["result"] == "" and not state["open"]
    for secret in ("flip", "gain", "temperature", "lufs", "seconds", "setting", "seed"):
        assert secret not in json.dumps(state).replace(COMPARE_SCRIPT, "").lower()


def test_what_the_room_is_told_does_not_depend_on_the_sides(unvoted):
    """The same comparison with its sides swapped gives the same answers, but for the sound."""
    comparison = unvoted.store.get(unvoted.key, unvoted.id)
    before = unvoted.lab.ask({"do": "look", "key": unvoted.key, "id": unvoted.id})
    plan = comparison.plan
    flipped = {
        name: replace(secret, flip=not secret.flip, gains_db=secret.gains_db[::-1])
        for name, secret in plan.secrets.items()
    }
    comparison.plan = replace(plan, secrets=flipped)
    try:
        assert unvoted.lab.ask({"do": "look", "key": unvoted.key, "id": unvoted.id}) == before
    finally:
        comparison.plan = plan


def test_only_the_present_pair_is_heard_while_blind(unvoted):
    plan = unvoted.store.get(unvoted.key, unvoted.id).plan
    ask = {"key": unvoted.key, "id": unvoted.id}
    first, second = (trial.id for trial in plan.trials)
    assert "clip" in unvoted.lab.ask({"do": "clip", "trial": first, "letter": "A"} | ask)
    vote = {"do": "vote", "trial": first, "vote": "A"}
    for wrong in (
        {"do": "clip", "trial": second, "letter": "A"},
        {"do": "clip", "trial": first, "letter": "X"},
        {"do": "clip", "trial": first, "letter": ""},
        {"do": "clip", "trial": "../plan.json", "letter": "A"},
        {"do": "pictures", "trial": first},
        vote | {"heard": HEARD},
        vote | {"heard": HEARD, "covered": {"A": 9}},
        vote | {"heard": HEARD, "covered": {"A": float("nan"), "B": 9}},
        vote | {"heard": HEARD, "covered": "long"},
        {"do": "everything"},
    ):
        assert unvoted.lab.ask(wrong | ask).keys() <= {"error", "again"}, wrong
    assert unvoted.store.get(unvoted.key, unvoted.id).votes == {}


def test_nobody_else_is_answered(unvoted):
    for key in (new_key(), "", None, 7):
        answered = unvoted.lab.ask({"do": "look", "key": key, "id": unvoted.id})
        assert list(answered) == ["error"]
    assert list(unvoted.lab.ask(None)) == ["error"]


def test_votes_lead_to_the_result(unvoted, copied_id):
    ask = {"key": unvoted.key, "id": copied_id}
    state = unvoted.lab.ask({"do": "look"} | ask)
    # Every look at the clock is half a minute after the last.
    unvoted.store.get(unvoted.key, copied_id).hearing.clock = count(0, 30).__next__
    for number in (1, 2):
        assert state["trial"]["number"] == number
        for letter in "AB":
            unvoted.lab.ask({"do": "clip", "trial": state["trial"]["id"], "letter": letter} | ask)
        vote = {"do": "vote", "trial": state["trial"]["id"], "vote": "A"} | LISTENED
        state = unvoted.lab.ask(vote | {"strength": 2, "note": "<i>rough</i>"} | ask)
    assert state["open"] and state["trial"] is None
    assert "Too few scripts" in state["result"] and "Pair 2" in state["result"]
    assert "&lt;i&gt;rough" in state["result"] and "<i>rough" not in state["result"]
    trial = unvoted.store.get(unvoted.key, copied_id).plan.trials[0].id
    pictures = unvoted.lab.ask({"do": "pictures", "trial": trial} | ask)["html"]
    assert pictures.count("<svg") == 2 and pictures.count("data:image/png") == 2
    assert "clip" in unvoted.lab.ask({"do": "clip", "trial": trial, "letter": "B"} | ask)


def test_ending_early_closes_the_vote(unvoted, copied_id):
    ask = {"key": unvoted.key, "id": copied_id}
    state = unvoted.lab.ask({"do": "reveal"} | ask)
    assert state["open"] and "Not judged" in state["result"]
    trial = unvoted.store.get(unvoted.key, copied_id).plan.trials[0].id
    vote = {"do": "vote", "trial": trial, "vote": "A"} | LISTENED
    assert "votes are no longer accepted" in unvoted.lab.ask(vote | ask)["error"]


def test_the_zip_comes_with_the_end(unvoted, copied_id, synthesis, tmp_path):
    parts = parts_by_name(CompareParts)
    handlers = CompareHandlers(synthesis, unvoted.store, parts)
    assert handlers.zip(unvoted.key, copied_id)["file"] == {}
    unvoted.store.get(unvoted.key, copied_id).reveal()
    zipped = Path(handlers.zip(unvoted.key, copied_id)["file"]["file"])
    assert zipped.name == f"comparison-{copied_id}.zip"
    upload = tmp_path / "upload.zip"
    upload.write_bytes(zipped.read_bytes())
    assert handlers.load(PAGE, unvoted.key, str(upload))["kept"]["value"] != copied_id
    assert not upload.exists(), "what is kept is not kept twice"


def test_the_buttons_are_disabled_only_while_the_run_lasts(unvoted, synthesis):
    parts = parts_by_name(CompareParts)
    handlers = CompareHandlers(synthesis, unvoted.store, parts)
    identity = unvoted.store.repeat(unvoted.key, unvoted.id)
    assert handlers.idle(PAGE, unvoted.key, identity)["resume"]["interactive"]
    updates = list(handlers.resume(PAGE, unvoted.key, identity))
    assert any('data-state="done"' in update.get("status", "") for update in updates)
    assert not any(update[name]["interactive"] for update in updates for name in ("make", "resume"))
    ready = handlers.idle(PAGE, unvoted.key, identity)
    assert ready["make"]["interactive"] and not ready["stop"]["interactive"]
    assert not ready["resume"]["interactive"], "nothing is missing"
    assert not handlers.idle(PAGE, unvoted.key, None)["resume"]["interactive"]


@pytest.fixture
def handlers(unvoted, synthesis):
    return CompareHandlers(synthesis, unvoted.store, parts_by_name(CompareParts))


def test_pairs_are_generated_after_their_page_has_left(unvoted, handlers):
    identity = unvoted.store.repeat(unvoted.key, unvoted.id)
    reloaded = SimpleNamespace(session_hash="reloaded")
    watching = handlers.resume(PAGE, unvoted.key, identity)
    next(watching)
    watching.close()
    assert list(handlers.rejoin(reloaded, unvoted.key))[0]["lab"]["id"] == identity
    assert 'data-state="done"' in handlers.run.find(reloaded, unvoted.key).shown["status"]
    assert all(trial.made for trial in unvoted.store.get(unvoted.key, identity).plan.trials)


def test_another_comparison_stays_open_while_pairs_are_made(unvoted, handlers, monkeypatch):
    """Its page is told how far they are; a second page of the same person shows them."""
    opened, run = threading.Event(), unvoted.store.run

    def run_once_opened(*given):
        opened.wait(60)
        yield from run(*given)

    monkeypatch.setattr(unvoted.store, "run", run_once_opened)
    identity = unvoted.store.repeat(unvoted.key, unvoted.id)
    second = SimpleNamespace(session_hash="second")
    making = handlers.resume(PAGE, unvoted.key, identity)
    assert next(making)["lab"]["id"] == identity
    watching = handlers.rejoin(second, unvoted.key)
    there = [next(watching)]
    shown = handlers.show(PAGE, unvoted.key, unvoted.id)
    opened.set()
    here = list(making)
    there += watching
    assert {update["lab"]["id"] for update in here} == {unvoted.id}
    assert {update["lab"]["tick"] for update in here} == {shown["lab"]["tick"]}
    assert not any({"kept", "setup", "downloads"} & update.keys() for update in here)
    assert any('data-state="done"' in update.get("status", "") for update in here)
    assert {update["lab"]["id"] for update in there if "lab" in update} == {identity}


def test_a_second_comparison_waits_for_the_first(unvoted, handlers, side_values, monkeypatch):
    """The page shows the one that is being generated, and no second one is stored."""
    monkeypatch.setattr("gradio.Info", lambda *_, **__: None)
    identity = unvoted.store.repeat(unvoted.key, unvoted.id)
    before = len(unvoted.store.list(unvoted.key))
    other = SimpleNamespace(session_hash="other")
    first = handlers.resume(PAGE, unvoted.key, identity)
    next(first)
    shown = next(handlers.make(other, unvoted.key, *compare_values(side_values)))
    assert shown["lab"]["id"] == identity and len(unvoted.store.list(unvoted.key)) == before
    list(first)


def test_an_abandoned_comparison_says_why_it_was_stopped(unvoted, handlers, monkeypatch):
    monkeypatch.setattr("dia_demo.ui.person_runs.UNATTENDED_SECONDS", 0.0)
    identity = unvoted.store.repeat(unvoted.key, unvoted.id)
    watching = handlers.resume(PAGE, unvoted.key, identity)
    next(watching)
    watching.close()
    list(handlers.run.find(PAGE, unvoted.key).watch())
    shown = handlers.show(PAGE, unvoted.key, identity)
    assert "this page was closed for 15 min" in shown["status"]
    assert "Press Resume" in shown["status"] and shown["resume"]["interactive"]


def test_a_round_or_abx_comparison_has_a_chart(unvoted, synthesis, side_values):
    form = CompareForm.from_values(
        compare_values(side_values, kind="round", differs="top_k", values="3, 9, 30", seeds=1)
    )
    for plan in (
        form.plan(synthesis),
        CompareForm.from_values(compare_values(side_values, kind="abx", seeds=1)).plan(synthesis),
    ):
        identity = unvoted.store.create(unvoted.key, plan)
        list(unvoted.store.run(unvoted.key, identity, threading.Event()))
        comparison = unvoted.store.get(unvoted.key, identity)
        for trial in plan.trials:
            comparison.vote(trial.id, "A", HEARD)
        shown = result(comparison)
        assert "<svg" in shown and shown.count("<circle") == (3 if len(plan.settings) == 3 else 1)
        unvoted.store.delete(unvoted.key, identity)


def test_progress_is_said_in_words():
    running = RenderProgress("Generating", 2, 6, 1, 12.0, 0.31, TimeLeft(70, 80), 0.4)
    status = status_of(running)
    assert status.headline == "Generating" and status.fraction == 0.4
    assert status.detail == "2 of 6 pairs ready, 0.31x realtime, about 75 s left, 1 take failed"
    assert "Press Resume" in status_of(RenderEnded(True, 2, 6, 12.0, 40.0, ())).detail
    failed = status_of(RenderEnded(False, 5, 6, 12.0, 40.0, ("It was silent.",)))
    assert failed.state == "failed" and "It was silent." in failed.detail
    assert status_of(RenderEnded(False, 6, 6, 12.0, 40.0, ())).state == "done"


# -- the result --------------------------------------------------------------------------------


def judged(unvoted, synthesis, values, answer="A") -> str:
    """The result of a comparison of the form's values, every pair judged alike."""
    identity = unvoted.store.create(unvoted.key, CompareForm.from_values(values).plan(synthesis))
    list(unvoted.store.run(unvoted.key, identity, threading.Event()))
    comparison = unvoted.store.get(unvoted.key, identity)
    for trial in comparison.plan.trials:
        if comparison.plan.kind != "sighted":
            comparison.vote(trial.id, answer, HEARD, covered=HEARD)
    shown = result(comparison)
    unvoted.store.delete(unvoted.key, identity)
    return shown


@pytest.mark.parametrize("kind", ["preference", "abx", "round", "sighted"])
def test_a_result_names_settings_by_value_alone(unvoted, synthesis, side_values, kind):
    values = compare_values(side_values, kind=kind, second={"top_k": 3}, values="3, 9, 30", seeds=1)
    shown = judged(unvoted, synthesis, values)
    assert "top-k 3" in shown and not re.search(r"\b([Ss]ettings?|Play|clip) [A-F]\b", shown)
    assert "Realtime factor" not in shown, "in a batch it says nothing of a single take"


def test_an_abx_result_has_no_column_for_no_difference(unvoted, synthesis, side_values):
    abx = judged(unvoted, synthesis, compare_values(side_values, kind="abx"))
    assert "No difference" not in abx and "Share of right answers" in abx
    assert "Clopper-Pearson" in abx and "Bradley-Terry" not in abx


def test_a_result_names_the_method_it_used(unvoted, synthesis, side_values):
    pair = judged(unvoted, synthesis, compare_values(side_values))
    assert "Share of votes for temperature" in pair and "No difference" in pair
    assert "Clopper-Pearson" in pair and "Bradley-Terry" not in pair
    values = compare_values(side_values, kind="round", differs="top_k", values="3, 9, 30", seeds=1)
    ranked = judged(unvoted, synthesis, values)
    assert "Bradley-Terry" in ranked and "Clopper-Pearson" not in ranked


@pytest.mark.parametrize("seeds, shown", [(2, False), (3, True)])
def test_rows_by_script_need_three_votes(unvoted, synthesis, side_values, seeds, shown):
    scripts = f"{COMPARE_SCRIPT}\n---\n[S1] More."
    rows = judged(unvoted, synthesis, compare_values(side_values, scripts=scripts, seeds=seeds))
    assert ("Script 2" in rows) == shown and "Seed 7" not in rows


def test_a_comparison_that_could_not_begin_is_not_kept(
    unvoted, synthesis, side_values, monkeypatch
):
    """Its model could not be fetched: nothing was made."""

    def offline(*_):
        raise InputError("The model cannot be fetched.")

    handlers = CompareHandlers(synthesis, unvoted.store, parts_by_name(CompareParts))
    before = unvoted.store.list(unvoted.key)
    monkeypatch.setattr(synthesis, "stream_together", offline)
    *_, last = handlers.make(PAGE, unvoted.key, *compare_values(side_values))
    assert "The model cannot be fetched." in last["status"] and last["setup"]["open"]
    assert unvoted.store.list(unvoted.key) == before


def test_a_deleted_comparison_leaves_no_figures(unvoted, synthesis, copied_id):
    handlers = CompareHandlers(synthesis, unvoted.store, parts_by_name(CompareParts))
    updates = handlers.delete(PAGE, unvoted.key, copied_id)
    assert "The comparison was deleted." in updates["status"] and "pairs" not in updates["status"]
    assert updates["lab"] == {} and not updates["downloads"]["visible"]


def test_nothing_chosen_says_what_to_do(unvoted, synthesis):
    handlers = CompareHandlers(synthesis, unvoted.store, parts_by_name(CompareParts))
    for press in (handlers.show, handlers.again, handlers.delete):
        told = press(PAGE, unvoted.key, None)
        assert list(told) == ["kept_problem"], "beside the button, not at the top of the page"
        assert "Choose a comparison in the list first." in told["kept_problem"]
    told = handlers.zip(unvoted.key, None)
    assert "Choose a comparison in the list first." in told["download_problem"]
