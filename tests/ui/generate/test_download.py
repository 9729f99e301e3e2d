"""The card of a model's download: its states, its figures, what its buttons do."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.families import resolve
from dia_demo.services.downloads.downloads import DownloadState, DownloadStatus
from dia_demo.services.downloads.needs import Needs, needs_of
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import new_key
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.compare.form.fields import default_side
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.generate import download
from dia_demo.ui.generate.download import DownloadHandlers, card_html, figures, person_of
from tests.helpers.models.known import DIA, DIA_NAME, EMBEDDED_FOLDER
from tests.helpers.page.page_stubs import (
    STARTED,
    compare_values,
    field_values,
    parts_by_name,
    stub_handlers,
)
from tests.helpers.stand_ins.bench_stubs import QUICK
from tests.helpers.stand_ins.stand_in_hub import isolate

NEEDED = DownloadStatus(DIA_NAME, DownloadState.NEEDED, 0, 6_750_000_000, free_disk=41 * 10**9)
RUNNING = DownloadStatus(
    DIA_NAME, DownloadState.RUNNING, 1_200_000_000, 6_750_000_000, speed=24e6, mine=True
)
PARTIAL = DownloadStatus(
    DIA_NAME, DownloadState.NEEDED, 2_100_000_000, 6_750_000_000, on_disk=2_100_000_000
)
NEEDS = Needs("int8", 1_620_000_000, 2_800_000_000, 11 * 10**9, None, 0.34)
PAGE = SimpleNamespace(session_hash="page")


def text(html: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", html.partition('<p class="sr-only"')[0]).split())


def test_the_figures_are_what_is_needed_against_what_is_there():
    assert figures(NEEDED, NEEDS) == [
        ("Download", "6.8 GB"),
        ("Disk", "6.8 GB, and 1.6 GB for weights prepared in int8; 41.0 GB free"),
        ("Memory", "2.8 GB in int8; 11.0 GB free"),
        ("Speed here", "0.34x realtime: about 30 s for 10 s of speech"),
    ]


def test_what_is_here_is_not_fetched_again():
    assert figures(PARTIAL, NEEDS)[0] == ("Download", "4.7 GB")


def test_too_little_memory_is_said_before_the_download():
    shortage = "it needs 2.8 GB of memory in int8, and this machine has 2.0 GB"
    needs = Needs("int8", 0, 2_800_000_000, 2 * 10**9, shortage, None)
    rows = dict(figures(NEEDED, needs))
    assert rows["Memory"] == f"it cannot run here: {shortage}"
    assert rows["Speed here"] == "not known before the first take"


def test_the_needs_of_dia_are_those_of_this_machine(monkeypatch):
    service = Synthesis(Settings())
    service.speed.learn_quick(QUICK)
    runtime = RuntimeConfig(model=DIA_NAME, precision="int4", threads=2)
    needs = needs_of(DIA, runtime, service.speed)
    assert needs.precision == "int4" and 0.5e9 < needs.prepared < needs.memory < 4e9
    assert needs.shortage or needs.realtime > 0


@pytest.mark.parametrize(
    ("status", "words", "buttons"),
    [
        (DownloadStatus(DIA_NAME, DownloadState.LOOKING), "Dia is not on this machine. Asking", ""),
        (NEEDED, "Dia is not on this machine. Download", "download"),
        (
            PARTIAL,
            "Dia is partially downloaded: 2.1 GB of 6.8 GB. Resume Delete the partial download",
            "resume delete",
        ),
        (RUNNING, "Downloading Dia : 1.2 GB of 6.8 GB, 24 MB/s, about 4 min left.", "cancel"),
        (
            DownloadStatus(DIA_NAME, DownloadState.FAILED, problem="The hub has no model."),
            "Dia is not ready. The hub has no model. Try again",
            "retry",
        ),
        (
            DownloadStatus(DIA_NAME, DownloadState.FAILED, problem="NaN.", can_retry=False),
            "Dia is not ready. NaN.",
            "",
        ),
        (
            replace(PARTIAL, state=DownloadState.FAILED, problem="The connection was lost."),
            "Dia is not ready. The connection was lost. Downloaded so far: 2.1 GB of 6.8 GB. "
            "Resume Delete the partial download",
            "resume delete",
        ),
        (
            DownloadStatus(DIA_NAME, DownloadState.FAILED, on_disk=10**9, problem="No network."),
            "Dia is not ready. No network. Downloaded so far: 1.0 GB. Try again Delete",
            "retry delete",
        ),
        (
            replace(PARTIAL, state=DownloadState.FAILED, problem="NaN.", can_retry=False),
            "Dia is not ready. NaN. Downloaded so far: 2.1 GB of 6.8 GB. Delete the download",
            "discard",
        ),
        (
            DownloadStatus(DIA_NAME, DownloadState.HERE, mine=True),
            "Dia is downloaded. Press Generate.",
            "",
        ),
    ],
    ids=lambda value: value.state if isinstance(value, DownloadStatus) else None,
)
def test_each_state_has_its_words(status, words, buttons):
    html = card_html("Dia", status)
    assert text(html).startswith(words)
    assert re.findall('data-action="(.*?)"', html) == buttons.split()
    assert html.count('role="progressbar"') == (status.state is DownloadState.RUNNING)


def test_a_download_of_others_has_no_cancel_button():
    status = DownloadStatus(DIA_NAME, DownloadState.RUNNING, 1, 10, others=1)
    assert "data-action" not in card_html("Dia", status)


def test_a_wait_for_the_hub_is_shown_in_place_of_the_speed():
    status = DownloadStatus(DIA_NAME, DownloadState.RUNNING, 1, 10**9, speed=0.0, waiting=12.0)
    assert "waiting for the hub for 12 s" in card_html("Dia", status)


def test_names_and_problems_are_escaped():
    status = DownloadStatus("<b>", DownloadState.FAILED, problem="<script>")
    assert "<script>" not in card_html("<b>", status) and "<b>" not in card_html("<b>", status)


def test_a_person_is_the_key_of_the_browser():
    key = new_key()
    assert person_of(PAGE, key) == key
    assert person_of(PAGE, None) == person_of(PAGE, "no key") == "page"


@pytest.fixture
def handlers(monkeypatch, tmp_path):
    isolate(monkeypatch, tmp_path / "cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    service = Synthesis(Settings())
    yield DownloadHandlers(
        service, parts_by_name(download.DownloadPanel), ["slider"], lambda _: [7]
    )
    service.close()


def test_a_model_that_is_here_shows_nothing(handlers):
    updates = handlers.refresh(PAGE, None, "nano", "auto", "")
    assert updates["card"] == "" and updates["described"] == "nano" and "slider" not in updates


def test_without_a_network_the_card_says_why(handlers):
    handlers.refresh(PAGE, None, DIA_NAME, "auto", "")
    handlers.synthesis.downloads._get(DIA_NAME).work.join(30)
    updates = handlers.refresh(PAGE, None, DIA_NAME, "auto", "")
    assert "hub cannot be reached" in updates["card"] and 'data-action="retry"' in updates["card"]


def test_who_resumes_what_has_just_been_downloaded_is_told_so(handlers):
    event = SimpleNamespace(action="resume")
    updates = handlers.act(event, PAGE, None, "nano", "auto", "")
    assert "is downloaded. Press Generate." in updates["card"]


def test_the_sliders_follow_a_config_that_arrives_later(handlers, monkeypatch):
    """Until then they are those of Dia-1.6B."""
    updates = handlers.refresh(PAGE, None, DIA_NAME, "auto", "nano")
    assert updates["described"] == f"unknown {DIA_NAME}" and "slider" not in updates
    monkeypatch.setattr(resolve, "cached_config", lambda name: EMBEDDED_FOLDER)
    updates = handlers.refresh(PAGE, None, DIA_NAME, "auto", updates["described"])
    assert updates["described"] == DIA_NAME and updates["slider"] == 7
    assert "slider" not in handlers.refresh(PAGE, None, DIA_NAME, "auto", DIA_NAME)


def test_a_model_that_nobody_offers_is_not_looked_up(handlers):
    handlers.refresh(PAGE, None, "owner/other", "auto", "")
    assert handlers.synthesis.downloads._downloads == {}


def test_generate_fetches_no_model(handlers, tmp_path, monkeypatch):
    """It says what to do, and nobody else waits for a download."""

    def unanswered(_download):  # The hub is asked, and has not refused yet.
        while True:
            time.sleep(0.01)
            yield

    monkeypatch.setattr("dia_demo.services.downloads.downloads._look", unanswered)
    page, _ = stub_handlers([STARTED], tmp_path)
    *_, last = page.generate(PAGE, None, *field_values(model=DIA_NAME))
    page.synthesis.downloads.close()
    assert "press Download (the card shows its size)" in last["status"]
    assert page.run.idle()["generate"]["interactive"]


def test_compare_fetches_no_model(handlers, tmp_path):
    service = handlers.synthesis
    handlers.refresh(PAGE, None, DIA_NAME, "auto", "")
    service.downloads._get(DIA_NAME).work.join(30)
    store = ComparisonStore(tmp_path / "kept", service, 10**9)
    compare, key = CompareHandlers(service, store, parts_by_name(CompareParts)), new_key()
    side = default_side(service, DIA_NAME)
    *_, last = compare.make(PAGE, key, *compare_values(side))
    assert "press Try again" in last["make_problem"]
    assert store.list(key) == []


@pytest.mark.parametrize("action", ["download", "cancel", "retry", "delete", "format", None])
def test_no_action_breaks_the_page(handlers, action):
    event = SimpleNamespace(action=action)
    for model in ("nano", DIA_NAME):
        assert "card" in handlers.act(event, PAGE, None, model, "auto", "")
