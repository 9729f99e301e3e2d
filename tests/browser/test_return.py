"""A take whose page is reloaded, closed, opened twice or cut off, in a real chromium."""

from __future__ import annotations

import re

import pytest

from tests.helpers.page.browser import (
    PHONE,
    figure,
    press,
    running_app,
    script_of,
    unfold,
    wait_state,
    write_script,
)
from tests.helpers.page.lab_page import compare_tab, fill_in
from tools.app_process import free_port

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

PATIENT = "tests.browser.apps.patient_app"
SHORT = "[S1] Hello there. How are you? [S2] I am fine, thank you. [S1]"
LONG = " ".join(
    f"[S{1 + i % 2}] We walk along the river and talk of the weather." for i in range(9)
)
LONGEST = 1536
# The seconds of audio in the status line.
SECONDS = """() => Number(/([\\d.]+) s of audio/.exec(
  document.querySelector("#status .status-line").textContent)?.[1] || 0)"""
# What the browser writes when the program ends in the middle of a run.
ENDED = re.compile(
    "Failed to load resource|Failed to fetch|network error|Waveform load error"
    "|Unexpected error Cancelled"
)


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """The app with a decoder that takes its time."""
    with running_app(tmp_path_factory.mktemp("returning"), module=PATIENT) as url:
        yield url


@pytest.fixture
def open_browser(open_window):
    """A function that opens a browser of its own, in which pages may be left in a run."""
    watches = []

    def open_one(url, **options):
        watches.append(open_window(at=url, **options))
        return watches[-1]

    yield open_one
    for watch in watches:
        # Messages of the browser arrive until then.
        watch.context.close()
        watch.errors[:] = [error for error in watch.errors if not ENDED.search(error)]


def begin(page, script=LONG, max_tokens=LONGEST) -> None:
    """A take that is seen running; the page has its key."""
    page.wait_for_function("Object.keys(localStorage).some((key) => /person/.test(key))")
    write_script(page, script, max_tokens)
    press(page, "Generate")
    wait_seconds(
        page, 2
    )  # Less may be the silence before the first word, of which nothing is kept.


def wait_seconds(page, more_than: float) -> None:
    page.wait_for_function(f"({SECONDS})() > {more_than}")


def stop(page) -> str:
    press(page, "Stop")
    return wait_state(page, "stopped")


def wait_player(page) -> None:
    page.locator("#take").get_by_label("Play", exact=True).wait_for()


def assert_one_earlier_take(page) -> None:
    unfold(page, "Earlier takes")
    sync_api.expect(page.locator(".earlier li")).to_have_count(1)


def test_a_run_outlives_a_reload(open_browser, patient):
    page = open_browser(patient, size=PHONE).open()
    begin(page)
    before = page.evaluate(SECONDS)
    page.reload()
    wait_state(page, "running")
    wait_seconds(page, before)
    sync_api.expect(page.locator("#generate")).to_be_disabled()
    page.wait_for_function("!document.querySelector('.player-play').disabled")
    assert re.search(r"Stopped [\d.]+ s of audio kept", stop(page))
    wait_player(page)
    sync_api.expect(page.locator("#generate")).to_be_enabled()
    assert_one_earlier_take(page)
    # The last take is there after another reload, with its words and figures.
    stopped, words = figure(page, "Audio"), page.locator("#status").inner_text()
    page.reload()
    wait_player(page)
    wait_state(page, "stopped")
    assert figure(page, "Audio") == stopped and page.locator("#status").inner_text() == words
    assert page.get_by_alt_text("Spectrogram of the take").is_visible()


def test_a_take_is_finished_while_its_page_is_closed(open_browser, patient):
    watch = open_browser(patient)
    page = watch.open()
    begin(page, SHORT, 300)
    page.close()
    stranger = open_browser(patient).open()
    again = watch.open()
    wait_state(again, "done")
    wait_player(again)
    assert figure(again, "Ended") == "end of script"
    assert_one_earlier_take(again)
    stranger.reload()
    stranger.wait_for_function("window.diaRestored === true")
    assert "Ready" in wait_state(stranger, "idle"), "another browser sees nothing of it"
    unfold(stranger, "Earlier takes")
    stranger.get_by_text("Your takes are listed here").wait_for()


