"""Candidates on the page without a browser: made together, chosen, made again, deleted."""

from dataclasses import replace
from types import SimpleNamespace

import gradio as gr
import pytest
import soundfile

from dia_demo.errors import InputError
from dia_demo.services.earlier.history import History
from dia_demo.services.people import new_key
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.candidates.handlers import CandidateHandlers, answer
from dia_demo.ui.generate import layout
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.live_audio import LiveAudio
from tests.helpers.page.page_stubs import field_values, parts_by_name
from tests.helpers.synthesis_requests import runtime

PAGE = SimpleNamespace(session_hash="s")
SCRIPT = "[S1] One two three. [S2] Four five."


@pytest.fixture
def handlers(folder, tmp_path):
    settings = Settings(
        runtime(folder), takes_folder=tmp_path / "takes", kept_folder=tmp_path / "kept"
    )
    synthesis, history = Synthesis(settings), History(tmp_path / "kept")
    parts = parts_by_name(layout.GenerateParts)
    yield CandidateHandlers(GenerateHandlers(synthesis, parts, LiveAudio(), history), history)
    synthesis.close()


@pytest.fixture
def key():
    return new_key()


def make(handlers, key, count=3, **changes):
    model = handlers.page.synthesis.settings.runtime.model
    fields = dict(script=SCRIPT, precision="float32", max_tokens=40, top_k=50, seed="7")
    return handlers.make(PAGE, key, count, *field_values(model=model, **(fields | changes)))


def last_of(updates) -> dict:
    shown: dict = {}
    for update in updates:
        shown |= update
    return shown


def press(handlers, key, **data) -> dict:
    return last_of(handlers.press(PAGE, gr.EventData(None, data), key))


def choose(handlers, key, **data) -> dict:
    return handlers.choose(PAGE, gr.EventData(None, data), key)


def ids_of(shown) -> list[str]:
    return [row["id"] for row in shown["candidates"]["candidates"]]


def chosen_in(shown) -> list[str]:
    return [row["name"] for row in shown["candidates"]["candidates"] if row["chosen"]]


def test_candidates_have_neighbouring_seeds_and_are_earlier_takes(handlers, key):
    shown = last_of(make(handlers, key))
    rows = shown["candidates"]["candidates"]
    assert [(row["name"], row["seed"]) for row in rows] == [("A", 7), ("B", 8), ("C", 9)]
    assert all(row["seconds"] > 0 for row in rows)
    assert {take.id for take in handlers.history.list(key)} == set(ids_of(shown))
    assert not shown["candidates"]["running"]
    assert "3 candidates made" in shown["status"]


def test_the_best_one_is_in_the_player(handlers, key, monkeypatch):
    verdicts = {7: "too fast", 8: "good", 9: "good"}

    def report(request, result):
        verdict = verdicts[request.params.seed]
        return SimpleNamespace(seconds=1.0, words_per_second=2.0, verdict=verdict)

    def ended(event):  # Random weights do not end by themselves.
        figures = replace(event.result.figures, finish_reason="end")
        return replace(event.result, figures=figures)

    monkeypatch.setattr("dia_demo.ui.candidates.handlers.report_of_take", report)
    monkeypatch.setattr("dia_demo.ui.candidates.handlers.finished_result", ended)
    shown = last_of(make(handlers, key))
    rows = shown["candidates"]["candidates"]
    assert [row["state"] for row in rows] == ["faulty", "good", "good"]
    assert [row["verdict"] for row in rows] == ["too fast", "", ""]
    assert chosen_in(shown) == ["B"]
    assert shown["player"]["take"]["label"] == "Candidate B"


def test_a_candidate_of_the_same_seed_is_the_take_that_generate_makes(handlers, key):
    shown = last_of(make(handlers, key))
    row = shown["candidates"]["candidates"][2]
    fields = dict(script=SCRIPT, precision="float32", max_tokens=40, top_k=50, seed="9")
    model = handlers.page.synthesis.settings.runtime.model
    list(handlers.page.generate(PAGE, key, *field_values(model=model, **fields)))
    alone, together = handlers.history.latest(key), handlers.history.get(key, row["id"])
    assert alone.id != together.id
    assert soundfile.read(alone.path)[0].tolist() == soundfile.read(together.path)[0].tolist()


