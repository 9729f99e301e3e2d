"""Requests to the service in tests: made, run to their end, told as letters, refused."""

import threading
from dataclasses import replace

import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import (
    AudioChunk,
    Cancelled,
    Failed,
    Finished,
    Loading,
    Progress,
    Started,
    Waiting,
)
from dia_demo.errors import InputError
from dia_demo.services.models import find_model
from dia_demo.services.take import Request
from tests.helpers.models.checkpoints import SMALL

SCRIPT = "[S1] Hello there. [S2] Hi."
LETTERS = {
    Waiting: "w", Loading: "l", Started: "s", Progress: "p", AudioChunk: "a",
    Finished: "F", Cancelled: "C", Failed: "X",
}  # fmt: skip


def runtime(folder, **changes) -> RuntimeConfig:
    return RuntimeConfig(model=str(folder), threads=1, **changes)


def make_request(synthesis, script=SCRIPT, voice=None, **changes) -> Request:
    fields = {
        name: changes.pop(name) for name in ("runtime", "speed", "with_audio") if name in changes
    }
    params = replace(SMALL.defaults, **(dict(temperature=1.0, max_tokens=60, seed=1) | changes))
    runtime = fields.pop("runtime", synthesis.settings.runtime)
    return Request(script, params, find_model(runtime.model), runtime, voice=voice, **fields)


def say(synthesis, request, cancel=None) -> list:
    return list(synthesis.stream(request, cancel or threading.Event()))


def letters(events) -> str:
    return "".join(LETTERS[type(event)] for event in events)


def refusal(synthesis, request) -> str:
    """The message; and the app works on."""
    with pytest.raises(InputError) as caught:
        say(synthesis, request)
    assert isinstance(say(synthesis, make_request(synthesis))[-1], Finished)
    return str(caught.value)
