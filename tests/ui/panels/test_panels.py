"""The card of tests with many listeners: what it says, what it does, errors beside the buttons."""

from __future__ import annotations

import pytest

from dia_demo.services.listening.owner.tests import OwnTests
from dia_demo.services.listening.panel.store import PanelStore
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import new_key
from dia_demo.ui.panels.fields import FIELDS, options_of
from dia_demo.ui.panels.handlers import NO_COMPARISON, PanelHandlers
from dia_demo.ui.panels.layout import PanelParts
from tests.helpers.page.page_stubs import parts_by_name
from tests.services.listening.panel.helpers import panel_plan, synthetic_source, take_test

VALUES = {
    "design": "cmos", "raters": 2, "trials": 0, "goal": "superiority", "margin": 0,
    "look_kind": "none", "looks": 3, "attributes": False, "headphone_check": False,
    "reference": False, "training": 1, "catch_percent": 10, "repeats": 1, "null_pairs": 1,
    "break_every": 20, "title": "", "consent": "Yes.", "completion_code": "",
    "completion_url": "",
}  # fmt: skip
ADDRESS = "http://127.0.0.1:7860/listen/"


def values(**changes):
    return [(VALUES | changes)[name] for name in FIELDS]


@pytest.fixture
def card(synthesis, tmp_path):
    own = OwnTests(PanelStore(tmp_path), ComparisonStore(tmp_path, synthesis))
    parts = parts_by_name(PanelParts)
    parts.fields = {name: name for name in FIELDS}
    return PanelHandlers(own, parts)


@pytest.fixture
def owned(card):
    """The key of somebody with a test, and its id."""
    key, source = new_key(), synthetic_source()
    return key, card.own.panels.create(key, panel_plan("cmos"), source)


def test_the_form_is_the_options():
    options = options_of(values(design="mushra", reference=True, trials=3.0, margin=0.2))
    assert (options.reference, options.trials, options.margin) == (0, 3, 0.2)
    assert options_of(values(reference=True)).reference is None, "only MUSHRA has one"
    assert options_of(values(look_kind="obrien-fleming", looks=5)).looks == 5


def test_the_plan_is_described_before_it_is_made(card):
    told = card.describe(new_key(), "", *values(goal="equivalence"))
    assert NO_COMPARISON in told["note"] and told["margin"]["visible"] is True
    hidden = card.describe(None, "", *values())
    assert (hidden["margin"]["visible"], hidden["looks"]["visible"]) == (False, False)
    looks = card.describe(None, "", *values(look_kind="obrien-fleming"))["looks"]
    assert looks["visible"] is True
    assert "whole number" in card.describe(new_key(), "", *values(raters=1.5))["note"]


def test_a_test_shows_its_link_and_its_listeners(card, owned):
    key, identity = owned
    panel = card.own.panels.get(key, identity)
    shown = card.show(key, identity, ADDRESS)
    assert f"{ADDRESS}{panel.plan.link}" in shown["state"] and "<svg" in shown["state"]
    assert (
        card.fill(key)["choices"] == shown["tests"]["choices"] and shown["rater"]["choices"] == []
    )
    take_test(panel, 0.5, 1)
    shown = card.show(key, identity, ADDRESS)
    assert "done" in shown["state"] and "1 of 2 planned" in shown["state"]
    assert "verdict" in shown["state"] and "<figure" not in shown["state"], "no result yet"


def test_listeners_are_left_out_before_the_reveal_alone(card, owned):
    key, identity = owned
    panel = card.own.panels.get(key, identity)
    first, second = (take_test(panel, 0.5, seed) for seed in (1, 2))
    assert "Choose a listener" in card.exclude(key, identity, ADDRESS, None, "x")["problem"]
    shown = card.exclude(key, identity, ADDRESS, first, "asked to be removed")
    assert "left out: asked to be removed" in shown["state"]
    assert "left out" not in card.exclude(key, identity, ADDRESS, first, " ")["state"]
    shown = card.reveal(key, identity, ADDRESS)
    assert "<figure" in shown["state"] and panel.plan.link not in shown["state"]
    assert "before the reveal" in card.exclude(key, identity, ADDRESS, second, "late")["problem"]


def test_nobody_else_reaches_a_test(card, owned):
    _, identity = owned
    for told in (card.show(new_key(), identity, ADDRESS), card.delete(new_key(), identity)):
        assert list(told) == ["problem"] and "no longer exists" in told["problem"]
    assert card.own.panels.list(owned[0])


def test_downloads_wait_for_the_reveal(card, owned):
    key, identity = owned
    for write in (card.report, card.table):
        told = write(key, identity)
        assert told["file"] == {} and "reveal" in told["problem"]
    card.reveal(key, identity, ADDRESS)
    for write in (card.report, card.table, card.plan):
        with open(write(key, identity)["file"]["file"], "rb") as file:
            assert file.read(1)
