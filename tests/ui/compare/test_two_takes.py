"""The card with two earlier takes: its lists, and errors beside its buttons."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from dia_demo.services.earlier.history import EarlierTake, History
from dia_demo.services.earlier.labels import Label
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import new_key
from dia_demo.services.wording import local_time
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.compare.progress import title
from dia_demo.ui.compare.two_takes import NOT_CHOSEN, TwoTakesHandlers, TwoTakesParts, label_of
from tests.helpers.page.page_stubs import parts_by_name

PAGE = SimpleNamespace(session_hash="page")


@pytest.fixture
def card(synthesis, tmp_path):
    store = ComparisonStore(tmp_path / "kept", synthesis)
    compare = CompareHandlers(synthesis, store, parts_by_name(CompareParts))
    return TwoTakesHandlers(History(tmp_path / "kept"), compare, parts_by_name(TwoTakesParts))


def test_an_error_is_told_beside_the_button(card):
    key, gone = new_key(), "1764203520000000-0123456789ab"
    assert card.fill(key)["first"]["choices"] == [] == card.fill(None)["second"]["choices"]
    for first, second in ((None, None), (gone, None), (gone, gone)):
        assert NOT_CHOSEN in card.open_blind(PAGE, key, first, second)["problem"]
    told = card.open_blind(PAGE, key, gone, gone.replace("0", "1"))
    assert list(told) == ["problem"] and "no longer exists" in told["problem"]


def test_what_tells_takes_of_one_script_apart_comes_first():
    figures = {"seed": 7, "model": "nari-labs/Dia2-1B"}
    when = datetime(2026, 11, 7, 23, 5, tzinfo=UTC)
    take = EarlierTake("id", Path("a.wav"), when, "[S1] Word " + "word " * 50, {}, 1.0, figures)
    begin = "7 Nov 2026, 23:05 · seed 7 · Dia2-1B · [S1] Word word"
    assert label_of(take, "UTC").startswith(begin) and label_of(take, "UTC").endswith("…")
    named = replace(take, label=Label("Best"), figures={})
    assert label_of(named, "UTC") == "7 Nov 2026, 23:05 · Best"


def test_times_are_those_of_the_browser(card, finished):
    when = datetime(2026, 11, 7, 23, 5, tzinfo=UTC)
    assert local_time(when, "Asia/Tokyo") == "8 Nov 2026, 08:05"
    assert local_time(when, "America/New_York") == "7 Nov 2026, 18:05"
    here = f"{when.astimezone():%H:%M}"
    assert local_time(when).endswith(here) and local_time(when, "../etc/passwd").endswith(here)
    key, _ = card.compare.enter(None, "Asia/Tokyo")
    assert card.compare.zone_of(key) == "Asia/Tokyo" and card.compare.zone_of(new_key()) is None
    named = title(finished, "Asia/Tokyo")
    made = datetime.fromisoformat(finished.plan.created)
    assert named.endswith(f" · {local_time(made, 'Asia/Tokyo')}") and "UTC" not in named
