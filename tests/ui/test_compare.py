"""The Compare tab without a browser: what the room is told, what the form means, what is shown."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest

from dia_demo.errors import InputError, RunError
from dia_demo.services import history
from dia_demo.services.history import History, MadeTakes
from dia_demo.services.listening.plan import make_plan
from dia_demo.services.listening.render import PlanEnded, PlanProgress
from dia_demo.services.listening.store import Comparisons, new_key
from dia_demo.services.synthesis import Request, VoicePrompt
from dia_demo.ui.compare.form import (
    FIELDS,
    HEAD,
    MAX_SCRIPTS_CHARACTERS,
    SIDE_FIELDS,
    CompareForm,
    default_side,
)
from dia_demo.ui.compare.handlers import CompareHandlers, status_of
from dia_demo.ui.compare.html import result
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.compare.room_api import Lab
from dia_demo.ui.generate.history import HistoryHandlers, answer

SCRIPT = "[S1] Hello there. <b>[S2] Yes."
HEARD = {"A": 9.0, "B": 9.0, "X": 9.0}


@pytest.fixture(scope="module")
def base(synthesis):
    model = synthesis.settings.runtime.model
    return default_side(synthesis, model) | {"max_tokens": 60}


def asked(base, second=None, **head) -> list:
    """The fields' values, in the order of the page."""
    values = dict(zip(HEAD, ("preference", SCRIPT, 2, "7", "top_k", "", False), strict=True)) | head
    sides = (base, base | ({"temperature": 1.9} if second is None else second))
    values |= {
        f"{side}_{name}": one[name] for side, one in zip("ab", sides, strict=True) for name in one
    }
    return [values[name] for name in FIELDS]


@pytest.fixture(scope="module")
def world(synthesis, base, tmp_path_factory):
    """Everybody's comparisons, with one of Ann's made and not voted on."""
    comparisons = Comparisons(tmp_path_factory.mktemp("kept"), synthesis)
    ann = new_key()
    identity = comparisons.create(ann, CompareForm.of(asked(base)).plan(synthesis))
    list(comparisons.run(ann, identity, threading.Event()))
    return SimpleNamespace(comparisons=comparisons, ann=ann, id=identity, lab=Lab(comparisons))


@pytest.fixture
def fresh(world):
    """A copy of Ann's comparison for a test to vote on."""
    identity = world.comparisons.again(world.ann, world.id)
    list(world.comparisons.run(world.ann, identity, threading.Event()))
    return identity


# The form


def test_a_form_is_a_plan(synthesis, base):
    plan = CompareForm.of(asked(base, scripts=f"{SCRIPT}\n---\n[S1] More.")).plan(synthesis)
    assert plan.kind == "preference" and plan.seeds == (7, 8) and len(plan.trials) == 4
    assert [one.params.temperature for one in plan.settings] == [
        base["temperature"], 1.9,
    ]  # fmt: skip


def test_more_text_than_is_looked_at_is_refused_at_once(synthesis, base, monkeypatch):
    monkeypatch.setattr("dia_demo.ui.compare.form.split_scripts", None)
    long = asked(base, scripts="a" * (MAX_SCRIPTS_CHARACTERS + 1))
    with pytest.raises(InputError, match="100,000 are allowed"):
        CompareForm.of(long).plan(synthesis)
    assert "100,000" in CompareHandlers(synthesis, None, None).describe(*long)


def test_a_round_varies_one_value(synthesis, base):
    form = CompareForm.of(asked(base, kind="round", values="5, 9,20"))
    assert [one.params.top_k for one in form.settings(synthesis)] == [5, 9, 20]
    assert len(form.plan(synthesis).trials) == 6


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(kind="round", values="5"), "from 2 to 6 values"),
        (dict(kind="round", values="5, many"), "top_k must be a whole number"),
        (dict(second={}), "identical"),
        (dict(second={"temperature": None}), "Settings B: temperature must be a number"),
        (dict(scripts=" "), "script is empty"),
        (dict(first_seed="soon"), "seed"),
        (dict(seeds=0), "number of seeds"),
    ],
)
def test_forms_say_what_is_wrong(synthesis, base, change, message):
    with pytest.raises(InputError, match=message):
        CompareForm.of(asked(base, **change)).plan(synthesis)


