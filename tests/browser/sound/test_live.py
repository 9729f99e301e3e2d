"""A take is heard while it is made, in a real chromium."""

from __future__ import annotations

import re

import pytest
import soundfile

from tests.helpers.page import browser
from tests.helpers.page.browser import (
    PHONE,
    figure,
    press,
    running_app,
    unfold,
    wait_state,
    write_script,
)

sync_api = pytest.importorskip("playwright.sync_api")

OVER = ("done", "cut")
# About 12 s of the embedded voice: it still plays when a loaded machine gets to press something.
SCRIPT = 2 * "[S1] We walk along the river and talk of the weather. [S2] It was a fine day for us. "
SHORT = "[S1] We walk along the river and talk. [S1]"
# Two seconds or more of a take: on a slow machine, over ten were heard before it was finished.
UNDER_WAY = re.compile(r"0:0[2-9]|0:[12]\d")
LIVE = "document.querySelector('#live [data-live]').dataset"

# Notes the pieces that go to the speakers: when each starts, on the audio's own clock, its length,
# and the time at which it was sent.
NOTE_PIECES = """window.pieces = [];
const { start } = AudioBufferSourceNode.prototype;
AudioBufferSourceNode.prototype.start = function (when) {
  const { currentTime } = this.context;
  window.pieces.push({ when, currentTime, seconds: this.buffer.duration });
  start.call(this, when);
};"""
# Presses Generate where nobody has touched the page, and reports how the player answers: whatever
# playwright runs in a page counts as touched by a person.
PRESS_WITHOUT_A_PERSON = """let isPressed = false;
const timer = setInterval(() => {
  const live = document.querySelector("#live [data-live]");
  if (window.diaRestored && live && !isPressed) {
    isPressed = true;
    document.querySelector("#generate").click();
  }
  if (live && live.dataset.live === "blocked") {
    clearInterval(timer);
    console.log(live.innerText);
  }
}, 50);"""


@pytest.fixture(scope="module")
def strict_chromium(chromium):
    """A browser that plays nothing before a person has pressed something, as people's do."""
    path = browser.find_chromium(chromium.browser_type.executable_path)
    rules = [argument for argument in browser.CHROMIUM_ARGS if "autoplay" not in argument]
    launched = chromium.browser_type.launch(executable_path=path, args=rules)
    yield launched
    launched.close()


@pytest.fixture
def strict_page(strict_chromium, home):
    """A function that opens the app there; what it prepares runs before the page's own scripts."""
    contexts = []

    def open_page(prepare="", size=browser.DESKTOP):
        contexts.append(strict_chromium.new_context(viewport=size))
        contexts[-1].add_init_script(prepare)
        return browser.Watch(contexts[-1], home)

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """The app with a decoder that is slower than its sound, as a large model's is."""
    folder = tmp_path_factory.mktemp("slow")
    with running_app(folder, module="tests.browser.apps.patient_app", STEP_SECONDS="0.06") as url:
        yield url


def wait_live(page, *states: str) -> str:
    """Wait until the live player is in one of these states; its text."""
    chosen = ", ".join(f'#live [data-live="{state}"]' for state in states)
    page.locator(chosen).wait_for()
    return page.locator("#live").inner_text()


def wait_heard(page, seconds: float) -> None:
    page.wait_for_function(f"Number({LIVE}.heard) >= {seconds}")


def test_one_press_is_enough_to_hear_it(strict_page):
    page = strict_page().open()
    write_script(page, SCRIPT)
    press(page, "Generate")
    wait_heard(page, 0.5)


def open_with_take(open_window):
    """A page whose take has just been finished, and still plays."""
    page = open_window().open()
    write_script(page, SCRIPT)
    press(page, "Generate")
    wait_state(page, *OVER)
    return page


def test_the_finished_take_goes_on_where_it_was_heard(open_window):
    page = open_with_take(open_window)
    player = page.locator("#take")
    # The player of the finished take follows the sound, without a sound of its own.
    player.locator("#time", has_text=UNDER_WAY).wait_for()
    player.get_by_label("Play", exact=True).click()
    player.get_by_label("Pause", exact=True).wait_for()
    words = wait_live(page, "paused")
    assert player.locator("#time").inner_text() >= "0:02"
    # What was paused is not lost: it can be resumed, and then the other one stops.
    assert "The take is in the player below" not in words
    press(page, "Resume")
    player.get_by_label("Play", exact=True).wait_for()
    wait_live(page, "playing")