def test_a_second_tab_joins_the_run(open_browser, patient):
    watch = open_browser(patient)
    first, second = watch.open(), watch.open()
    begin(first)
    write_script(second, SHORT, 60)
    press(second, "Generate")
    second.get_by_text("Your other take is still being generated").wait_for()
    wait_seconds(second, 0.3)
    sync_api.expect(second.locator("#generate")).to_be_disabled()
    before = first.evaluate(SECONDS)
    wait_seconds(first, before)
    assert "kept" in stop(second)
    wait_state(first, "stopped")
    for page in (first, second):
        wait_player(page)
        sync_api.expect(page.locator("#generate")).to_be_enabled()
        assert_one_earlier_take(page)


def test_a_take_survives_the_end_of_the_program(open_browser, tmp_path):
    port = free_port()
    with running_app(tmp_path, port, PATIENT) as url:
        page = open_browser(url).open()
        begin(page)
    with running_app(tmp_path, port, PATIENT):
        # gradio's page reloads itself when the server answers again.
        wait_player(page)
        page.locator("#status", has_text="Your last take is in the player").wait_for()
        assert figure(page, "Ended") == "stopped" and float(figure(page, "Audio").split()[0]) > 0.3
        assert_one_earlier_take(page)


def test_a_comparison_outlives_a_reload(open_browser, patient):
    page = compare_tab(open_browser(patient))
    fill_in(page, LONG, max_tokens=LONGEST, seeds=1)
    press(page, "Generate pairs")
    page.locator("#lab-status", has_text="realtime").wait_for()
    # The room remembers the comparison once the server has described it.
    page.get_by_text("The first pair is being generated.").wait_for()
    page.reload()
    page.locator("#lab-status", has_text="realtime").wait_for()
    page.get_by_role("tab", name="Compare", selected=True).wait_for()
    press(page, "Stop generating")
    page.locator('#lab-status [data-state="stopped"]').wait_for()
    sync_api.expect(page.get_by_role("button", name="Resume")).to_be_enabled()


# Boxes of the first earlier take: its script, its figures, and its buttons.
BOXES = """() => [...document.querySelectorAll(".earlier li:first-child :is(p, button)")]
  .map((node) => node.getBoundingClientRect())
  .map(({ top, bottom, height }) => ({ top, bottom, height }))"""


def test_earlier_takes(open_browser, patient):
    page = open_browser(patient).open()
    zone = {"timezoneId": "Asia/Tokyo"}
    page.context.new_cdp_session(page).send("Emulation.setTimezoneOverride", zone)
    write_script(page, SHORT, 60)
    press(page, "Generate")
    wait_state(page, "done", "cut")
    write_script(page, "[S1] Something else. [S2] Quite so. [S1]", 90)
    assert_one_earlier_take(page)

    script, figures, *buttons = page.evaluate(BOXES)
    assert figures["top"] >= script["bottom"], "each on lines of its own"
    assert len({(box["top"], box["height"]) for box in buttons}) == 1
    now = page.evaluate("new Date().toLocaleString('en-US', {hour: 'numeric'})")
    hour, half = now.split()
    text = page.locator(".earlier-figures").inner_text()
    assert re.search(rf"\b{hour}:\d\d\s{half}", text) and "UTC" not in text

    press(page, "Use these settings")
    used = "The settings of the take are in the form: script, Max tokens 60"
    page.locator("#status .status-detail").filter(has_text=used).wait_for()
    sync_api.expect(script_of(page)).to_have_value(SHORT)
    sync_api.expect(script_of(page)).to_be_in_viewport()

    delete = page.locator(".earlier-delete")
    delete.click()
    sync_api.expect(delete).to_have_text("Really delete?")
    script_of(page).focus()
    sync_api.expect(delete).to_have_text("Delete")
    delete.click()
    delete.click()
    page.get_by_text("Your takes are listed here").wait_for()
