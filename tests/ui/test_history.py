"""Earlier takes: what is kept for a browser, and what a take's file brings back to the form."""

from __future__ import annotations

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
from dia_demo.services.listening.store import new_key
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.ui.compare.form import SIDE_FIELDS, CompareForm
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.generate.history import HistoryHandlers, answer
from tests.helpers.page_stubs import COMPARE_SCRIPT, compare_values, parts_by_name


@pytest.fixture
def kept_take(synthesis, side_values, tmp_path):
    setting = make_plan(
        "preference",
        CompareForm.of(compare_values(side_values)).settings(synthesis),
        (COMPARE_SCRIPT,),
        (1,),
    ).settings[0]
    request = Request(COMPARE_SCRIPT, replace(setting.params, seed=5), synthesis.settings.runtime)
    *_, finished = synthesis.stream(request, threading.Event())
    take = synthesis.take(request, finished.result)
    takes, key = History(tmp_path / "kept"), new_key()
    (tmp_path / "cache").mkdir()
    wav = take.save(tmp_path / "cache" / "take.wav")
    served = tmp_path / "served"
    return SimpleNamespace(history=takes, key=key, wav=wav, take=take, served=served)


def handlers_of(kept_take, synthesis, cache):
    fields = {"temperature": SimpleNamespace(label="Temperature")}
    take = SimpleNamespace(GRADIO_CACHE=str(cache))
    page = SimpleNamespace(parts=SimpleNamespace(take=take, fields=fields), synthesis=synthesis)
    form_handlers = SimpleNamespace(restore=lambda values: [values])
    page.made = MadeTakes()
    compare = CompareHandlers(synthesis, None, parts_by_name(CompareParts))
    names = [synthesis.settings.runtime.model]
    return HistoryHandlers(kept_take.history, page, form_handlers, compare, names)


def test_a_take_on_the_page_enters_the_history_once(kept_take, synthesis):
    handlers = handlers_of(kept_take, synthesis, kept_take.wav.parent)
    handlers.page.made.add(kept_take.wav)
    for _ in range(2):  # gradio reports a finished take twice
        handlers.keep(kept_take.key, {"path": str(kept_take.wav)})
    (row,) = answer(kept_take.history, kept_take.served, {"do": "list", "key": kept_take.key})[
        "takes"
    ]
    assert row["script"] == COMPARE_SCRIPT and "seed 5" in row["figures"]
    asked_for = {"key": kept_take.key, "id": row["id"]}
    heard = Path(answer(kept_take.history, kept_take.served, {"do": "hear"} | asked_for)["file"])
    assert (
        heard.is_relative_to(kept_take.served) and heard.read_bytes() == kept_take.wav.read_bytes()
    )
    values, status = handlers.use(kept_take.key, SimpleNamespace(id=row["id"]))
    assert values["seed"] == 5 and values["script"] == COMPARE_SCRIPT and "<li>" not in status
    compared = handlers.compare_with(kept_take.key, SimpleNamespace(id=row["id"]))
    script, *sides, tabs, _ = compared
    assert (
        script == COMPARE_SCRIPT
        and isinstance(tabs, gr.Tabs)
        and len(sides) == 2 * len(SIDE_FIELDS)
    )
    stranger = {"do": "hear", "key": new_key(), "id": row["id"]}
    assert "error" in answer(kept_take.history, kept_take.served, stranger)
    assert answer(kept_take.history, kept_take.served, {"do": "delete"} | asked_for) == {}
    assert not heard.exists(), "what is deleted cannot be fetched either"
    assert (
        answer(kept_take.history, kept_take.served, {"do": "list", "key": kept_take.key})["takes"]
        == []
    )
    for wrong in (None, 3, [], "list", {}):
        assert list(answer(kept_take.history, kept_take.served, wrong)) == ["error"]
    # A program's press carries no data.
    with pytest.raises(InputError, match="no such take"):
        handlers.use(kept_take.key, gr.EventData(None, None))


def test_a_stranger_cannot_push_others_takes_out(kept_take, synthesis, monkeypatch):
    """Neither with an upload nor with one take under many keys."""
    monkeypatch.setattr(kept_take.history, "limit", int(2.5 * kept_take.wav.stat().st_size))
    mine = kept_take.history.add(kept_take.key, kept_take.take)
    handlers = handlers_of(kept_take, synthesis, kept_take.wav.parent)
    (kept_take.wav.parent / "upload.wav").write_bytes(kept_take.wav.read_bytes())
    strangers = [new_key() for _ in range(4)]
    for key in strangers:
        handlers.keep(key, {"path": str(kept_take.wav.parent / "upload.wav")})
    assert not any(map(kept_take.history.list, strangers)), "this process did not make it"
    handlers.page.made.add(kept_take.wav)
    for key in strangers:
        handlers.keep(key, {"path": str(kept_take.wav)})
    assert [len(kept_take.history.list(key)) for key in strangers] == [1, 0, 0, 0]
    assert [one.id for one in kept_take.history.list(kept_take.key)] == [mine]