def test_the_note_names_what_differs_costs_and_shows(synthesis, base):
    handlers = CompareHandlers(synthesis, None, None)
    note = handlers.describe(*asked(base, seeds=6))
    assert "Temperature" in note and "against 1.9" in note and ".field-temperature" in note
    assert "6 pairs to hear, 12 takes to make" in note
    assert "6 pairs of 1 script can show nothing" in note and "differ by chance" not in note
    abx = handlers.describe(*asked(base, kind="abx"))
    assert "takes that differ by chance" in abx
    assert "differ by chance" not in handlers.describe(
        *asked(base, kind="abx", second={"speed": 1.5})
    )
    two = handlers.describe(*asked(base, second={"temperature": 1.9, "top_k": 3}))
    assert "More than one thing differs" in two
    assert "problem" in handlers.describe(*asked(base, second={"top_k": None}))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300, "many", 2.5])
def test_numbers_that_are_none_are_refused_in_words(synthesis, base, number):
    handlers = CompareHandlers(synthesis, None, None)
    assert "number of seeds must be" in handlers.describe(*asked(base, seeds=number))


@pytest.mark.parametrize("speed", [0, float("nan"), -1])
def test_a_speed_that_is_none_is_refused_in_words(synthesis, base, speed):
    handlers = CompareHandlers(synthesis, None, None)
    assert "speed must be" in handlers.describe(*asked(base, second={"speed": speed}))


def test_both_sides_start_from_other_settings(synthesis, base):
    handlers = CompareHandlers(synthesis, None, None)
    values = base | {"temperature": 0.3, "script": "x", "cfg_scale": None}
    sides = handlers.both_sides(values)
    assert (
        len(sides) == 2 * len(SIDE_FIELDS)
        and sides[: len(SIDE_FIELDS)] == sides[-len(SIDE_FIELDS) :]
    )
    assert sides[0] == 0.3 and sides[1] == base["cfg_scale"]


# The room


def test_the_room_is_told_nothing_of_the_sides(world):
    state = world.lab.ask({"do": "look", "key": world.ann, "id": world.id})
    assert state["trial"]["letters"] == "AB" and state["result"] == "" and not state["open"]
    for secret in ("flip", "gain", "temperature", "lufs", "seconds", "setting", "seed"):
        assert secret not in json.dumps(state).replace(SCRIPT, "").lower()


def test_what_the_room_is_told_does_not_depend_on_the_sides(world):
    """The same comparison with its sides swapped gives the same answers, but for the sound."""
    comparison = world.comparisons.get(world.ann, world.id)
    before = world.lab.ask({"do": "look", "key": world.ann, "id": world.id})
    plan = comparison.plan
    flipped = {
        name: replace(secret, flip=not secret.flip, gains_db=secret.gains_db[::-1])
        for name, secret in plan.secrets.items()
    }
    comparison.plan = replace(plan, secrets=flipped)
    try:
        assert world.lab.ask({"do": "look", "key": world.ann, "id": world.id}) == before
    finally:
        comparison.plan = plan


def test_only_the_present_pair_is_heard_while_blind(world):
    plan = world.comparisons.get(world.ann, world.id).plan
    ask = {"key": world.ann, "id": world.id}
    first, second = (trial.id for trial in plan.trials)
    assert "wav" in world.lab.ask({"do": "clip", "trial": first, "letter": "A"} | ask)
    for wrong in (
        {"do": "clip", "trial": second, "letter": "A"},
        {"do": "clip", "trial": first, "letter": "X"},
        {"do": "clip", "trial": first, "letter": ""},
        {"do": "clip", "trial": "../plan.json", "letter": "A"},
        {"do": "pictures", "trial": first},
        {"do": "vote", "trial": first, "vote": "A", "heard": {"A": 9}},
        {"do": "vote", "trial": first, "vote": "A", "heard": {"A": float("nan"), "B": 9}},
        {"do": "vote", "trial": first, "vote": "A", "heard": "long"},
        {"do": "everything"},
    ):
        assert list(world.lab.ask(wrong | ask)) == ["error"], wrong
    assert world.comparisons.get(world.ann, world.id).votes == {}


