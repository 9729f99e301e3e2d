"""The XPU toggle on the page, over stand-in devices: its reason, the live check, the way back."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from html import escape
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from dia_demo.accelerator import status as status_module
from dia_demo.accelerator.selfcheck.report import STAGES, Race, SelfCheckReport
from dia_demo.accelerator.status import DeviceStatus, _why_no_xpu, xpu_status
from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Finished
from dia_demo.services.earlier.history import History
from dia_demo.services.people import new_key
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui import form
from dia_demo.ui.generate import layout
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.live_audio import LiveAudio
from dia_demo.ui.machine.xpu import XpuHandlers, XpuPanel, toggle_state
from dia_demo.ui.page import build_ui
from dia_demo.untrusted import parse_as
from tests.helpers.page.page_stubs import field_values, parts_by_name
from tests.helpers.stand_ins.accelerators import FASTER, mark_trusted, stand_in

pytestmark = pytest.mark.usefixtures("in_threads")
PAGE = SimpleNamespace(session_hash="page")


def service(accelerator, folder, tmp_path) -> Synthesis:
    runtime = RuntimeConfig(model=str(folder), threads=1)
    settings = Settings(runtime=runtime, takes_folder=tmp_path)
    return Synthesis(settings, lambda device: accelerator)


def check(synthesis, folder) -> list[dict]:
    return list(XpuHandlers(synthesis, parts_by_name(XpuPanel)).check(PAGE, str(folder), "auto"))


def generate(synthesis, **changes) -> list[dict]:
    parts = parts_by_name(layout.GenerateParts)
    parts.xpu = parts_by_name(XpuPanel)
    parts.fields = {name: f"field {name}" for name in form.FIELDS}
    model = synthesis.settings.runtime.model
    given = field_values(model=model, precision="auto", max_tokens=60, **changes)
    history = History(synthesis.settings.takes_folder / "kept")
    handlers = GenerateHandlers(synthesis, parts, LiveAudio(), history)
    return list(handlers.generate(PAGE, new_key(), *given))


# Why it is off


def components(synthesis) -> dict:
    page = build_ui(synthesis)
    return {block.elem_id: block for block in page.blocks.values() if hasattr(block, "elem_id")}


def test_without_xpu_support_the_toggle_is_one_line():
    found = components(Synthesis(Settings()))
    toggle = found["xpu"]
    assert toggle.label == "Intel XPU (experimental)" and toggle.value is False
    assert not toggle.interactive and toggle.info is None
    assert found["xpu-why"].value == '<a href="#xpu-document">Why it is off</a>'
    assert not found["xpu-report"].visible and not found["on-cpu"].visible


def test_about_explains_why_the_xpu_is_off():
    text = components(Synthesis(Settings()))["xpu-document"].value
    assert "Experimental: " in text and f"off on this machine: {xpu_status().reason}" in text
    assert "`docs/xpu.md`" in text and len(text.split()) < 90, "the rest is in that document"


def test_with_a_card_the_toggle_waits_for_the_self_check(folder, tmp_path):
    found = components(service(stand_in(), folder, tmp_path))
    assert not found["xpu"].interactive and "Run it below" in found["xpu"].info
    assert found["xpu-check"].value == "Run the self-check" and found["xpu-report"].visible


@pytest.mark.parametrize(
    ("seen", "words"), [(True, "/dev/dri"), (False, "no Intel GPU in this"), (None, "driver")]
)
def test_a_missing_driver_is_distinguished_from_a_missing_card(seen, words):
    assert words in _why_no_xpu(seen)


def test_an_integrated_card_is_refused_by_name(monkeypatch):
    from dia_demo.accelerator.backend import Backend, Card

    monkeypatch.setattr(torch.version, "xpu", "20250302", raising=False)
    monkeypatch.setattr(status_module, "_is_available", lambda device: True)
    card = Card("xpu:0", "Intel(R) Iris(R) Xe", "1.6", True)
    monkeypatch.setattr(Backend, "card", lambda self: card)
    status = xpu_status()
    assert not status.usable and "the only Intel GPU here is integrated" in status.reason
    assert card.name in status.reason
    monkeypatch.setattr(Backend, "card", lambda self: replace(card, integrated=False))
    assert xpu_status().usable


def test_a_card_that_does_not_answer_is_refused(monkeypatch):
    """`is_available` is reported true on chips that fail at the first question."""
    from dia_demo.accelerator.backend import Backend

    monkeypatch.setattr(torch.version, "xpu", "20250302", raising=False)
    monkeypatch.setattr(status_module, "_is_available", lambda device: True)
    monkeypatch.setattr(Backend, "card", lambda self: 1 / 0)
    assert not xpu_status().usable and "does not answer" in xpu_status().reason


def test_the_toggle_says_what_was_measured(folder):
    ready = DeviceStatus(True, "")
    accelerator = mark_trusted(stand_in(), folder)
    report = accelerator.store.find(accelerator.key(folder, "float32"))
    assert toggle_state(ready, report) == (True, f"The self-check passed: {FASTER.as_text()}.")
    able, info = toggle_state(ready, replace(report, race=Race(1.0, 4.0, "int8")))
    assert able and "NOT faster" in info and "The CPU is the better choice" in info
    able, info = toggle_state(ready, replace(report, failure="a run failed"))
    assert not able and "a run failed" in info


# The check


def test_a_passed_check_opens_the_toggle(folder, tmp_path):
    updates = check(service(stand_in(late=10**9), folder, tmp_path), folder)
    shown = [update["report"] for update in updates if "report" in update]
    for number, title in STAGES.items():
        words = escape(f"{number}. {title}")
        assert any(f"Checking, {n}%: {words}" in html for html in shown for n in range(101)), words
    counts = [html.count(">passed<") for html in shown if "<table" in html]
    assert counts == sorted(counts) and counts[-1] == 9
    last = updates[-1]
    assert last["toggle"]["interactive"] and "passed" in last["toggle"]["info"]
    # While it runs the toggle is closed and the check can be stopped.
    assert not updates[0]["toggle"]["interactive"] and updates[0]["stop"]["interactive"]


def test_a_failed_check_leaves_the_toggle_closed(folder, tmp_path):
    fault = "zeros from linears at one shape only"
    last = check(service(stand_in(fault), folder, tmp_path), folder)[-1]
    assert not last["toggle"]["interactive"] and "stage 2" in last["toggle"]["info"]
    assert "linear 32 to 96, rows 8 gives all zeros" in last["report"]
    assert '<tr class="fail">' in last["report"]


def test_the_report_can_be_saved_from_the_page(folder, tmp_path):
    """What a bug report should hold, whether or not the check has passed."""
    fault = "zeros from linears at one shape only"
    for accelerator in (stand_in(fault), stand_in(late=10**9)):
        updates = check(service(accelerator, folder, tmp_path), folder)
        *earlier, save = [update["save"] for update in updates]
        assert not any(update["interactive"] for update in earlier)
        told = json.loads(Path(save["value"]).read_text())
        assert save["interactive"] and len(told["stages"]) == 9
        assert told["passed"] == (
            not accelerator.store.find(parse_as(SelfCheckReport, told).key).problems
        )


@pytest.mark.parametrize("how", ["stop", "page_closed"])
def test_stop_or_a_closed_page_ends_the_check(folder, tmp_path, how):
    handlers = XpuHandlers(
        service(stand_in("slow device"), folder, tmp_path), parts_by_name(XpuPanel)
    )
    updates = handlers.check(PAGE, str(folder), "auto")
    next(updates)
    next(updates)
    getattr(handlers.run, how)(PAGE)
    last = list(updates)[-1]
    assert "stopped" in last["report"]
    ready = handlers.run.idle()
    assert ready["check"]["interactive"] and not ready["stop"]["interactive"]
    assert not last["toggle"]["interactive"], "it stays closed, as it was when the check began"


# A run that fails


def test_a_device_that_fails_mid_take_offers_the_same_take_on_the_cpu(folder, tmp_path):
    """The page shows the failure, the toggle is off, and one press makes the take on the CPU."""
    accelerator = mark_trusted(stand_in("device lost mid-take", late=13), folder)
    synthesis = service(accelerator, folder, tmp_path)
    updates = generate(synthesis, xpu=True, seed=77)
    (failed,) = [update for update in updates if 'data-state="failed"' in update.get("status", "")]
    assert "The XPU failed" in failed["status"] and "driver lost the device" in failed["status"]
    assert failed["on_cpu"]["visible"] and failed["field seed"] == 77
    assert failed["field xpu"]["value"] is False and not failed["field xpu"]["interactive"]
    assert "its result is no longer valid" in failed["report"]
    assert not any("take" in update.get("player", {}) for update in updates)
    assert not updates[-1]["stop"]["interactive"]
    # The button presses Generate with that seed and the toggle off.
    again = generate(synthesis, xpu=False, seed=77)
    assert not again[0]["on_cpu"]["visible"]
    assert any("take" in update.get("player", {}) for update in again)


def test_turning_on_a_slower_card_insists(folder, tmp_path):
    accelerator = mark_trusted(stand_in(), folder, race=Race(1.0, 4.0, "int8"))
    synthesis = service(accelerator, folder, tmp_path)
    fields = field_values(model=str(folder), precision="auto", xpu=True, max_tokens=60)
    request = form.Form.from_values(fields).to_request(
        synthesis.models[str(folder)], synthesis.settings.runtime
    )
    request = replace(request, with_audio=False)
    assert request.runtime.insist
    assert isinstance(list(synthesis.stream(request, threading.Event()))[-1], Finished)
