"""What a page that opens shows: a run, the last take, or why there is none."""

from __future__ import annotations

import os
import shutil
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest

from dia_demo.engine.events import Finished
from dia_demo.errors import InputError
from dia_demo.services.earlier import history as history_module
from dia_demo.services.people import new_key
from dia_demo.services.scratch import Scratch
from dia_demo.ui.generate.take_files import figures_of
from dia_demo.ui.history.history import answer
from dia_demo.ui.history.returning import ReturnHandlers
from tests.helpers.page.page_stubs import (
    FIGURES,
    RUNNING,
    STARTED,
    field_values,
    result,
    silent_take,
    stub_handlers,
)
from tests.helpers.stand_ins.disks import fill, mount_disk

PAGE = SimpleNamespace(session_hash="s")


class Visit:
    """The handlers of a page over a stub service, and one person."""

    def __init__(self, events, home) -> None:
        self.generate, _ = stub_handlers(events, home)
        self.history = self.generate.files.history
        self.returning = ReturnHandlers(self.generate, self.history)
        self.key = new_key()

    def press(self, key: str | None = None):
        return self.generate.generate(PAGE, key or self.key, *field_values())

    def reload(self, key: str | None = None) -> dict:
        """All that a page shows once it is open."""
        key = key or self.key
        shown = dict(self.returning.last_take(PAGE, key))
        for update in self.returning.rejoin(PAGE, key):
            shown |= {name: value for name, value in update.items() if value != gr.skip()}
        return shown


@pytest.fixture
def visit(tmp_path):
    return Visit([STARTED, RUNNING, Finished(result(samples=1600))], tmp_path)


def has_take(shown: dict) -> bool:
    return "take" in shown.get("player", {})


def test_the_end_of_a_run_is_there_after_a_reload(visit):
    *_, last = visit.press()
    shown = visit.reload()
    assert {name: shown[name] for name in last} == last
    assert 'data-state="done"' in shown["status"] and "421337" in shown["figures"]
    assert not has_take(visit.reload(new_key())), "another person sees nothing of it"


def test_the_last_take_is_there_after_a_restart(visit, tmp_path):
    *_, last = visit.press()
    again = Visit([], tmp_path)
    shown = again.reload(visit.key)
    assert shown["figures"] == last["figures"] and shown["take_seed"] == last["take_seed"]
    assert "data:image/png" in shown["spectrogram"]
    assert "Your last take is in the player" in shown["status"]
    assert Path(shown["take_file"]).read_bytes() == Path(last["take_file"]).read_bytes()


def test_a_take_is_shown_from_the_earlier_takes_when_its_files_are_gone(visit, tmp_path):
    *_, last = visit.press()
    shutil.rmtree(tmp_path / "takes")
    shown = visit.reload()
    assert shown["figures"] == last["figures"] and Path(shown["player"]["take"]["file"]).exists()
    for path in (tmp_path / "takes").rglob("*"):
        os.utime(path, (0, 0))
    Scratch(tmp_path / "takes", 0).trim()
    assert not list((tmp_path / "takes").rglob("*.wav")), "temporary files have a limit"
    assert visit.reload()["figures"] == last["figures"]


def test_a_deleted_take_does_not_come_back(visit):
    list(visit.press())
    (row,) = answer(visit.history, visit.generate.files.home, {"do": "list", "key": visit.key})[
        "takes"
    ]
    question = {"do": "delete", "key": visit.key, "id": row["id"]}
    answer(visit.history, visit.generate.files.home, question)
    assert not has_take(visit.reload())


def test_a_refusal_leaves_the_earlier_take_in_the_player(visit, tmp_path):
    list(visit.press())
    visit.generate.synthesis.stream = refuse
    list(visit.press())
    shown = visit.reload()
    assert has_take(shown) and "The script is empty" in shown["status"]


def refuse(request, cancel, in_int8_meanwhile):
    raise InputError("The script is empty.")
    yield


def test_a_take_that_made_room_is_told(visit, monkeypatch):
    list(visit.press())
    visit.generate.run = stub_handlers([], visit.history.home)[0].run  # as after a restart
    visit.history.limit = 1
    before = datetime.now(UTC)
    visit.history.add(new_key(), silent_take())
    shown = visit.reload()
    assert not has_take(shown) and "Your last take was removed" in shown["status"]
    listed = answer(visit.history, visit.generate.files.home, {"do": "list", "key": visit.key})
    assert listed["takes"] == [] and datetime.fromisoformat(listed["removed"]) < before


def test_a_run_that_ended_with_the_program_is_told(tmp_path):
    go_on = threading.Event()
    killed = Visit([STARTED, go_on, Finished(result())], tmp_path)
    next(update for update in killed.press() if "Generating" in update["status"])
    started = Visit([], tmp_path)
    assert "Last take lost" in started.reload(killed.key)["status"]
    go_on.set()
    list(killed.generate.run.find(PAGE, killed.key).watch())
    assert "Last take lost" not in Visit([], tmp_path).reload(killed.key)["status"]


def test_a_take_that_cannot_be_kept_is_handed_over_with_a_note(tmp_path):
    with mount_disk(tmp_path / "kept", "256k") as disk:
        visit = Visit([STARTED, Finished(result(samples=64_000))], tmp_path)
        fill(disk)
        *_, last = visit.press()
        assert "not among the earlier takes" in last["status"] and "No space" in last["status"]
        assert visit.reload()["player"] == last["player"], "as long as its temporary files last"


def test_a_take_that_is_too_large_to_keep_is_handed_over(visit, monkeypatch):
    monkeypatch.setattr(history_module, "MAX_TAKE_BYTES", 100)
    *_, last = visit.press()
    assert has_take(last) and "Download it to keep it" in last["status"]


def test_folders_deleted_in_the_middle_of_a_run_lose_nothing(tmp_path):
    go_on = threading.Event()
    visit = Visit([STARTED, RUNNING, go_on, Finished(result(samples=1600))], tmp_path)
    watching = visit.press()
    next(update for update in watching if "Generating" in update["status"])
    shutil.rmtree(tmp_path / "takes")
    shutil.rmtree(tmp_path / "kept")
    go_on.set()
    *_, last = watching
    assert has_take(last) and visit.history.latest(visit.key) is not None


@pytest.mark.parametrize(
    "saved",
    [{}, vars(FIGURES) | {"seed": None, "audio_seconds": "x"}, vars(FIGURES) | {"model": 3}],
)
def test_figures_that_cannot_be_read_are_none(saved):
    assert figures_of(saved) is None and figures_of(vars(FIGURES)) == FIGURES