def test_nobody_else_is_answered(world):
    for key in (new_key(), "", None, 7):
        answered = world.lab.ask({"do": "look", "key": key, "id": world.id})
        assert list(answered) == ["error"]
    assert list(world.lab.ask(None)) == ["error"]


def test_votes_lead_to_the_result(world, fresh):
    ask = {"key": world.ann, "id": fresh}
    state = world.lab.ask({"do": "look"} | ask)
    for number in (1, 2):
        assert state["trial"]["number"] == number
        vote = {"do": "vote", "trial": state["trial"]["id"], "vote": "A", "heard": HEARD}
        state = world.lab.ask(vote | {"strength": 2, "note": "<i>rough</i>"} | ask)
    assert state["open"] and state["trial"] is None
    assert "too few" in state["result"] and "Pair 2" in state["result"]
    assert "&lt;i&gt;rough" in state["result"] and "<i>rough" not in state["result"]
    trial = world.comparisons.get(world.ann, fresh).plan.trials[0].id
    pictures = world.lab.ask({"do": "pictures", "trial": trial} | ask)["html"]
    assert pictures.count("<svg") == 2 and pictures.count("data:image/png") == 2
    assert "wav" in world.lab.ask({"do": "clip", "trial": trial, "letter": "B"} | ask)


def test_ending_early_reveals_and_closes(world, fresh):
    ask = {"key": world.ann, "id": fresh}
    state = world.lab.ask({"do": "reveal"} | ask)
    assert state["open"] and "Not judged" in state["result"]
    trial = world.comparisons.get(world.ann, fresh).plan.trials[0].id
    vote = {"do": "vote", "trial": trial, "vote": "A", "heard": HEARD}
    assert "no vote counts" in world.lab.ask(vote | ask)["error"]


def test_the_zip_comes_with_the_end(world, fresh, synthesis, tmp_path):
    parts = SimpleNamespace(**{name: name for name in CompareParts.__annotations__})
    handlers = CompareHandlers(synthesis, world.comparisons, parts)
    assert handlers.zip(world.ann, fresh)["zip_file"] == {}
    world.comparisons.get(world.ann, fresh).reveal()
    zipped = Path(handlers.zip(world.ann, fresh)["zip_file"]["file"])
    assert zipped.name == f"comparison-{fresh}.zip"
    upload = tmp_path / "upload.zip"
    upload.write_bytes(zipped.read_bytes())
    assert handlers.load(world.ann, str(upload))["kept"]["value"] != fresh
    assert not upload.exists(), "what is kept is not kept twice"


def test_make_and_go_on_come_back_when_the_run_is_over(world, synthesis):
    parts = SimpleNamespace(**{name: name for name in CompareParts.__annotations__})
    handlers = CompareHandlers(synthesis, world.comparisons, parts)
    identity = world.comparisons.again(world.ann, world.id)
    assert handlers.ready(world.ann, identity)["resume"]["interactive"]
    page = SimpleNamespace(session_hash="page")
    updates = list(handlers.resume(page, world.ann, identity))
    assert any('data-state="done"' in update.get("status", "") for update in updates)
    assert not updates[0]["make"]["interactive"] and not updates[0]["resume"]["interactive"]
    assert not any({"make", "resume"} & update.keys() for update in updates[1:])
    ready = handlers.ready(world.ann, identity)
    assert ready["make"]["interactive"] and not ready["stop"]["interactive"]
    assert not ready["resume"]["interactive"], "nothing is missing"
    assert not handlers.ready(world.ann, None)["resume"]["interactive"]


def test_rounds_and_abx_have_their_charts(world, synthesis, base):
    form = CompareForm.of(asked(base, kind="round", values="3, 9, 30", seeds=1))
    for plan in (
        form.plan(synthesis),
        CompareForm.of(asked(base, kind="abx", seeds=1)).plan(synthesis),
    ):
        identity = world.comparisons.create(world.ann, plan)
        list(world.comparisons.run(world.ann, identity, threading.Event()))
        comparison = world.comparisons.get(world.ann, identity)
        for trial in plan.trials:
            comparison.vote(trial.id, "A", HEARD)
        shown = result(comparison)
        assert "<svg" in shown and shown.count("<circle") == (3 if len(plan.settings) == 3 else 1)
        world.comparisons.delete(world.ann, identity)