def test_a_take_above_the_size_limit_is_refused(kept_take, monkeypatch):
    monkeypatch.setattr(history, "MAX_TAKE_BYTES", kept_take.wav.stat().st_size - 1)
    with pytest.raises(InputError, match="download it"):
        kept_take.history.copy(kept_take.key, kept_take.wav)
    assert kept_take.history.list(kept_take.key) == []


def test_only_files_of_gradios_cache_are_kept(kept_take, synthesis, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    handlers = handlers_of(kept_take, synthesis, tmp_path / "elsewhere")
    handlers.page.made.add(kept_take.wav)
    for shown in ({"path": str(kept_take.wav)}, {"path": "/etc/passwd"}, {}, None):
        handlers.keep(kept_take.key, shown)
    assert kept_take.history.list(kept_take.key) == []


def test_a_dropped_file_brings_its_settings_back(kept_take, synthesis, tmp_path):
    handlers = handlers_of(kept_take, synthesis, tmp_path)
    values, status = handlers.drop(str(kept_take.wav))
    assert values["seed"] == 5 and "The settings of the take are in the form" in status
    (tmp_path / "other.wav").write_bytes(b"RIFF")
    with pytest.raises(InputError, match="no settings"):
        handlers.drop(str(tmp_path / "other.wav"))


def test_a_take_that_cannot_be_kept_is_told(kept_take, synthesis, monkeypatch):
    """A warning would not do: gradio shows those of its queue alone."""
    handlers = handlers_of(kept_take, synthesis, kept_take.wav.parent)
    handlers.page.made.add(kept_take.wav)

    def full(*_):
        raise RunError("The disk is full.")

    monkeypatch.setattr(kept_take.history, "copy", full)
    with pytest.raises(RunError, match="could not be added to the earlier takes: The disk is full"):
        handlers.keep(kept_take.key, {"path": str(kept_take.wav)})


@pytest.mark.parametrize("precision", ["int8", "int3", None])
def test_a_file_brings_the_precision_it_was_made_in(kept_take, synthesis, tmp_path, precision):
    """The take was asked for in "auto", which may be another precision elsewhere."""
    figures = replace(kept_take.take.figures, precision=precision)
    wav = replace(kept_take.take, figures=figures).save(tmp_path / "made.wav")
    values, _ = handlers_of(kept_take, synthesis, tmp_path).drop(str(wav))
    assert values.get("precision") == (precision if precision == "int8" else None)
    identity = kept_take.history.copy(kept_take.key, wav)
    assert kept_take.history.get(kept_take.key, identity).values() == values
    *sides, _, _ = handlers_of(kept_take, synthesis, tmp_path).compare_with(
        kept_take.key, SimpleNamespace(id=identity)
    )
    at = 1 + list(SIDE_FIELDS).index("precision")
    assert sides[at] == (precision if precision == "int8" else "auto")


@pytest.mark.parametrize("normalise", [True, False])
def test_a_file_brings_the_choice_to_normalise_back(kept_take, synthesis, tmp_path, normalise):
    request = replace(kept_take.take.request, normalise=normalise)
    wav = replace(kept_take.take, request=request).save(tmp_path / "made.wav")
    values, _ = handlers_of(kept_take, synthesis, tmp_path).drop(str(wav))
    assert values["normalise"] is normalise


def test_what_a_file_cannot_bring_back_is_told(kept_take, synthesis, tmp_path):
    voice = VoicePrompt(codes=np.zeros((3, 4), np.int16), transcript="[S1] It’s\n<b>me</b>.")
    params = replace(kept_take.take.request.params, temperature=7.5)
    request = replace(kept_take.take.request, params=params, voice=voice)
    wav = replace(kept_take.take, request=request).save(tmp_path / "voice.wav")
    handlers = handlers_of(kept_take, synthesis, tmp_path)
    _, status = handlers.drop(str(wav))
    assert "Note: Temperature was 7.5, but the slider ends at 2.5." in status
    assert "voice prompt that says “[S1] It’s &lt;b&gt;me&lt;/b&gt;.”. The file does not" in status
    identity = kept_take.history.copy(kept_take.key, wav)
    (*_, compared) = handlers.compare_with(kept_take.key, SimpleNamespace(id=identity))
    assert "voice prompt" in compared
