"""What the Compare tab brings back after a reload, without a browser."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import gradio as gr
import pytest

from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import new_key
from dia_demo.ui.compare.form.fields import FIELDS, CompareForm
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts, build_layout
from dia_demo.ui.compare.reload import reopened_updates, restored_updates
from dia_demo.ui.compare.room_api import RoomApi
from tests.helpers.page.page_stubs import compare_values, parts_by_name

PAGE = SimpleNamespace(session_hash="page")


@pytest.fixture(scope="module")
def kept(synthesis, side_values, tmp_path_factory):
    """A comparison that is being judged: its handlers, key and id."""
    store, key = ComparisonStore(tmp_path_factory.mktemp("kept"), synthesis), new_key()
    plan = CompareForm.from_values(compare_values(side_values, seeds=1)).plan(synthesis)
    identity = store.create(key, plan)
    list(store.run(key, identity, threading.Event()))
    handlers = CompareHandlers(synthesis, store, parts_by_name(CompareParts))
    return SimpleNamespace(handlers=handlers, key=key, id=identity, store=store)


def reopen(kept, **memory) -> dict:
    return reopened_updates(kept.handlers, "tabs", PAGE, kept.key, {"id": kept.id} | memory)


def test_a_test_in_progress_comes_back_in_front(kept):
    updates = reopen(kept, front=True)
    assert updates["lab"]["id"] == kept.id and updates["tabs"]["selected"] == "compare"


def test_another_tab_stays_in_front(kept):
    updates = reopen(kept, front=False)
    assert updates["lab"]["id"] == kept.id and "tabs" not in updates


@pytest.mark.parametrize(
    "memory", [{"id": "0" * 24}, {"id": None}, {"id": ["x"]}, {"id": "../.."}], ids=str
)
def test_a_comparison_that_is_gone_is_forgotten(kept, memory):
    updates = reopen(kept, front=True, **memory)
    assert "lab" not in updates and "tabs" not in updates and "status" not in updates


def test_a_page_without_memory_stays_as_it_is(kept):
    for memory in (None, [], "room", 7):
        assert "lab" not in reopened_updates(kept.handlers, "tabs", PAGE, kept.key, memory)


def test_a_finished_test_comes_back_only_where_it_was_in_front(kept):
    identity = kept.store.repeat(kept.key, kept.id)
    kept.store.get(kept.key, identity).reveal()
    assert "lab" not in reopen(kept, id=identity, front=False)
    assert reopen(kept, id=identity, front=True)["lab"]["id"] == identity


@pytest.fixture(scope="module")
def parts(synthesis, kept):
    with gr.Blocks():
        return build_layout(synthesis, list(synthesis.models.values()), RoomApi(kept.store))


def test_the_form_comes_back(parts):
    saved = {name: parts.fields[name].value for name in FIELDS}
    saved |= {"scripts": "[S1] Mine. [S2]", "seeds": 5, "first_seed": "7", "b_temperature": 0.7}
    updates = dict(zip(FIELDS, restored_updates(parts, saved), strict=True))
    assert {name: updates[name]["value"] for name in FIELDS} == saved


@pytest.mark.parametrize(
    "name, value",
    [
        ("kind", "guess"),
        ("a_model", "../elsewhere"),
        ("seeds", 1e9),
        ("seeds", "many"),
        pytest.param("scripts", "long " * 30_000, id="too long"),
        ("scripts", 7),
        ("use_voice", "yes"),
        ("b_temperature", "hot"),
        ("unknown", 1),
    ],
)
def test_a_value_that_the_form_cannot_have_is_left_out(parts, name, value):
    assert all("value" not in update for update in restored_updates(parts, {name: value}))
