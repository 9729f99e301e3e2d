"""A press of Generate without a browser: the buttons, the take and the pieces heard meanwhile."""

from __future__ import annotations

import base64
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile

from dia_demo.engine.events import AudioChunk, Cancelled, Finished, SpokenWord
from dia_demo.errors import InputError
from dia_demo.services.people import new_key
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.live_audio import KEPT_RUNS, LiveAudio, LiveRun
from tests.helpers.page.page_stubs import (
    FIGURES,
    RUNNING,
    STARTED,
    field_values,
    result,
    silent_take,
    stub_handlers,
)

PAGE = SimpleNamespace(session_hash="s")


def has_take(update: dict) -> bool:
    return "take" in update.get("player", {})


def press_generate(handlers: GenerateHandlers, key: str | None = None):
    return handlers.generate(PAGE, key, *field_values())


@pytest.mark.parametrize("error", [InputError("No such thing."), ZeroDivisionError("bug")])
def test_a_failed_run_brings_the_earlier_take_back_as_such(error, tmp_path):
    handlers, _ = stub_handlers([STARTED, RUNNING, error], tmp_path)
    key = new_key()
    handlers.files.history.add(key, silent_take())
    updates = list(press_generate(handlers, key))
    assert not any(has_take(update) for update in updates[:-1]), "not under the run"
    assert updates[-1]["player"]["take"]["label"] == "Earlier take"
    assert updates[-1]["take_file"] == updates[-1]["player"]["take"]["file"]
    assert "421337" in updates[-1]["figures"]


@pytest.mark.parametrize("key", [None, new_key()], ids=["without a key", "with a key"])
def test_a_run_clears_the_take_before_it(key, tmp_path):
    """Until its own is there, also for a page that receives several updates in one go."""
    take = Finished(result(samples=1600))
    handlers, _ = stub_handlers([STARTED, RUNNING, STARTED, take], tmp_path)
    for _ in range(2):
        for update in press_generate(handlers, key):
            if "take_file" in update and not has_take(update):
                assert update["take_file"] is None
                assert not update["download_take"]["interactive"]
                assert not update["keep_seed"]["interactive"] and update["take_seed"] is None
                assert "421337" not in update["figures"] and "data:" not in update["spectrogram"]
            elif not has_take(update):
                assert update["player"]["done"], "the sound is complete, its file follows"


def test_what_was_heard_of_a_failed_run_stays(tmp_path):
    chunk = AudioChunk(np.ones(1600, np.float32), 16000, 0.1)
    handlers, _ = stub_handlers([STARTED, chunk, RUNNING, ZeroDivisionError("bug")], tmp_path)
    key = new_key()
    handlers.files.history.add(key, silent_take())
    *_, last = press_generate(handlers, key)
    assert not has_take(last) and last["player"]["ready"] > 0 and last["take_file"] is None


@pytest.mark.parametrize("error", [InputError("No such thing."), ZeroDivisionError("bug")])
def test_a_failed_run_gives_its_buttons_back(error, tmp_path):
    handlers, _ = stub_handlers([STARTED, RUNNING, error], tmp_path)
    updates = list(press_generate(handlers))
    assert not any(has_take(update) for update in updates)
    assert 'data-state="failed"' in updates[-1]["status"]
    assert not updates[-1]["stop"]["interactive"] and handlers.run.idle()["generate"]["interactive"]
    assert updates[-1]["player"]["done"]


def test_an_unwritable_takes_folder_is_reported_by_its_setting(tmp_path):
    taken = tmp_path / "takes"
    taken.write_text("not a folder")
    handlers, _ = stub_handlers([STARTED, Finished(result())], tmp_path)
    updates = list(press_generate(handlers))
    assert "DIA_TAKES" in updates[-1]["status"] and updates[-1]["player"]["done"]
    assert str(tmp_path) not in updates[-1]["status"], "a server's folders are its own affair"
    assert handlers.run.idle()["generate"]["interactive"]


def test_a_full_disk_is_said_before_the_take_is_made(tmp_path, monkeypatch):
    """gradio's copy of the finished take failed, with the message "null"."""
    handlers, _ = stub_handlers([STARTED, Finished(result())], tmp_path)
    usage = SimpleNamespace(free=1_000_000)
    monkeypatch.setattr("dia_demo.ui.generate.take_files.shutil.disk_usage", lambda _: usage)
    updates = list(press_generate(handlers))
    assert "1 MB are free" in updates[-1]["status"] and "DIA_TAKES" in updates[-1]["status"]
    assert not has_take(updates[-1]) and updates[-1]["player"]["done"]


def test_a_run_without_a_sound_is_no_take(tmp_path):
    silent = replace(result(), samples=np.zeros(0, np.float32))
    for event, words in (
        (Finished(silent), "before it generated any audio"),
        (Cancelled(silent), "There was no speech yet"),
    ):
        handlers, _ = stub_handlers([STARTED, event], tmp_path)
        updates = list(press_generate(handlers))
        assert not any(has_take(update) for update in updates)
        assert any(words in update.get("status", "") for update in updates)


