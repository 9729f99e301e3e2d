"""The Machine tab in a real chromium: measured and stopped on request, never beside a take."""

from __future__ import annotations

import re
import time

import pytest

from dia_demo.files import ROOT
from tests.helpers.models.known import NANO
from tests.helpers.page.browser import (
    DESKTOP,
    PHONE,
    Interceptor,
    open_tab,
    press,
    press_twice,
    wait_state,
    write_script,
)

pytestmark = pytest.mark.long

# A whole measurement, on a slow machine beside other tests.
WHOLE_MS = 600_000
SHORT = "[S1] Hello there. How are you? [S2] I am fine, thank you. [S1]"


def machine_tab(watch):
    page = watch.open()
    open_tab(page, "Machine")
    page.get_by_text("What this machine can do").wait_for()
    return page


def state(page, *states: str, timeout: float | None = None) -> str:
    chosen = ", ".join(f'#machine-status [data-state="{one}"]' for one in states)
    page.locator(chosen).wait_for(timeout=timeout)
    return page.locator("#machine-status .status-line").inner_text()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_measurement_stops_within_a_moment(open_window, size):
    page = machine_tab(open_window(size))
    assert page.get_by_text("No measurements yet.").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    press(page, "Measure")
    state(page, "running")
    press(page, "Stop measuring")
    assert "Stopped" in state(page, "stopped")
    page.wait_for_function("!document.querySelector('#machine-measure').disabled")


def test_a_press_counts_from_the_moment_the_button_is_back(open_window):
    page = machine_tab(open_window())

    def stop() -> None:
        state(page, "running")
        press(page, "Stop measuring")

    press_twice(page, "Measure", "#machine-measure", stop)
    state(page, "stopped")


def answer_late(route) -> None:
    response = route.fetch()
    time.sleep(1)
    route.fulfill(response=response)


def test_a_late_answer_to_the_press_loses_no_button(open_window):
    """The first updates are there before the page knows their event, and are read in one go."""
    first, window = machine_tab(open_window()), open_window()
    requests = Interceptor(window.context, "**/queue/join*")
    page = window.open()
    press(first, "Measure")
    state(first, "running")
    write_script(page, SHORT, max_tokens=60)
    press(page, "Generate")  # While it waits, the page listens to the updates of all its events.
    wait_state(page, "waiting")
    open_tab(page, "Machine")
    requests.handle = answer_late
    press(page, "Measure")
    state(page, "waiting")
    assert page.locator("#machine-measure").is_disabled()
    press(page, "Stop measuring")
    state(page, "stopped")
    press(first, "Stop measuring")
    state(first, "stopped")


def test_a_take_waits_for_a_measurement(open_window):
    first, second = machine_tab(open_window()), open_window().open()
    press(first, "Measure")
    state(first, "running")
    write_script(second, SHORT, max_tokens=60)
    press(second, "Generate")
    assert "Place 1 in the queue" in wait_state(second, "waiting")
    press(first, "Stop measuring")
    state(first, "stopped")
    wait_state(second, "done", "cut")


@pytest.mark.processor
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_measured_machine_is_a_picture_with_a_meaning(open_window, scheme):
    """One whole measurement of the embedded voice; in the other scheme the picture is empty."""
    page = machine_tab(open_window(scheme=scheme))
    if scheme == "light":
        press(page, "Measure")
        ended = state(page, "done", "failed", timeout=WHOLE_MS)
        assert re.search(r"Done nano, measured in", ended)
        dia, meaning = page.locator(".machine-meaning").all_inner_texts()
        assert re.search(r"Dia-1\.6B takes about .* for 10 seconds of speech", dia)
        assert re.search(r"a 10-second take of nano takes about [\d.]+ s with \w+", meaning)
        shown = page.locator(".machine-picture li .run-name").all_inner_texts()
        assert shown == list(NANO.config.precisions)
        bars = page.get_by_role("img", name=re.compile(r"realtime"))
        assert bars.count() == len(shown)
        assert not page.get_by_text("GB/s").is_visible()
        page.get_by_text("Details", exact=True).click()
        assert page.get_by_text("GB/s").is_visible()
        page.reload()
        open_tab(page, "Machine")
        page.locator(".machine-picture").wait_for()
        assert page.locator(".machine-meaning").all_inner_texts() == [dia, meaning]
        for width in (DESKTOP["width"], PHONE["width"]):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate((ROOT / "tests" / "browser" / "contrast.js").read_text()) == []
