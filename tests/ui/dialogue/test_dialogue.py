"""A long script on the page without a browser: its parts, Stop and Resume, other words, files."""

import re
import zipfile
from types import SimpleNamespace

import gradio as gr
import pytest
import soundfile

from dia_demo.engine.row_stream import RowStream
from dia_demo.errors import InputError
from dia_demo.services.earlier.history import History
from dia_demo.services.people import new_key
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.dialogue import answers
from dia_demo.ui.generate import layout
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.live_audio import LiveAudio
from dia_demo.ui.history.returning import ReturnHandlers
from tests.helpers.dialogues import BAD, SCRIPT, judge_by_test, stop_at_step
from tests.helpers.page.page_stubs import field_values, parts_by_name
from tests.helpers.synthesis_requests import runtime

PAGE = SimpleNamespace(session_hash="s")


@pytest.fixture(autouse=True)
def judged(monkeypatch):
    """The verdicts by the test, one for each attempt."""
    return judge_by_test(monkeypatch)


@pytest.fixture
def handlers(folder, tmp_path):
    settings = Settings(
        runtime(folder), takes_folder=tmp_path / "takes", kept_folder=tmp_path / "kept"
    )
    synthesis = Synthesis(settings)
    parts = parts_by_name(layout.GenerateParts)
    yield GenerateHandlers(synthesis, parts, LiveAudio(), History(tmp_path / "kept"))
    synthesis.close()


@pytest.fixture
def key():
    return new_key()


def values(handlers, **changes) -> list:
    model = handlers.synthesis.settings.runtime.model
    settings = dict(script=SCRIPT, precision="float32", max_tokens=500, top_k=50, in_parts=True)
    return field_values(model=model, **(settings | changes))


def generate(handlers, key, **changes):
    return handlers.generate(PAGE, key, *values(handlers, **changes))


def press(handlers, key, **data) -> list[dict]:
    return list(handlers.press_parts(PAGE, gr.EventData(None, data), key))


def last_of(updates) -> dict:
    shown: dict = {}
    for update in updates:
        shown |= update
    return shown


def stopped(handlers, key, monkeypatch, is_time) -> dict:
    """Stop is pressed after the first step for which `is_time`."""
    stop_at_step(monkeypatch, is_time, lambda: handlers.run.stop(PAGE, key))
    return last_of(generate(handlers, key))


def test_a_long_script_is_made_in_parts_and_is_one_take(handlers, key, judged):
    judged[1, 0] = judged[1, 1] = judged[1, 2] = BAD
    shown = last_of(generate(handlers, key))
    rows = shown["dialogue"]
    assert rows["made"] == len(rows["parts"]) >= 3 and not rows["running"]
    assert [row["state"] for row in rows["parts"]][:3] == ["good", "faulty", "good"]
    assert rows["parts"][0]["text"] == "[S1] One two three four. [S2] Five six seven."
    assert rows["starts"] == sorted(rows["starts"]) and rows["starts"][0] == 0
    assert "part 2 has a fault: too fast" in shown["status"]
    (take,) = handlers.files.history.list(key)
    assert take.script == SCRIPT
    seconds = soundfile.info(shown["take_file"]).duration
    assert f"{seconds:.1f} s" in shown["figures"]
    assert sum(row["seconds"] for row in rows["parts"]) == pytest.approx(seconds, abs=3)
    heard = handlers.live.read_from(shown["player"]["run"], 0)
    assert heard["done"] and len(heard["pcm"]) * 3 // 4 == pytest.approx(
        2 * seconds * heard["rate"], abs=4
    )


def test_without_the_choice_it_is_one_take(handlers, key):
    values_of_one = values(handlers)[:-1]
    shown = last_of(handlers.generate(PAGE, key, *values_of_one, False))
    assert (
        shown["dialogue"] == {"parts": []}
        and answers.kept_dialogue(handlers.synthesis, key).plan is None
    )


def test_stop_keeps_the_parts_and_resume_makes_the_rest(handlers, key, monkeypatch):
    monkeypatch.setattr("dia_demo.services.dialogue.run.WAVE", 1)  # one after the other
    streams: list[RowStream] = []

    def in_second_part(stream: RowStream) -> bool:
        streams.append(stream)
        return stream is not streams[0]

    shown = stopped(handlers, key, monkeypatch, in_second_part)
    made, count = shown["dialogue"]["made"], len(shown["dialogue"]["parts"])
    assert 1 == made < count and not shown["dialogue"]["running"]
    assert f"{made} of {count} parts are kept. Press Resume" in shown["status"]
    assert shown["take_file"] is None
    again = GenerateHandlers(
        handlers.synthesis, handlers.parts, LiveAudio(), handlers.files.history
    )
    page = ReturnHandlers(again, again.files.history).last_take(PAGE, key)
    assert "Your last dialogue is not complete" in page["status"]
    assert page["dialogue"]["made"] == made
    resumed = last_of(press(again, key, do="resume"))
    assert resumed["dialogue"]["made"] == count
    assert resumed["take_file"] and 'data-state="done"' in resumed["status"]