def test_progress_is_said_in_words():
    running = PlanProgress("Speaking", 2, 6, 1, 12.0, 0.31, 75.0, 0.4)
    status = status_of(running)
    assert status.headline == "Speaking" and status.fraction == 0.4
    assert status.detail == "2 of 6 pairs made, 0.31x realtime, about 75 s left, 1 take failed"
    assert "kept" in status_of(PlanEnded(True, 2, 6, 12.0, 40.0, ())).detail
    failed = status_of(PlanEnded(False, 5, 6, 12.0, 40.0, ("It was silent.",)))
    assert failed.state == "failed" and "It was silent." in failed.detail
    assert status_of(PlanEnded(False, 6, 6, 12.0, 40.0, ())).state == "done"


# Earlier takes


@pytest.fixture
def kept(synthesis, base, tmp_path):
    setting = make_plan(
        "preference", CompareForm.of(asked(base)).settings(synthesis), (SCRIPT,), (1,)
    ).settings[0]
    request = Request(SCRIPT, replace(setting.params, seed=5), synthesis.settings.runtime)
    *_, finished = synthesis.stream(request, threading.Event())
    take = synthesis.take(request, finished.result)
    takes, key = History(tmp_path / "kept"), new_key()
    (tmp_path / "cache").mkdir()
    wav = take.save(tmp_path / "cache" / "take.wav")
    served = tmp_path / "served"
    return SimpleNamespace(history=takes, key=key, wav=wav, take=take, served=served)


def handlers_of(kept, synthesis, cache):
    fields = {"temperature": SimpleNamespace(label="Temperature")}
    take = SimpleNamespace(GRADIO_CACHE=str(cache))
    page = SimpleNamespace(parts=SimpleNamespace(take=take, fields=fields), synthesis=synthesis)
    page.restore = lambda values: [values]
    page.made = MadeTakes()
    compare = CompareHandlers(synthesis, None, None)
    names = [synthesis.settings.runtime.model]
    return HistoryHandlers(kept.history, page, compare, names)


def test_a_take_on_the_page_is_kept_and_listed(kept, synthesis):
    handlers = handlers_of(kept, synthesis, kept.wav.parent)
    handlers.page.made.add(kept.wav)
    for _ in range(2):  # gradio tells of a finished take twice
        handlers.keep(kept.key, {"path": str(kept.wav)})
    (row,) = answer(kept.history, kept.served, {"do": "list", "key": kept.key})["takes"]
    assert row["script"] == SCRIPT and "seed 5" in row["figures"]
    asked_for = {"key": kept.key, "id": row["id"]}
    heard = Path(answer(kept.history, kept.served, {"do": "hear"} | asked_for)["file"])
    assert heard.is_relative_to(kept.served) and heard.read_bytes() == kept.wav.read_bytes()
    values, status = handlers.use(kept.key, SimpleNamespace(id=row["id"]))
    assert values["seed"] == 5 and values["script"] == SCRIPT and "<li>" not in status
    compared = handlers.compare_with(kept.key, SimpleNamespace(id=row["id"]))
    script, *sides, tabs, _ = compared
    assert script == SCRIPT and isinstance(tabs, gr.Tabs) and len(sides) == 2 * len(SIDE_FIELDS)
    stranger = {"do": "hear", "key": new_key(), "id": row["id"]}
    assert "error" in answer(kept.history, kept.served, stranger)
    assert answer(kept.history, kept.served, {"do": "delete"} | asked_for) == {}
    assert not heard.exists(), "what is deleted cannot be fetched either"
    assert answer(kept.history, kept.served, {"do": "list", "key": kept.key})["takes"] == []
    for wrong in (None, 3, [], "list", {}):
        assert list(answer(kept.history, kept.served, wrong)) == ["error"]
    # A program's press carries no data.
    with pytest.raises(InputError, match="no such take"):
        handlers.use(kept.key, gr.EventData(None, None))


