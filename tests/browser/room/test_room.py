"""The listening room in a real chromium: its player, its volume check, and what a reload keeps."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import soundfile

from dia_demo.files import PAGE_FILES, ROOT
from tests.helpers.page.browser import DESKTOP, Interceptor, Watch, open_tab, unfold
from tests.helpers.page.lab_page import (
    compare_tab,
    fill,
    hear,
    make_pairs,
    open_more,
    open_zip,
    vote,
    wait_until_ready,
    zip_comparison,
)

sync_api = pytest.importorskip("playwright.sync_api")

NARROW = {"width": 320, "height": 700}
CONTRAST = (ROOT / "tests" / "browser" / "contrast.js").read_text()
# The clips in the order in which they began to play.
NOTE_PLAYED = """() => {
  window.played = [];
  const note = () => {
    const clip = document.querySelector('.lab-clip[aria-pressed="true"]');
    const name = clip && clip.querySelector("strong").textContent;
    if (name && name !== window.played.at(-1)) window.played.push(name);
  };
  new MutationObserver(note).observe(document.querySelector(".lab-player"), {
    attributes: true, subtree: true,
  });
}"""
ROOM_ID = "() => (JSON.parse(localStorage.getItem('dia-room-1')) || {}).id"
PLAYING = '.lab-clip[aria-pressed="true"]'


@pytest.fixture(scope="module")
def long_pairs(tmp_path_factory):
    """Two pairs of clips of 4.6 s: time enough to press something while one plays."""
    return make_pairs(tmp_path_factory.mktemp("long"), seeds=(1, 2), max_tokens=300)


@pytest.fixture(scope="module")
def desktop(chromium, home):
    """One window for all tests of this module that leave it in working order."""
    context = chromium.new_context(viewport=DESKTOP)
    watch = Watch(context, home)
    yield compare_tab(watch)
    context.close()
    assert watch.outside == [] and watch.errors == []


@pytest.fixture(scope="module")
def phone(chromium, home):
    """One window of a narrow touch screen."""
    context = chromium.new_context(viewport=NARROW, has_touch=True, is_mobile=True)
    watch = Watch(context, home)
    yield compare_tab(watch)
    context.close()
    assert watch.outside == [] and watch.errors == []


@pytest.fixture
def room(desktop, finished_pairs, tmp_path):
    """The room with a new copy of two pairs of clips of 0.9 s."""
    return opened(desktop, zip_comparison(finished_pairs, tmp_path))


@pytest.fixture
def long_room(desktop, long_pairs, tmp_path):
    """The room with a new copy of two pairs of clips of 4.6 s."""
    return opened(desktop, zip_comparison(long_pairs, tmp_path))


def opened(page, path):
    """The page with another comparison in its room, and nothing left of the last one."""
    before = page.evaluate(ROOM_ID)
    page.locator("input[type=file][accept*='.zip']").set_input_files(path)
    page.wait_for_function(f"(before) => ({ROOM_ID})() !== before", arg=before)
    wait_until_ready(page)
    page.get_by_label("Repeat").set_checked(False)
    page.locator(".lab-room").focus()
    return page


def position(page) -> float:
    return float(page.locator(".lab-position").input_value())


def hint(page) -> str:
    return page.locator(".lab-hint").inner_text()


def test_one_key_plays_both_clips(room):
    room.evaluate(NOTE_PLAYED)
    assert hint(room) == "Listen to both clips to the end before you vote."
    room.keyboard.press("p")
    room.get_by_text("Listen to clip 2 to the end before you vote.").wait_for()
    room.get_by_text("You can vote now.").wait_for()
    room.locator(PLAYING).wait_for(state="detached")
    assert room.evaluate("window.played") == ["1", "2"]


def test_a_vote_has_the_name_of_its_text(room):
    """Without the key that is shown on it."""
    names = [
        room.get_by_role("button", name=name, exact=True).count()
        for name in ("1 is better", "No difference", "2 is better")
    ]
    assert names == [1, 1, 1]
    assert room.locator(".lab-vote kbd").first.is_visible()


def test_digits_play_clips_until_shift_is_held(room):
    for key, clip in (("1", "1"), ("2", "2"), ("a", "1"), ("b", "2")):
        room.keyboard.press(key)
        room.locator(PLAYING, has_text=clip).wait_for()
    hear(room, "A")
    hear(room, "B")
    room.keyboard.press("1")
    room.locator(PLAYING, has_text="1").wait_for()
    assert room.get_by_text("Pair 1 of 2").is_visible(), "a digit alone is no vote"
    vote(room, "B")
    room.get_by_text("Pair 2 of 2").wait_for()


@pytest.mark.long
def test_keys_are_letters_while_a_note_is_typed(room):
    room.locator(".lab-note").press_sequentially("b 1 ")
    assert room.locator(".lab-note").input_value() == "b 1 "
    assert room.get_by_text("Pair 1 of 2").is_visible()


@pytest.mark.long
def test_repeat_plays_a_clip_until_it_is_paused(room):
    room.get_by_label("Repeat").check()
    room.keyboard.press("1")
    room.locator(".lab-clip[data-letter='A']").get_by_text("heard").wait_for()
    room.locator(PLAYING).wait_for()
    room.wait_for_function("Number(document.querySelector('.lab-position').value) < 0.4")
    room.keyboard.press(" ")
    room.locator(PLAYING).wait_for(state="detached")


@pytest.mark.long
def test_the_bar_moves_within_the_clip(long_room):
    bar = long_room.locator(".lab-position")
    bar.fill("3")
    assert long_room.locator(PLAYING).count() == 0, "a paused clip stays paused"
    long_room.keyboard.press(" ")
    long_room.locator(PLAYING, has_text="1").wait_for()
    assert position(long_room) >= 3
    bar.fill("0.5")
    long_room.wait_for_function("Number(document.querySelector('.lab-position').value) < 2")
    long_room.keyboard.press(" ")
    before = position(long_room)
    long_room.locator(".lab-room").focus()
    long_room.keyboard.press("ArrowRight")
    assert position(long_room) == pytest.approx(before + 2, abs=0.01)


@pytest.mark.long
def test_space_resumes_a_paused_clip_after_a_click(long_room):
    long_room.locator('.lab-clip[data-letter="A"]').click()
    long_room.wait_for_function("Number(document.querySelector('.lab-position').value) > 0.5")
    long_room.keyboard.press(" ")
    long_room.locator(PLAYING).wait_for(state="detached")
    paused = position(long_room)
    long_room.keyboard.press(" ")
    long_room.locator(PLAYING).wait_for()
    assert position(long_room) >= paused > 0.5, "it did not start over"


@pytest.mark.long
def test_the_end_heard_twice_counts_once(long_room):
    """Four of the seconds are still missing."""
    left = []
    for _ in range(2):
        long_room.locator(".lab-position").fill("4")
        long_room.locator(".lab-room").focus()
        long_room.keyboard.press(" ")
        long_room.locator(PLAYING).wait_for()
        long_room.locator(PLAYING).wait_for(state="detached")
        left.append(long_room.locator(".lab-heard").first.inner_text())
    assert left == ["3.9 s to go"] * 2
    assert long_room.locator(".lab-vote").first.is_disabled()
    assert hint(long_room) == "Listen to both clips to the end before you vote."


@pytest.mark.long
def test_coverage_counts_every_second_once(chromium):
    page = chromium.new_page()
    source = (PAGE_FILES / "lab" / "coverage.js").read_text()
    seconds = page.evaluate(
        """async (source) => {
          const url = "data:text/javascript," + encodeURIComponent(source);
          const { Coverage } = await import(url);
          const spans = [[0, 1], [2, 3], [0.5, 1.5], [1.2, 2.1], [0, 3], [5, 6], [4, 7], [3, 4]];
          let coverage = new Coverage();
          return spans.map((span) => (coverage = coverage.with(...span)).seconds);
        }""",
        source,
    )
    page.close()
    assert seconds == pytest.approx([1, 2, 2.5, 3, 3, 4, 6, 7])


@pytest.mark.long
def test_the_volume_check_is_not_listening(room):
    sample = room.get_by_role("button", name="Play a short sample")
    sample.click()
    room.get_by_role("button", name="Stop the sample").wait_for()
    sample.wait_for()
    left = room.locator(".lab-heard").all_inner_texts()
    assert left[0] == left[1] == "0.8 s to go"
    for letter in "AB":
        hear(room, letter)
    vote(room, "A")
    room.get_by_text("Pair 2 of 2").wait_for()
    assert room.locator(".lab-volume").count() == 0, "once is enough"


@pytest.mark.long
def test_a_lost_connection_loses_no_vote(chromium, home, finished_pairs, tmp_path):
    """A request that never arrives is repeated by the listener; one whose answer is lost counts.

    In a window of its own, because the browser reports lost requests in its console.
    """
    context = chromium.new_context(viewport=DESKTOP)
    requests = Interceptor(context, "**/component_server/**")
    room = compare_tab(Watch(context, home))
    open_zip(room, zip_comparison(finished_pairs, tmp_path))
    for letter in "AB":
        hear(room, letter)
    requests.handle = lambda route: route.abort()
    vote(room, "A")
    room.get_by_text("The server cannot be reached.").wait_for()
    # It has also asked whether the vote was saved all the same.
    room.locator('.lab-room[data-busy="false"]').wait_for()
    assert room.locator(".lab-vote").first.is_enabled()

    def lose_the_answer(route) -> None:
        requests.handle = None
        route.fetch()
        route.abort()

    requests.handle = lose_the_answer
    vote(room, "A")
    room.get_by_text("Pair 2 of 2").wait_for()
    room.get_by_text("Vote saved.").wait_for()
    context.close()


@pytest.mark.long
def test_the_room_takes_turns_with_other_players(long_room):
    """With a media element, as gradio's player is one."""
    silence = io.BytesIO()
    soundfile.write(silence, np.zeros(20 * 8000), 8000, format="WAV")
    url = "data:audio/wav;base64," + base64.b64encode(silence.getvalue()).decode()
    long_room.evaluate("(url) => (window.other = new Audio(url)).play()", url)
    assert long_room.evaluate("!window.other.paused")
    long_room.keyboard.press("1")
    long_room.locator(PLAYING).wait_for()
    assert long_room.evaluate("window.other.paused")
    sync_api.expect(long_room.locator(".lab-position")).not_to_have_value("0")
    long_room.evaluate("window.other.play()")
    long_room.locator(PLAYING).wait_for(state="detached")
    assert 0 < position(long_room) < 4, "it is paused, and not at its end"