def test_words_that_a_model_knows_come_as_they_begin(tmp_path):
    chunk = AudioChunk(np.ones(1600, np.float32), 16000, 0.0)
    words = [SpokenWord("Hello.", 0.5, 1), SpokenWord("Hi", 1.0, 2)]
    reports = [replace(RUNNING, words=(word,), audio_seconds=1.5) for word in words]
    last = Finished(replace(result(samples=32000), words=tuple(words)))
    handlers, _ = stub_handlers([STARTED, chunk, *reports, last], tmp_path)
    players = [update["player"] for update in press_generate(handlers) if "player" in update]
    cues = [one["cues"] for one in players if "cues" in one]
    assert cues[0][0]["words"][0] == ["Hello.", 0.5] and cues[0][0]["speaker"] == "S1"
    assert [word for cue in cues[-1] for word in cue["words"]] == [["Hello.", 0.5], ["Hi", 1.0]]


def test_what_is_wrong_with_the_sound_is_said(tmp_path):
    loud = replace(result(samples=16000), samples=np.tile(np.float32([1, -1]), 8000))
    handlers, _ = stub_handlers([STARTED, Finished(loud)], tmp_path)
    assert any("Note: It is clipped" in one.get("status", "") for one in press_generate(handlers))


def test_a_finished_run_delivers_a_16_bit_take(tmp_path):
    handlers, _ = stub_handlers([STARTED, Finished(result(samples=1600))], tmp_path)
    for update in press_generate(handlers):
        if has_take(update):
            assert soundfile.info(update["player"]["take"]["file"]).subtype == "PCM_16"
            file = handlers.download(update["take_file"], "flac")["file"]
            assert soundfile.info(file).format == "FLAC"
    # In the last update: one behind it could take the player's file away before it is read.
    assert has_take(update) and update["player"]["done"]
    assert not update["stop"]["interactive"] and 'data-state="done"' in update["status"]
    assert update["take_seed"] == FIGURES.seed and "421337" in update["figures"]
    assert "data:image/png;base64," in update["spectrogram"]


def test_the_pieces_a_page_fetches_are_the_whole_take():
    live, run = LiveAudio(), LiveRun()
    live.admit(run)
    wave = np.linspace(-0.5, 0.5, 1000).astype(np.float32)
    got = np.zeros(0, "<i2")
    for start in range(0, 1000, 130):
        run.add(wave[start : start + 130], 16000)
        part = live.read_from(run.token, len(got))
        got = np.concatenate([got, np.frombuffer(base64.b64decode(part["pcm"]), "<i2")])
        assert part["rate"] == 16000 and not part["done"]
    run.done = True
    assert live.read_from(run.token, len(got)) == {"pcm": "", "rate": 16000, "done": True}
    assert np.abs(got / 32767 - wave).max() < 1e-4


def test_live_sound_begins_with_the_notice_once_as_the_file_does():
    run = LiveRun(lambda rate: np.full(rate // 2, 0.25, np.float32))
    for _ in range(2):
        run.add(np.zeros(1600, np.float32), 16000)
    run.expect(replace(RUNNING, audio_seconds=1.0, expected_seconds=4.0))
    pcm = np.frombuffer(base64.b64decode(run.read_from(0)["pcm"]), "<i2")
    assert len(pcm) == 8000 + 3200 and pcm[:8000].all() and not pcm[8000:].any()
    assert run.state() == run.state() | {"ready": 0.7, "total": 4.5, "lag": 0.8}


def test_no_more_is_ready_than_there_is():
    """A player that is told of more asks for it again and again."""
    run = LiveRun()
    for samples in range(1, 2000, 97):
        run.add(np.zeros(samples, np.float32), 24000)
        arrived = len(base64.b64decode(run.read_from(0)["pcm"])) / 2
        assert arrived - 240 < 24000 * run.state()["ready"] <= arrived


def test_only_an_ended_run_is_evicted_to_admit_another():
    live, runs = LiveAudio(), [LiveRun() for _ in range(KEPT_RUNS + 2)]
    for run in runs:
        run.add(np.ones(9, np.float32), 16000)
    runs[1].done = True
    for run in runs:
        live.admit(run)
    for token in ("nonsense", runs[1].token):
        assert live.read_from(token, 0) == {"pcm": "", "rate": 0, "done": True}
    kept = [run for run in runs if run is not runs[1]]
    assert all(live.read_from(run.token, 0)["pcm"] for run in kept), "none of them has ended"


def test_presses_that_are_refused_leave_a_running_take_to_be_heard(tmp_path):
    chunk, go_on = AudioChunk(np.ones(1600, np.float32), 16000, 0.1), threading.Event()
    handlers, _ = stub_handlers([STARTED, chunk, RUNNING, go_on], tmp_path)
    running = press_generate(handlers)
    token = next(update["player"]["run"] for update in running if update["player"]["ready"])
    refused, _ = stub_handlers([InputError("The queue is full.")], tmp_path)
    refused.live = handlers.live
    for _ in range(2 * KEPT_RUNS):
        list(press_generate(refused))
    heard = handlers.live.read_from(token, 0)
    assert heard["pcm"] and not heard["done"]
    go_on.set()
    list(running)
    for _ in range(2 * KEPT_RUNS):
        list(press_generate(refused))
    assert handlers.live.read_from(token, 0)["pcm"], "nor one that has ended since"
