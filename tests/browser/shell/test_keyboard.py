"""The page without a mouse and without a picture, in a real chromium: where the focus is, and what
a screen reader says."""

from __future__ import annotations

import re

import pytest

from tests.helpers.page.browser import (
    open_tab,
    running_app,
    tab_to,
    unfold,
    wait_for_values,
    wait_state,
)
from tests.helpers.page.lab_page import heard, vote, wait_until_ready

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

OVER = ("done", "cut")
# Notes where the focus is, frame by frame, once it is on the page, and what live regions say.
RECORD = """window.focused = [];
window.said = [];
const region = "[aria-live=polite], [role=status], [role=alert]";
const name = (one) => one.getAttribute("aria-label") || one.id || one.textContent.trim() ||
  one.tagName;
const note = () => {
  const { activeElement, body } = document;
  const now = !activeElement || activeElement === body ? "NOTHING" : name(activeElement);
  const isFirst = !window.focused.length && now === "NOTHING";
  if (!isFirst && window.focused.at(-1) !== now) window.focused.push(now);
  requestAnimationFrame(note);
};
document.addEventListener("DOMContentLoaded", () => {
  requestAnimationFrame(note);
  const words = new Map();
  new MutationObserver(() => {
    for (const one of document.querySelectorAll(region)) {
      const text = one.textContent.trim();
      if (words.has(one) ? words.get(one) !== text : text && document.readyState === "complete") {
        window.said.push(text);
      }
      words.set(one, text);
    }
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
});"""


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """The app with a decoder that is slow enough for a press on Stop."""
    folder = tmp_path_factory.mktemp("slow")
    with running_app(folder, module="tests.browser.apps.patient_app", STEP_SECONDS="0.02") as url:
        yield url


@pytest.fixture
def recorded(open_window):
    """A function that opens the page; the focus must never be lost on it."""
    pages = []

    def open_page(at=None):
        watch = open_window(at=at, is_new=True) if at else open_window(is_new=True)
        watch.context.add_init_script(RECORD)
        pages.append(watch.open())
        pages[-1].set_default_timeout(40_000)
        return pages[-1]

    yield open_page
    for page in pages:
        assert "NOTHING" not in page.evaluate("window.focused"), page.evaluate("window.focused")


def wait_focus(page, selector: str) -> None:
    page.wait_for_function("(chosen) => document.activeElement?.matches(chosen)", arg=selector)


def said_since(page, count: int) -> list[str]:
    return page.evaluate("(count) => window.said.slice(count)", count)


def said_count(page) -> int:
    return page.evaluate("window.said.length")


def test_a_take_from_load_to_download(recorded):
    page = recorded()
    tab_to(page, "#model input")
    page.keyboard.press("Tab")
    wait_focus(page, "#precision input")
    sync_api.expect(page.get_by_role("listbox")).to_have_count(1)  # its own
    page.keyboard.press("Tab")
    wait_focus(page, ".add-turn")
    page.keyboard.press("Tab")
    wait_focus(page, ".swap-speakers")
    page.keyboard.press("Tab")
    wait_focus(page, "#voice-s1 input")
    sync_api.expect(page.get_by_role("listbox")).to_have_count(1)
    page.keyboard.press("Tab")
    wait_focus(page, "#hear-s1")
    sync_api.expect(page.get_by_role("listbox")).to_have_count(0)
    tab_to(page, "#script textarea")
    before = said_count(page)
    page.keyboard.press("Control+A")
    page.keyboard.type("[S1] Hello there. [S3] Hi.")
    page.wait_for_function(
        "(count) => window.said.slice(count).some((text) => text.includes('[S3]'))",
        arg=before,
    )
    described = page.locator("#script textarea").get_attribute("aria-describedby")
    assert "[S3]" in page.locator(f"#{described}").inner_text()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("[S1] Hello there. [S2] Hi. [S1]")  # Checked once, as a whole.
    page.wait_for_function(
        "window.said.filter((text) => text.includes('finding')).at(-1) === 'No findings'"
    )
    before = said_count(page)
    tab_to(page, "#generate")
    page.keyboard.press("Enter")
    wait_state(page, *OVER)
    wait_focus(page, ".player-play")
    said = said_since(page, before)
    assert len(said) == len(set(said)), f"each state once: {said}"
    assert "Generating" in said and said[-1].startswith(("Done", "Cut off"))
    assert "stop" in page.evaluate("window.focused")
    tree = page.locator("#take").aria_snapshot()
    for part in ('group "Take"', 'slider "Position"', 'combobox "Playback speed"'):
        assert part in tree
    tab_to(page, "#download-take")
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    assert waiting.value.suggested_filename.endswith(".wav")


