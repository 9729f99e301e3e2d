"""A program that disconnects stops its run within a step, whatever it asked for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dia_demo.engine.events import Finished, Progress
from dia_demo.errors import RunError
from dia_demo.services.earlier.history import History
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.programs.takes import STOPPED
from dia_demo.ui.api.arguments import (
    arguments_of_audition,
    arguments_of_compare,
    arguments_of_dialogue,
    arguments_of_generate,
)
from dia_demo.ui.api.compare import make_compare
from dia_demo.ui.api.dialogue import make_dialogue_endpoint
from dia_demo.ui.api.takes import make_audition, make_generate
from dia_demo.ui.generate import layout
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.live_audio import LiveAudio
from tests.helpers.page.page_stubs import parts_by_name

CALLER = SimpleNamespace(session_hash="0" * 32)
SCRIPT = "[S1] Hello there, my friend. [S2] Hello, and how are you?"


@pytest.fixture
def handlers(synthesis, tmp_path, monkeypatch, talkative, slow_steps) -> GenerateHandlers:
    """The caller disconnects as soon as its run has made progress."""
    parts = parts_by_name(layout.GenerateParts)
    handlers = GenerateHandlers(synthesis, parts, LiveAudio(), History(tmp_path))
    handlers.finished = []
    make = synthesis.stream_together

    def until_it_leaves(*given, **options):
        for event in make(*given, **options):
            if isinstance(event, Progress):
                handlers.calls.stop_disconnected(CALLER.session_hash)
            if isinstance(event, Finished):
                handlers.finished.append(event)
            yield event

    monkeypatch.setattr(synthesis, "stream_together", until_it_leaves)
    return handlers


def values_of(arguments: dict, **given: object) -> list:
    return [given.get(name) for name in arguments]


def start(synthesis) -> tuple:
    runtime = synthesis.settings.runtime
    return list(synthesis.models.values()), runtime.model, "float32"


def endings(work) -> set[str]:
    """How the takes of a run ended; some sound may have been made by then."""
    try:
        ((_, figures),) = list(work)
    except RunError as error:
        assert str(error) == STOPPED
        return {"cancelled"}
    return {one["finish_reason"] for one in figures.get("takes", [figures])}


def test_a_take_is_stopped(synthesis, handlers):
    arguments = arguments_of_generate(*start(synthesis))
    generate = make_generate(handlers, arguments)
    assert endings(generate(CALLER, *values_of(arguments, script=SCRIPT))) == {"cancelled"}
    assert handlers.finished == []


def test_an_audition_is_stopped(synthesis, handlers):
    arguments = arguments_of_audition(*start(synthesis))
    audition = make_audition(handlers, arguments)
    assert endings(audition(CALLER, *values_of(arguments, script=SCRIPT))) == {"cancelled"}
    assert handlers.finished == []


def test_a_dialogue_is_stopped(synthesis, handlers):
    arguments = arguments_of_dialogue(*start(synthesis))
    dialogue = make_dialogue_endpoint(handlers, arguments)
    folder = synthesis.settings.served_folder
    before = set(folder.iterdir())
    with pytest.raises(RunError, match="stopped after 0 of 2 parts"):
        list(dialogue(CALLER, *values_of(arguments, script=f"{SCRIPT} (pause 1) {SCRIPT}")))
    assert handlers.finished == []
    assert set(folder.iterdir()) <= before, "its folder is removed"


def test_a_comparison_is_stopped(synthesis, handlers, tmp_path):
    arguments = arguments_of_compare(*start(synthesis))
    comparisons = ComparisonStore(tmp_path / "kept", synthesis)
    given = {"script": SCRIPT, "settings": [{"temperature": 0.5}, {}], "pairs": 1}
    with pytest.raises(RunError, match="stopped after 0 of 1 pairs"):
        compare = make_compare(handlers, comparisons, arguments)
        list(compare(CALLER, *values_of(arguments, **given)))
    assert handlers.finished == []
    assert list(comparisons.home.iterdir()) == []