def test_a_stranger_cannot_push_others_takes_out(kept, synthesis, monkeypatch):
    """Neither with an upload nor with one take under many keys."""
    monkeypatch.setattr(kept.history, "limit", int(2.5 * kept.wav.stat().st_size))
    mine = kept.history.add(kept.key, kept.take)
    handlers = handlers_of(kept, synthesis, kept.wav.parent)
    (kept.wav.parent / "upload.wav").write_bytes(kept.wav.read_bytes())
    strangers = [new_key() for _ in range(4)]
    for key in strangers:
        handlers.keep(key, {"path": str(kept.wav.parent / "upload.wav")})
    assert not any(map(kept.history.list, strangers)), "this process did not make it"
    handlers.page.made.add(kept.wav)
    for key in strangers:
        handlers.keep(key, {"path": str(kept.wav)})
    assert [len(kept.history.list(key)) for key in strangers] == [1, 0, 0, 0]
    assert [one.id for one in kept.history.list(kept.key)] == [mine]


def test_a_take_beyond_the_bound_is_not_kept_and_says_so(kept, monkeypatch):
    monkeypatch.setattr(history, "MAX_TAKE_BYTES", kept.wav.stat().st_size - 1)
    with pytest.raises(InputError, match="download it"):
        kept.history.copy(kept.key, kept.wav)
    assert kept.history.list(kept.key) == []


def test_only_files_of_gradios_cache_are_kept(kept, synthesis, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    handlers = handlers_of(kept, synthesis, tmp_path / "elsewhere")
    handlers.page.made.add(kept.wav)
    for shown in ({"path": str(kept.wav)}, {"path": "/etc/passwd"}, {}, None):
        handlers.keep(kept.key, shown)
    assert kept.history.list(kept.key) == []


def test_a_dropped_file_brings_its_settings_back(kept, synthesis, tmp_path):
    handlers = handlers_of(kept, synthesis, tmp_path)
    values, status = handlers.drop(str(kept.wav))
    assert values["seed"] == 5 and "The take&#x27;s settings are in the form" in status
    (tmp_path / "other.wav").write_bytes(b"RIFF")
    with pytest.raises(InputError, match="no settings"):
        handlers.drop(str(tmp_path / "other.wav"))


def test_a_take_that_cannot_be_kept_is_told(kept, synthesis, monkeypatch):
    """A warning would not do: gradio shows those of its queue alone."""
    handlers = handlers_of(kept, synthesis, kept.wav.parent)
    handlers.page.made.add(kept.wav)

    def full(*_):
        raise RunError("The disk is full.")

    monkeypatch.setattr(kept.history, "copy", full)
    with pytest.raises(RunError, match="not kept among the earlier ones: The disk is full"):
        handlers.keep(kept.key, {"path": str(kept.wav)})


@pytest.mark.parametrize("precision", ["int8", "int3", None])
def test_a_file_brings_the_precision_it_was_made_in(kept, synthesis, tmp_path, precision):
    """The take was asked for in "auto", which may be another precision elsewhere."""
    figures = replace(kept.take.figures, precision=precision)
    wav = replace(kept.take, figures=figures).save(tmp_path / "made.wav")
    values, _ = handlers_of(kept, synthesis, tmp_path).drop(str(wav))
    assert values.get("precision") == (precision if precision == "int8" else None)
    identity = kept.history.copy(kept.key, wav)
    assert kept.history.get(kept.key, identity).values() == values
    *sides, _, _ = handlers_of(kept, synthesis, tmp_path).compare_with(
        kept.key, SimpleNamespace(id=identity)
    )
    at = 1 + list(SIDE_FIELDS).index("precision")
    assert sides[at] == (precision if precision == "int8" else "auto")


def test_what_a_file_cannot_bring_back_is_told(kept, synthesis, tmp_path):
    voice = VoicePrompt(codes=np.zeros((3, 4), np.int16), transcript="[S1] It’s\n<b>me</b>.")
    params = replace(kept.take.request.params, temperature=7.5)
    request = replace(kept.take.request, params=params, voice=voice)
    wav = replace(kept.take, request=request).save(tmp_path / "voice.wav")
    handlers = handlers_of(kept, synthesis, tmp_path)
    _, status = handlers.drop(str(wav))
    assert "Note: Temperature was 7.5; its slider ends at 2.5." in status
    assert (
        "voice prompt, which says “[S1] It’s &lt;b&gt;me&lt;/b&gt;.”. The file does not" in status
    )
    identity = kept.history.copy(kept.key, wav)
    (*_, compared) = handlers.compare_with(kept.key, SimpleNamespace(id=identity))
    assert "voice prompt" in compared