def test_stop_and_failure_keep_the_focus(recorded, slow):
    page = recorded(slow)
    tab_to(page, "#generate")
    page.keyboard.press("Enter")
    wait_focus(page, "#stop")
    wait_state(page, "running")
    page.keyboard.press("Enter")
    wait_state(page, "stopped", *OVER)
    wait_focus(page, ".player-play, #generate")
    tab_to(page, "#script textarea")
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    before = said_count(page)
    tab_to(page, "#generate")
    page.keyboard.press("Enter")
    wait_state(page, "failed")
    wait_focus(page, ".player-play, #generate")
    failures = [text for text in said_since(page, before) if text.startswith("Failed")]
    assert len(failures) == 1
    tab_to(page, "#generate")
    page.keyboard.press("Enter")
    page.reload()
    page.wait_for_function("window.diaRestored === true")


def test_what_disappears_hands_the_focus_on(recorded):
    page = recorded()
    tab_to(page, "#script textarea")
    page.keyboard.press("Control+A")
    page.keyboard.type("[S1] Hello there. [S1]")
    page.get_by_role("button", name=re.compile("^Two friends")).focus()
    tab_to(page, "#generate")
    page.keyboard.press("Enter")
    wait_state(page, *OVER)
    unfold(page, "Earlier takes")
    tab_to(page, ".earlier-delete")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.locator(".earlier li").wait_for(state="detached")
    page.wait_for_function("document.activeElement !== document.body")


def test_the_benchmark_hands_the_focus_to_stop_and_back(recorded):
    page = recorded()
    open_tab(page, "Machine")
    tab_to(page, "#machine-measure")
    page.keyboard.press("Enter")
    wait_focus(page, "#machine-stop")
    page.keyboard.press("Enter")
    wait_focus(page, "#machine-measure")


def go_to_tab(page, name: str) -> None:
    tab_to(page, "[role=tab]:not([aria-selected=true])")
    for _ in range(6):
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("tab", name=name, selected=True).wait_for()
    wait_for_values(page)


def type_over(page, selector: str, text: str) -> None:
    tab_to(page, selector)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(text)


def test_a_comparison_from_its_form_to_the_verdict(recorded):
    page = recorded()
    go_to_tab(page, "Compare")
    type_over(page, "#lab-second input", "0.9")
    tab_to(page, "#lab-more button")
    page.keyboard.press("Enter")
    page.locator("#lab-scripts").wait_for()
    wait_for_values(page)
    type_over(page, "#lab-scripts textarea", "[S1] Hello there. How are you? [S2] Fine.")
    type_over(page, "#lab-a-max-tokens input", "100")
    page.get_by_text("1 pair of 1 script can show nothing").wait_for()
    for _ in range(60):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.id") == "lab-make":
            break
    before = said_count(page)
    page.keyboard.press("Enter")
    wait_until_ready(page)
    wait_focus(page, ".lab-room")
    for letter in "AB":
        page.keyboard.press(letter.lower())
        heard(page, letter)
    vote(page, "none")
    page.locator('.lab-room[data-state="open"]').wait_for()
    wait_focus(page, ".lab-room")
    said = said_since(page, before)
    states = ("Generating", "All pairs are ready", "You can vote now.", "No difference was heard.")
    assert [text for text in said if text in states] == list(states), said
    tree = page.locator("#lab").aria_snapshot()
    assert 'region "Listening room"' in tree and 'table "Votes"' in tree
    tab_to(page, ".all-pairs summary")
    page.keyboard.press("Enter")
    tab_to(page, ".hear")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    tab_to(page, "#lab-zip, #lab-zip *")
    with page.expect_download() as waiting:
        page.keyboard.press("Enter")
    assert waiting.value.suggested_filename.endswith(".zip")


def test_about_is_read_from_its_first_part_to_its_last(recorded):
    """Everything that unfolds can be reached and opened, and the focus stays on it."""
    page = recorded()
    go_to_tab(page, "About")
    panel = page.locator('[role="tabpanel"]:visible')
    assert re.search(r"- heading ", panel.aria_snapshot())
    page.keyboard.press("Tab")
    inside = "document.activeElement.closest('[role=tabpanel]') !== null"
    reached = 0
    for _ in range(40):
        if page.evaluate(inside):
            reached += 1
            if page.evaluate("document.activeElement.matches('summary')"):
                page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        if reached and not page.evaluate(inside):
            break
    assert reached
