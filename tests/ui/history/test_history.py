"""Earlier takes: what is kept for a browser, and what a take's file brings back to the form."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest

from dia_demo import audio
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.prompt.voice_file import VoiceFile
from dia_demo.services.earlier import history
from dia_demo.services.earlier.formats import convert_take, read_samples
from dia_demo.services.earlier.history import History
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.people import new_key
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.services.voices.choice import add_voices
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.text.pronunciations import MAX_CHARACTERS, Pronunciations
from dia_demo.ui.compare.form.fields import CompareForm
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.compare.setup import START
from dia_demo.ui.history.history import HistoryHandlers, answer
from dia_demo.voices import VOICE_FIELDS
from tests.helpers.page.page_stubs import COMPARE_SCRIPT, compare_values, parts_by_name


@pytest.fixture
def kept_take(synthesis, side_values, tmp_path):
    setting = make_plan(
        "preference",
        CompareForm.from_values(compare_values(side_values)).settings(synthesis),
        (COMPARE_SCRIPT,),
        (1,),
    ).settings[0]
    params, runtime = replace(setting.params, seed=5), synthesis.settings.runtime
    request = Request(COMPARE_SCRIPT, params, synthesis.models[runtime.model], runtime)
    *_, finished = synthesis.stream(request, threading.Event())
    take = synthesis.take(request, finished.result)
    takes, key = History(tmp_path / "kept"), new_key()
    wav = take.save(tmp_path / "take.wav")
    served = tmp_path / "served"
    return SimpleNamespace(history=takes, key=key, wav=wav, take=take, served=served)


def handlers_of(kept_take, synthesis):
    fields = {"temperature": SimpleNamespace(label="Temperature")}
    page = SimpleNamespace(parts=SimpleNamespace(fields=fields), synthesis=synthesis)
    form_handlers = SimpleNamespace(restore=lambda values: [values])
    compare = CompareHandlers(synthesis, None, parts_by_name(CompareParts))
    names = [synthesis.settings.runtime.model]
    return HistoryHandlers(kept_take.history, page, form_handlers, compare, names)


def test_an_earlier_take_is_heard_used_compared_deleted(kept_take, synthesis):
    handlers = handlers_of(kept_take, synthesis)
    kept_take.history.add(kept_take.key, kept_take.take)

    def ask(**question) -> dict:
        return answer(kept_take.history, kept_take.served, {"key": kept_take.key} | question)

    (row,) = ask(do="list")["takes"]
    assert row["script"] == COMPARE_SCRIPT and "seed 5" in row["figures"]
    identity = row["id"]
    heard = Path(ask(do="hear", id=identity)["file"])
    assert heard.is_relative_to(kept_take.served)
    np.testing.assert_array_equal(read_samples(heard)[0], read_samples(kept_take.wav)[0])
    values, *_, status = handlers.use(kept_take.key, None, "", "", SimpleNamespace(id=identity))
    assert values["seed"] == 5 and values["script"] == COMPARE_SCRIPT and "<li>" not in status
    assert "Max tokens 60" in status and "Seed 5" in status
    compared = handlers.compare_with(kept_take.key, "speed", "", SimpleNamespace(id=identity))
    *started, _, tabs, _ = compared
    values = dict(zip(START, started, strict=True))
    assert values["scripts"] == COMPARE_SCRIPT and isinstance(tabs, gr.Tabs)
    assert (values["first"], values["second"]) == (1.0, 1.2)
    assert "error" in ask(do="hear", id=identity, key=new_key()), "a stranger's key"
    assert ask(do="delete", id=identity) == {}
    assert not heard.parent.exists(), "what is deleted cannot be fetched either"
    assert ask(do="list")["takes"] == []
    for wrong in (None, 3, [], "list", {}):
        assert list(answer(kept_take.history, kept_take.served, wrong)) == ["error"]
    # A program's press carries no data.
    with pytest.raises(InputError, match="no such take"):
        handlers.use(kept_take.key, None, "", "", gr.EventData(None, None))


def test_a_take_above_the_size_limit_is_refused(kept_take, monkeypatch):
    monkeypatch.setattr(history, "MAX_TAKE_BYTES", 2 * len(kept_take.take.samples) - 1)
    with pytest.raises(InputError, match="Download it"):
        kept_take.history.add(kept_take.key, kept_take.take)
    assert kept_take.history.list(kept_take.key) == []


@pytest.mark.parametrize("suffix", audio.FORMATS)
def test_a_dropped_file_brings_its_settings_back(kept_take, synthesis, tmp_path, suffix):
    handlers = handlers_of(kept_take, synthesis)
    dropped = convert_take(kept_take.wav, suffix)
    values, *_, status = handlers.drop(None, str(dropped), None, "", "")
    assert values["seed"] == 5 and "The settings of the take are in the form" in status
    (tmp_path / "other.wav").write_bytes(b"RIFF")
    with pytest.raises(InputError, match="no settings"):
        handlers.drop(None, str(tmp_path / "other.wav"), None, "", "")


@pytest.mark.parametrize("precision", ["int8", "int3", None])
def test_a_file_brings_the_precision_it_was_made_in(kept_take, synthesis, tmp_path, precision):
    """The take was asked for in "auto", which may be another precision elsewhere."""
    figures = replace(kept_take.take.figures, precision=precision)
    take = replace(kept_take.take, figures=figures)
    wav = take.save(tmp_path / "made.wav")
    values, *_ = handlers_of(kept_take, synthesis).drop(None, str(wav), None, "", "")
    assert values.get("precision") == (precision if precision == "int8" else None)
    identity = kept_take.history.add(kept_take.key, take)
    assert kept_take.history.get(kept_take.key, identity).values().items() <= values.items()
    *started, _, _, _ = handlers_of(kept_take, synthesis).compare_with(
        kept_take.key, "temperature", "", SimpleNamespace(id=identity)
    )
    values = dict(zip(START, started, strict=True))
    assert values["a_precision"] == (precision if precision == "int8" else "auto")


@pytest.mark.parametrize("changed", [{}, {"processor": "riscv64"}, {"weights": "calibrated as 0"}])
def test_a_take_made_elsewhere_says_that_it_may_differ(kept_take, synthesis, changed, monkeypatch):
    """Both as an earlier take and as a file."""
    monkeypatch.setattr(ModelInfo, "stored_weights", lambda *_: "calibrated as 1")
    numerics = kept_take.take.figures.numerics | changed
    figures = replace(kept_take.take.figures, numerics=numerics)
    take = replace(kept_take.take, figures=figures)
    identity = kept_take.history.add(kept_take.key, take)
    handlers = handlers_of(kept_take, synthesis)
    *_, used = handlers.use(kept_take.key, None, "", "", SimpleNamespace(id=identity))
    *_, dropped = handlers.drop(None, str(take.save(kept_take.wav)), None, "", "")
    for status in (used, dropped):
        assert ("the same seed may give a different take" in status) is bool(changed)
        assert all(value in status for value in changed.values())


@pytest.mark.parametrize("normalise", [True, False])
def test_a_file_brings_the_choice_to_normalise_back(kept_take, synthesis, tmp_path, normalise):
    request = replace(kept_take.take.request, normalise=normalise)
    wav = replace(kept_take.take, request=request).save(tmp_path / "made.wav")
    values, *_ = handlers_of(kept_take, synthesis).drop(None, str(wav), None, "", "")
    assert values["normalise"] is normalise


def test_what_a_file_cannot_bring_back_is_told(kept_take, synthesis, tmp_path):
    voice = VoicePrompt(codes=np.zeros((3, 4), np.int16), transcript="[S1] It’s\n<b>me</b>.")
    params = replace(kept_take.take.request.params, temperature=7.5)
    request = replace(kept_take.take.request, params=params, voice=voice)
    take = replace(kept_take.take, request=request)
    wav = take.save(tmp_path / "voice.wav")
    handlers = handlers_of(kept_take, synthesis)
    *_, status = handlers.drop(None, str(wav), None, "", "")
    assert "Note: Temperature was 7.5, but the slider ends at 5." in status
    assert "voice prompt that says “[S1] It’s &lt;b&gt;me&lt;/b&gt;.”. The file does not" in status
    identity = kept_take.history.add(kept_take.key, take)
    (*_, compared) = handlers.compare_with(kept_take.key, "speed", "", SimpleNamespace(id=identity))
    assert "voice prompt" in compared


@pytest.mark.parametrize(
    ("of_take", "in_form", "restored", "said"),
    [
        (None, ("other.wav", "[S1] Other."), (None, ""), "so the one in the form was removed"),
        (None, (None, "stale words"), (None, ""), ""),
        ("[S1] It is me.", ("other.wav", "[S1] Other."), (None, "[S1] It is me."), "add it again"),
        ("[S1] It is me.", (None, ""), (None, "[S1] It is me."), "add it again"),
        ("[S1] It is me.", ("me.wav", "[S1] It  is me."), "kept", "which was kept"),
    ],
)
def test_no_voice_prompt_of_another_take_stays(
    kept_take, synthesis, tmp_path, of_take, in_form, restored, said
):
    """What is restored is the whole take, and what the page says of it is true."""
    voice = None if of_take is None else VoicePrompt(transcript=of_take)
    take = replace(kept_take.take, request=replace(kept_take.take.request, voice=voice))
    wav = take.save(tmp_path / "made.wav")
    _, *found, xpu, status = handlers_of(kept_take, synthesis).drop(None, str(wav), *in_form, "")
    assert tuple(found) == ((gr.skip(), gr.skip()) if restored == "kept" else restored)
    assert (said in status) and (said != "" or "voice prompt" not in status)
    assert xpu is False, "the take was made on the CPU"


@pytest.mark.parametrize("choices", [("Anna", "Ben"), ("", "Ben"), ("Both", "")])
def test_a_take_brings_its_kept_voices_back_by_whatever_name(
    kept_take, synthesis, tmp_path, choices
):
    voices = KeptVoices.for_person(synthesis.settings, kept_take.key)
    for number, name in enumerate(("Anna", "Ben", "Both")):
        words = "[S1] Hello. [S2] Hi." if name == "Both" else "[S1] Hello there."
        codes = np.full((30, 9), number, np.int16)
        voices.add(VoiceFile(name, codes, words, "", 16000, 40.0, "a model"))
    request = add_voices(kept_take.take.request, choices, voices)
    wav = replace(kept_take.take, request=request).save(tmp_path / "voiced.wav")
    voices.rename("Ben", "Benjamin")
    handlers = handlers_of(kept_take, synthesis)
    values, *prompt, _, status = handlers.drop(kept_take.key, str(wav), None, "", "")
    expected = [name.replace("Ben", "Benjamin") for name in choices]
    assert [values[name] for name in VOICE_FIELDS] == expected
    assert prompt == [None, ""] and "voice" not in status, "they are not a voice prompt of the form"
    *_, status = handlers.drop(new_key(), str(wav), None, "", "")
    speakers = " and ".join(f"S{k}" for k, name in enumerate(choices, start=1) if name)
    assert f"its kept voice of {speakers} is not among your voices" in status


def test_a_file_without_a_parameter_brings_its_default_back(kept_take, synthesis, tmp_path):
    """The form may have another value, which is not the take's."""
    metadata = kept_take.take.metadata()
    del metadata["settings"]["top_k"]
    path = tmp_path / "old.wav"
    audio.write_audio(path, kept_take.take.samples, kept_take.take.sample_rate, metadata)
    values, *_ = handlers_of(kept_take, synthesis).drop(None, str(path), None, "", "")
    info = synthesis.models[synthesis.settings.runtime.model]
    assert values["top_k"] == info.config.defaults.top_k