def test_one_is_chosen_and_the_others_are_deleted(handlers, key):
    ids = ids_of(last_of(make(handlers, key)))
    shown = choose(handlers, key, id=ids[1])
    assert chosen_in(shown) == ["B"]
    assert shown["take_seed"] == 8
    assert len(handlers.history.list(key)) == 3
    shown = choose(handlers, key, do="discard")
    assert ids_of(shown) == [ids[1]]
    assert [take.id for take in handlers.history.list(key)] == [ids[1]]
    assert "2 other candidates deleted" in shown["status"]


def test_a_choice_is_there_after_a_reload(handlers, key):
    ids = ids_of(last_of(make(handlers, key)))
    choose(handlers, key, id=ids[2])
    run = handlers.page.run.find(PAGE, key)
    assert chosen_in(run.shown) == ["C"]


def test_one_is_made_again_in_its_place(handlers, key):
    ids = ids_of(last_of(make(handlers, key)))
    shown = press(handlers, key, id=ids[1])
    now = ids_of(shown)
    assert [now[0], now[2]] == [ids[0], ids[2]]
    assert now[1] != ids[1]
    assert chosen_in(shown) == ["B"]
    assert {take.id for take in handlers.history.list(key)} == set(now)


def test_one_stays_if_making_it_again_fails(handlers, key, monkeypatch):
    ids = ids_of(last_of(make(handlers, key)))
    monkeypatch.setattr(
        handlers.page.synthesis, "take", lambda *_: (_ for _ in ()).throw(InputError("No sound."))
    )
    shown = press(handlers, key, id=ids[1])
    assert ids_of(shown) == ids
    assert "No sound" in shown["status"]
    assert len(handlers.history.list(key)) == 3


def test_stop_keeps_what_there_is(handlers, key):
    shown: dict = {}
    for update in make(handlers, key, max_tokens=400):
        shown |= update
        if any(row["seconds"] for row in shown["candidates"]["candidates"]):
            handlers.page.run.stop(PAGE, key)
    assert "Stopped" in shown["status"]
    assert not shown["candidates"]["running"]
    kept = [identity for identity in ids_of(shown) if identity]
    assert {take.id for take in handlers.history.list(key)} == set(kept)


@pytest.mark.parametrize("count", [1, 9, None])
def test_a_number_that_is_not_allowed_is_refused(handlers, key, count):
    shown = last_of(make(handlers, key, count=count))
    assert "from 2 to 8 candidates" in shown["status"]


def test_a_long_script_is_made_in_parts_instead(handlers, key):
    long = " ".join(f"[S{1 + i % 2}] These are the words of one turn." for i in range(60))
    assert "made in parts" in last_of(make(handlers, key, script=long))["status"]


def test_a_browser_without_storage_is_told(handlers):
    with pytest.raises(InputError, match="stores nothing"):
        next(make(handlers, None))


def test_unknown_takes_are_refused(handlers, key):
    with pytest.raises(InputError, match="no longer listed"):
        choose(handlers, key, id="x")
    last_of(make(handlers, key))
    with pytest.raises(InputError, match="no longer listed"):
        choose(handlers, key, id="x")
    with pytest.raises(InputError, match="no longer listed"):
        press(handlers, new_key(), id="x")


def test_the_sound_of_one_is_served_to_its_owner_only(handlers, key, tmp_path):
    identity = ids_of(last_of(make(handlers, key)))[0]
    served = handlers.page.files.home
    question = {"do": "hear", "key": key, "id": identity}
    assert answer(handlers.history, served, question)["file"].startswith(str(served))
    for wrong in (question | {"key": new_key()}, question | {"id": "../x"}, {}, None):
        assert "error" in answer(handlers.history, served, wrong)