def test_a_click_on_the_picture_goes_on_from_there(open_window):
    page = open_with_take(open_window)
    player = page.locator("#take")
    player.locator("#time", has_text=UNDER_WAY).wait_for()
    picture = player.locator(".waveform-container").bounding_box()
    page.mouse.click(picture["x"] + 0.8 * picture["width"], picture["y"] + picture["height"] / 2)
    player.get_by_label("Pause", exact=True).wait_for()
    wait_live(page, "paused")
    minutes, seconds = map(int, player.locator("#time").inner_text().split(":"))
    # The seed, and so the length, differs from run to run.
    assert 60 * minutes + seconds >= int(0.78 * float(figure(page, "Audio").split()[0]))


@pytest.mark.long
def test_a_slow_machine_waits_until_it_can_play_without_a_gap(open_window, slow):
    watch = open_window(at=slow)
    watch.context.add_init_script(NOTE_PIECES)
    page = watch.open()
    write_script(page, SHORT)
    press(page, "Generate")
    expected = re.compile("Starts in about .*, so that it plays without a gap", re.DOTALL)
    page.locator("#live", has_text=expected).wait_for()
    assert page.evaluate("window.pieces") == []
    wait_live(page, "playing")
    assert page.locator('#status [data-state="running"]').count() == 1, "it is still being made"
    wait_state(page, *OVER)
    wait_live(page, "over")
    pieces = page.evaluate("window.pieces")
    sent = sum(piece["seconds"] for piece in pieces)
    assert sent == pytest.approx(float(figure(page, "Audio").split()[0]), abs=0.06)
    # Half of realtime at best: what is not made yet is made while the first half is heard.
    first = pieces[0]
    assert sum(p["seconds"] for p in pieces if p["currentTime"] < first["when"]) > sent / 2


@pytest.mark.long
def test_at_half_speed_it_is_heard_at_half_speed(open_window):
    watch = open_window()
    watch.context.add_init_script(NOTE_PIECES)
    page = watch.open()
    unfold(page, "More")
    speed = page.get_by_label("number input for Speed")
    speed.fill("0.5")
    speed.press("Tab")
    write_script(page, "[S1] Good morning. [S1]")
    press(page, "Generate")
    words = wait_state(page, *OVER)
    wait_live(page, "over")
    made = float(figure(page, "Audio").split()[0])
    assert f"{made} s of audio" in words and made > 1.5, "the sentence takes 0.9 s at speed 1"
    heard = sum(piece["seconds"] for piece in page.evaluate("window.pieces"))
    assert heard == pytest.approx(made, abs=0.06)
    with page.expect_download() as waiting:
        press(page, "Download WAV")
    assert soundfile.info(waiting.value.path()).duration == pytest.approx(made, abs=0.06)


@pytest.mark.long
def test_who_does_not_wait_can_listen_now(open_window, slow):
    page = open_window(at=slow).open()
    write_script(page, SHORT)
    press(page, "Generate")
    wait_live(page, "waiting")
    press(page, "Listen now")
    wait_heard(page, 0.3)
    press(page, "Stop")
    # Stop is for the sound too.
    assert wait_live(page, "paused").startswith("Resume")
    wait_state(page, "stopped", *OVER)


def test_a_browser_that_starts_no_sound_offers_it(strict_page):
    watch = strict_page(PRESS_WITHOUT_A_PERSON)
    page = watch.context.new_page()
    with page.expect_console_message(lambda message: "Listen" in message.text) as message:
        page.goto(watch.home)
    assert "this browser does not start sound by itself" in message.value.text
    press(page, "Listen")
    wait_heard(page, 0.3)


@pytest.mark.long
def test_the_switch_is_remembered(open_window):
    page = open_window().open()
    switch = page.get_by_label("Play as it is made")
    assert switch.is_checked()
    switch.uncheck()
    page.reload()
    page.wait_for_function("window.diaRestored === true")
    assert not switch.is_checked()
    write_script(page, SCRIPT, max_tokens=60)
    press(page, "Generate")
    wait_state(page, *OVER)
    assert "in the player below" in wait_live(page, "over")
    assert page.evaluate(f"{LIVE}.heard") == "0.00"


def test_on_a_phone_the_take_scrolls_into_view(open_window):
    page = open_window(PHONE).open()
    write_script(page, SHORT, max_tokens=60)
    page.evaluate("window.scrollTo(0, 0)")
    press(page, "Generate")
    page.wait_for_function(
        """() => {
          const { top, bottom } = document.querySelector("#take").getBoundingClientRect();
          return top >= 0 && bottom <= window.innerHeight;
        }"""
    )
    wait_state(page, *OVER)
