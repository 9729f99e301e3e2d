"""A take whose page is reloaded, closed, opened twice or cut off, in a real chromium."""

from __future__ import annotations

import pytest

from tests.helpers.browser import figure, press, running_app, wait_state, write_script

sync_api = pytest.importorskip("playwright.sync_api")

SHORT = "[S1] Hello there. How are you? [S2] I am fine, thank you. [S1]"
LONG = " ".join(
    f"[S{1 + i % 2}] We walk along the river and talk of the weather." for i in range(16)
)
LONGEST = 1536
OVER = ("done", "cut")
# The seconds of audio in the status line.
SECONDS = """() => Number(/([\\d.]+) s of audio/.exec(
  document.querySelector("#status .status-line").textContent)?.[1] || 0)"""


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """The app with a decoder that takes its time."""
    folder = tmp_path_factory.mktemp("returning")
    with running_app(folder, module="tests.browser.apps.patient_app") as url:
        yield url


def begin_long_take(watch):
    """A page on which a long take is seen running."""
    page = watch.open()
    page.wait_for_function("Object.keys(localStorage).some((key) => /person/.test(key))")
    write_script(page, LONG, LONGEST)
    press(page, "Generate")
    page.wait_for_function(f"({SECONDS})() > 0.5")
    return page


def ready(page) -> None:
    page.wait_for_function("window.diaRestored === true")


def earlier_takes(page) -> int:
    page.wait_for_timeout(0)
    return page.locator(".earlier li").count()


def test_a_run_outlives_a_reload(open_window, patient):
    watch = open_window(at=patient)
    page = begin_long_take(watch)
    before = page.evaluate(SECONDS)
    page.reload()
    wait_state(page, "running")
    page.wait_for_function(f"({SECONDS})() > {before}")
    sync_api.expect(page.get_by_role("button", name="Generate", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Listen so far").wait_for()
    press(page, "Stop")
    assert "s of audio kept" in wait_state(page, "stopped")
    page.locator("#take").get_by_label("Play", exact=True).wait_for()
    sync_api.expect(page.get_by_role("button", name="Generate", exact=True)).to_be_enabled()
    sync_api.expect(page.locator(".earlier li")).to_have_count(1)
    stopped = figure(page, "Audio")
    page.reload()
    wait_state(page, "stopped")
    page.locator("#take").get_by_label("Play", exact=True).wait_for()
    assert figure(page, "Audio") == stopped