def test_a_take_brings_its_pronunciations_back_beside_those_of_the_form(
    kept_take, synthesis, tmp_path
):
    word, other = COMPARE_SCRIPT.split()[1:3]
    listed = Pronunciations.parse(f"{other.strip('.,')} = you")
    take = replace(kept_take.take, request=replace(kept_take.take.request, pronunciations=listed))
    wav = take.save(tmp_path / "made.wav")
    handlers, own = handlers_of(kept_take, synthesis), f"{word.strip('.,')} = hey\nnginx = engine"
    values, *_, status = handlers.drop(None, str(wav), None, "", own)
    assert values["pronunciations"].splitlines() == [f"# {own}".splitlines()[0], "nginx = engine",
                                                     listed.text]  # fmt: skip
    assert "is turned off with a #" in status and "was added to the list" in status
    identity = kept_take.history.add(kept_take.key, take)
    *_, pronunciations, _, status = handlers.compare_with(
        kept_take.key, "speed", own, SimpleNamespace(id=identity)
    )
    assert pronunciations == values["pronunciations"] and "turned off" in status
    too_long = f"# {'x' * MAX_CHARACTERS}"
    values, *_, status = handlers.drop(None, str(wav), None, "", too_long)
    assert values["pronunciations"] == too_long and "could not be added" in status