@pytest.mark.long
def test_a_reload_brings_the_pair_back(long_room):
    page = long_room
    unfold(page, "1 · Set up")
    open_more(page)
    page.get_by_label("What both sides say").fill("[S1] My own words. [S2] Yes.")
    fill(page, "second", 0.77)
    page.locator(".lab-room").focus()
    script = page.locator(".lab-script").inner_text()
    hear(page, "A")
    page.locator(".lab-note").fill("so far so good")
    page.get_by_label("clearly").check()
    page.locator(".lab-room").focus()
    page.keyboard.press("2")
    page.wait_for_function("Number(document.querySelector('.lab-position').value) > 1")
    page.reload()
    wait_until_ready(page)
    page.get_by_role("tab", name="Compare", selected=True).wait_for()
    assert page.locator(".lab-script").inner_text() == script
    assert page.locator(".lab-note").input_value() == "so far so good"
    assert page.get_by_label("clearly").is_checked()
    assert page.locator(".lab-clip[data-letter='A'] .lab-heard").inner_text() == "heard"
    left = float(page.locator(".lab-clip[data-letter='B'] .lab-heard").inner_text().split()[0])
    assert 0 < left < 4, "the second of 4.6 that was heard counts"
    unfold(page, "1 · Set up")
    assert page.locator("#lab-second input").input_value() == "0.77"
    open_more(page)
    scripts = page.get_by_label("What both sides say")
    sync_api.expect(scripts).to_have_value("[S1] My own words. [S2] Yes.")


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_room_fits_a_narrow_screen(phone, finished_pairs, tmp_path, scheme):
    """320 px: nothing overflows, targets of 24 px or more, enough contrast."""
    phone.emulate_media(color_scheme=scheme)
    phone.reload()
    open_tab(phone, "Compare")
    page = opened(phone, zip_comparison(finished_pairs, tmp_path))
    hear(page, "A")
    lab = page.locator("#lab").bounding_box()
    assert lab["x"] >= 0 and lab["x"] + lab["width"] <= NARROW["width"]
    wide = page.evaluate(
        """() => [...document.querySelectorAll(".lab-room *")]
          .filter((node) => node.getBoundingClientRect().right > 320.5)
          .map((node) => node.className)"""
    )
    assert wide == []
    small = page.evaluate(
        """() => [...document.querySelectorAll(".lab-room button, .lab-room label, .lab-position")]
          .filter((node) => node.offsetParent)
          .map((node) => [node.className, node.getBoundingClientRect()])
          .filter(([, box]) => box.height < 24 || box.width < 24)
          .map(([name]) => name)"""
    )
    assert small == []
    assert page.evaluate(CONTRAST) == []


@pytest.mark.long
def test_a_touch_screen_shows_no_keys(phone, finished_pairs, tmp_path):
    page = opened(phone, zip_comparison(finished_pairs, tmp_path))
    assert page.get_by_role("button", name="1 is better", exact=True).is_visible()
    assert not page.locator(".lab-keys").is_visible()
    assert page.locator(".lab-vote kbd:visible").count() == 0
