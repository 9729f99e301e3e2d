"""Whatever JSON a program sends as an argument, it is used or refused in a sentence."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dia_demo.errors import DiaDemoError, RunError
from dia_demo.services.earlier.history import History
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.ui.api import arguments as declared
from dia_demo.ui.api.compare import make_compare
from dia_demo.ui.api.dialogue import make_dialogue_endpoint
from dia_demo.ui.api.endpoints import make_check
from dia_demo.ui.api.takes import make_audition, make_generate
from dia_demo.ui.generate import layout
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.live_audio import LiveAudio
from tests.helpers.page.page_stubs import parts_by_name

CALLER = SimpleNamespace(session_hash="0" * 32)
USUAL = {"script": "[S1] Hello there. [S2] Hello.", "settings": [{"temperature": 0.5}, {}]}
ANYTHING = [
    None, True, False, 0, -1, 7, 2.5, 1e300, float("nan"), float("inf"), -(10**30), "", " ", "x",
    "-1", "\0", "\ud800", "[S1]", "x" * 1000, [], [None], [[]], ["x"], ["x", "y"], [1, 2], {},
    [{}, {}], [{"x": 1}] * 2, [{"model": None}] * 2, [{"model": "x" * 70}, {}],
    [{"temperature": float("nan")}, {}], [{"top_k": 1e300}, {}], [{"speed": True}, {}],
    [{"normalise": 5}, {}], [{"seed_shift": 10**30}, {}], [{"precision": ""}, {}],
    {"path": "/etc/passwd"}, {"path": 5, "meta": {"_type": "gradio.FileData"}}, {"meta": []},
]  # fmt: skip


@pytest.fixture
def endpoints(synthesis, tmp_path, monkeypatch) -> dict:
    """Of each endpoint its function and arguments. What it accepts is not made."""

    def accepted(requests, *_, **__):
        for request in requests:
            synthesis.validate(request)
        raise RunError("It would be made.")
        yield

    monkeypatch.setattr(synthesis, "stream_together", accepted)
    parts = parts_by_name(layout.GenerateParts)
    handlers = GenerateHandlers(synthesis, parts, LiveAudio(), History(tmp_path))
    comparisons = ComparisonStore(tmp_path / "kept", synthesis)
    models, name = list(synthesis.models.values()), synthesis.settings.runtime.model
    start = models, name, "float32"
    generate, audition = (
        declared.arguments_of_generate(*start),
        declared.arguments_of_audition(*start),
    )
    dialogue, compare = (
        declared.arguments_of_dialogue(*start),
        declared.arguments_of_compare(*start),
    )
    check = declared.arguments_of_check(models, name)
    return {
        "generate": (make_generate(handlers, generate), generate),
        "audition": (make_audition(handlers, audition), audition),
        "dialogue": (make_dialogue_endpoint(handlers, dialogue), dialogue),
        "compare": (make_compare(handlers, comparisons, compare), compare),
        "check": (make_check(synthesis, check), check),
    }


@pytest.mark.long
@pytest.mark.parametrize("name", ["generate", "audition", "dialogue", "compare", "check"])
def test_any_value_is_used_or_refused_in_a_sentence(endpoints, name, tmp_path):
    work, arguments = endpoints[name]
    for argument in arguments:
        for value in ANYTHING:
            given = USUAL | {argument: value}
            try:
                answer = work(CALLER, *(given.get(one) for one in arguments))
                assert name == "check" or not list(answer), "nothing can be made here"
            except DiaDemoError as error:
                assert 10 < len(str(error)) < 500, f"{argument}: {value!r}"
    assert not list((tmp_path / "kept").glob("*")), "a refused comparison leaves nothing"