def test_a_page_that_opens_shows_the_parts_of_the_last_take(handlers, key, folder, tmp_path):
    shown = last_of(generate(handlers, key))
    again = GenerateHandlers(
        handlers.synthesis, handlers.parts, LiveAudio(), handlers.files.history
    )
    page = ReturnHandlers(again, again.files.history).last_take(PAGE, key)
    assert page["dialogue"]["parts"] == shown["dialogue"]["parts"]
    assert page["dialogue"]["starts"] == shown["dialogue"]["starts"]
    other = ReturnHandlers(again, again.files.history).last_take(PAGE, new_key())
    assert "dialogue" not in other, "another person sees nothing of it"
    last_of(generate(again, key, script="[S1] Short. [S2] Yes."))
    page = ReturnHandlers(again, again.files.history)._dialogue(key, "[S1] Short. [S2] Yes.")
    assert page == {}, "a later take has no parts"


def test_a_part_gets_other_words(handlers, key):
    before = last_of(generate(handlers, key))
    updates = press(handlers, key, do="again", index=1, words="[S1] Something else now.")
    assert not any(update.get("take_file", "kept") is None for update in updates)
    shown = last_of(updates)
    texts = [row["text"] for row in shown["dialogue"]["parts"]]
    assert texts[1] == "[S1] Something else now."
    assert shown["take_file"] != before["take_file"]
    assert "Something else now." in handlers.files.history.list(key)[0].script


def test_words_that_are_too_long_are_refused_and_the_list_stays(handlers, key):
    before = last_of(generate(handlers, key))
    shown = last_of(press(handlers, key, do="again", index=0, words="So many words. " * 60))
    assert "too long for one part" in shown["status"]
    assert shown["dialogue"]["parts"] == before["dialogue"]["parts"]
    assert not shown["dialogue"]["running"]


def test_a_stop_before_a_part_is_complete_says_so(handlers, key, monkeypatch):
    shown = stopped(handlers, key, monkeypatch, lambda _: True)
    assert "No part was complete yet. Press Resume to begin again." in shown["status"]
    page = ReturnHandlers(handlers, handlers.files.history)
    assert page._dialogue(key, "") == {}, "there is nothing to show"
    resumed = last_of(press(handlers, key, do="resume"))
    assert resumed["dialogue"]["made"] == len(resumed["dialogue"]["parts"])


def test_the_beginning_of_a_stopped_part_can_be_played(handlers, key, monkeypatch):
    shown = stopped(handlers, key, monkeypatch, lambda stream: stream.audio_seconds > 0.2)
    states = [part["state"] for part in shown["dialogue"]["parts"]]
    assert shown["dialogue"]["made"] == 0 and "stopped" in states
    assert "can play the beginning of " in shown["status"] and "Resume" in shown["status"]
    question = {"do": "hear", "key": key, "index": states.index("stopped")}
    assert answers.answer(handlers.synthesis, question)["sound"].startswith("data:audio/")
    assert handlers.live.read_from(shown["player"]["run"], 0)["pcm"], "the player has it"
    page = ReturnHandlers(handlers, handlers.files.history)._dialogue(key, "")
    assert page["dialogue"]["parts"] == shown["dialogue"]["parts"]
    resumed = last_of(press(handlers, key, do="resume"))
    assert resumed["dialogue"]["made"] == len(states)
    assert answers.kept_dialogue(handlers.synthesis, key).store.read_stopped(0) is None


def test_files_are_written_for_one_person_at_a_time(handlers, key, monkeypatch):
    last_of(generate(handlers, key))
    monkeypatch.setattr(answers, "WAIT_SECONDS", 0.01)
    with answers._WRITING:
        told = answers.answer(handlers.synthesis, {"do": "srt", "key": key})
    assert "try again in a moment" in told["error"]
    assert "file" in answers.answer(handlers.synthesis, {"do": "srt", "key": key})


@pytest.mark.parametrize("index", [-1, 99, None, "1", 1.0, True])
def test_a_part_that_does_not_exist_is_refused(handlers, key, index):
    with pytest.raises(InputError, match="no longer kept"):
        press(handlers, key, do="again", index=index)
    last_of(generate(handlers, key))
    with pytest.raises(InputError, match="no longer kept"):
        press(handlers, key, do="again", index=index)


def test_the_list_gives_sounds_subtitles_and_zips(handlers, key):
    last_of(generate(handlers, key))

    def ask(**question) -> dict:
        return answers.answer(handlers.synthesis, {"key": key} | question)

    assert ask(do="hear", index=0, take=0)["sound"].startswith("data:audio/")
    for index, take in ((99, 0), (0, 9), (-1, 0), (0, -1), (None, 0), (0, None), ("0", "0")):
        assert "not made" in ask(do="hear", index=index, take=take)["error"]
    srt = ask(do="srt")["file"]
    assert re.search(r"one-two-three-four.*\.srt$", srt)
    with open(srt) as file:
        assert "S1: One two three four." in file.read()
    with open(ask(do="vtt")["file"]) as file:
        assert file.read().startswith("WEBVTT")
    with zipfile.ZipFile(ask(do="parts", format="flac")["file"]) as archive:
        names = archive.namelist()
    assert names[0].startswith("001-") and all(name.endswith(".flac") for name in names)
    # Random weights do not say who speaks when.
    assert "not known who speaks when" in ask(do="speakers")["error"]
    for wrong in ({"do": "delete"}, {"do": None}, {"do": ["hear"]}):
        assert "unknown request" in ask(**wrong)["error"]
    for stranger in (new_key(), None, "../x", 7):
        assert "error" in ask(do="srt", key=stranger)
    assert "error" in answers.answer(handlers.synthesis, "hear")
