"""A take is heard while it is made, in a real chromium."""

from __future__ import annotations

import json
import re
from itertools import pairwise

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

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

OVER = ("done", "cut")
# About 12 s of the embedded voice: it still plays when a loaded machine gets to press something.
SCRIPT = 2 * "[S1] We walk along the river and talk of the weather. [S2] It was a fine day for us. "
SHORT = "[S1] We walk along the river and talk. [S1]"
# The first turn is heard when it is complete: its loudness is measured before.
TURNS = "[S1] We walk along the river. [S2] It was a fine day. [S1] Then we talk of it. [S2]"
PLAYER = "document.querySelector('#take [data-player]').dataset"

# Notes the pieces that go to the speakers: when each starts, on the audio's own clock, its length,
# the time at which it was sent, and whether the take was still being made.
NOTE_PIECES = """window.pieces = [];
const { start } = AudioBufferSourceNode.prototype;
AudioBufferSourceNode.prototype.start = function (when) {
  const { currentTime } = this.context;
  const isMade = document.querySelector('#status [data-state="running"]') === null;
  window.pieces.push({ when, currentTime, seconds: this.buffer.duration, isMade });
  start.call(this, when);
};"""
# Presses Generate where nobody has touched the page; when the take is made, reports how the player
# answered and where it is pressed: what playwright runs in a page counts as touched by a person.
PRESS_WITHOUT_A_PERSON = """let isPressed = false, answer = null;
const timer = setInterval(() => {
  const live = document.querySelector("#take [data-player]");
  if (window.diaRestored && live && !isPressed) {
    isPressed = true;
    document.querySelector("#generate").click();
  }
  if (live && live.dataset.player === "blocked") answer ??= live.innerText;
  if (answer && document.querySelector("#status :is([data-state=done], [data-state=cut])")) {
    clearInterval(timer);
    const play = live.querySelector(".player-play");
    play.scrollIntoView({ block: "center", behavior: "instant" });
    const { x, y, width, height } = play.getBoundingClientRect();
    console.log(JSON.stringify({ answer, place: [x + width / 2, y + height / 2] }));
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


def wait_player(page, *states: str) -> str:
    """Wait until the player is in one of these states; its text."""
    chosen = ", ".join(f'#take [data-player="{state}"]' for state in states)
    page.locator(chosen).wait_for()
    return page.locator("#take .player").inner_text()


def wait_heard(page, seconds: float) -> None:
    page.wait_for_function(f"Number({PLAYER}.position) >= {seconds}")


def position(page) -> float:
    return float(page.evaluate(f"{PLAYER}.position"))


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
    """One player: nothing is taken over at the end of the run, and nothing starts again."""
    watch = open_window(is_new=True)
    watch.context.add_init_script(NOTE_PIECES)
    page = watch.open()
    write_script(page, SCRIPT)
    press(page, "Generate")
    wait_player(page, "playing")
    assert page.get_by_role("group", name="Take").get_by_role("button").count() == 1
    page.get_by_label("Playback speed").select_option("1.25")
    wait_heard(page, 0.5)
    wait_state(page, *OVER)
    page.wait_for_function(f"{PLAYER}.player === 'playing'")
    before = position(page)
    assert before >= 0.5, "it did not begin again"
    press(page, "Pause")
    paused = position(page)
    assert before <= paused
    page.wait_for_timeout(300)
    assert position(page) == paused and page.get_by_label("Playback speed").input_value() == "1.25"
    press(page, "Play")
    wait_heard(page, paused + 0.1)
    assert wait_player(page, "playing")


def test_a_pause_outlasts_the_end_of_the_run(open_window, slow):
    page = open_window(at=slow).open()
    write_script(page, TURNS)
    press(page, "Generate")
    wait_player(page, "waiting")
    press(page, "Play now")
    wait_heard(page, 0.3)
    press(page, "Pause")
    paused = position(page)
    wait_state(page, *OVER)
    wait_player(page, "paused")
    assert position(page) == pytest.approx(paused, abs=0.01)
    slider = page.get_by_label("Position")
    slider.press("ArrowRight")
    assert position(page) == pytest.approx(paused + 1, abs=0.01)
    assert slider.get_attribute("aria-valuetext").startswith(f"{round(paused + 1)} of ")


def test_a_press_on_the_waveform_goes_on_from_there(open_window):
    page = open_window().open()
    write_script(page, SCRIPT)
    press(page, "Generate")
    wait_state(page, *OVER)
    page.get_by_role("button", name="Download take", disabled=False).wait_for()
    wait_player(page, "playing", "over")
    length = float(figure(page, "Audio").split()[0])
    wave = page.get_by_label("Position").bounding_box()
    page.mouse.click(wave["x"] + 0.8 * wave["width"], wave["y"] + wave["height"] / 2)
    assert position(page) >= 0.75 * length
    # The words around the one that is heard are below it.
    words = page.locator(".player-words").inner_text()
    assert words.startswith("S") and words[3:] in SCRIPT


def test_a_slow_machine_waits_until_it_can_play_without_a_gap(open_window, slow):
    watch = open_window(at=slow, is_new=True)
    watch.context.add_init_script(NOTE_PIECES)
    page = watch.open()
    write_script(page, TURNS)
    press(page, "Generate")
    expected = re.compile("Starts as soon as it can play to its end without a gap", re.DOTALL)
    page.locator("#take", has_text=expected).wait_for()
    assert page.evaluate("window.pieces") == []
    wait_player(page, "playing")
    wait_state(page, *OVER)
    wait_player(page, "over")
    pieces = page.evaluate("window.pieces")
    assert not pieces[0]["isMade"], "heard while it is made"
    sent = sum(piece["seconds"] for piece in pieces)
    assert sent == pytest.approx(float(figure(page, "Audio").split()[0]), abs=0.06)
    # Half of realtime at best, and still no gap.
    for piece, following in pairwise(pieces):
        assert following["when"] == pytest.approx(piece["when"] + piece["seconds"], abs=1e-4)


def test_no_piece_is_asked_for_twice(open_window, slow):
    """Every question costs the machine that makes the take."""
    page, asked = open_window(at=slow).open(), []

    def note(request):
        body = request.post_data_json if request.url.endswith("/component_server/") else {}
        if body.get("fn_name") == "hear":
            asked.append(body["data"]["from"])

    page.on("request", note)
    write_script(page, TURNS)
    press(page, "Generate")
    wait_state(page, *OVER)
    assert len(set(asked)) > 1
    # The answer at the very end may have come before the run was over.
    assert len(asked) <= len(set(asked)) + 1


def test_at_half_speed_it_is_heard_at_half_speed(open_window):
    watch = open_window(is_new=True)
    watch.context.add_init_script(NOTE_PIECES)
    page = watch.open()
    unfold(page, "More")
    speed = page.get_by_label("number input for Speed")
    speed.fill("0.5")
    speed.press("Tab")
    write_script(page, "[S1] Good morning. [S1]")
    press(page, "Generate")
    words = wait_state(page, *OVER)
    wait_player(page, "over")
    made = float(figure(page, "Audio").split()[0])
    assert f"{made} s of audio" in words and made > 1.5, "the sentence takes 0.9 s at speed 1"
    heard = sum(piece["seconds"] for piece in page.evaluate("window.pieces"))
    assert heard == pytest.approx(made, abs=0.06)
    with page.expect_download() as waiting:
        press(page, "Download take")
    assert soundfile.info(waiting.value.path()).duration == pytest.approx(made, abs=0.06)


def test_who_does_not_wait_can_listen_now(open_window, slow):
    page = open_window(at=slow).open()
    write_script(page, TURNS)
    press(page, "Generate")
    wait_player(page, "waiting")
    press(page, "Play now")
    wait_heard(page, 0.3)
    press(page, "Stop")
    # Stop is for the sound too.
    wait_player(page, "paused")
    wait_state(page, "stopped", *OVER)


def test_a_browser_that_starts_no_sound_offers_it(strict_page):
    watch = strict_page(PRESS_WITHOUT_A_PERSON)
    page = watch.context.new_page()
    with page.expect_console_message(lambda message: "Press Play" in message.text) as message:
        page.goto(watch.home)
    found = json.loads(message.value.text)
    assert "this browser does not start sound by itself" in found["answer"]
    page.mouse.click(*found["place"])
    wait_heard(page, 0.3)


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
    wait_player(page, "ready")
    assert position(page) == 0


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
