"""The page without a mouse and without a picture, in a real chromium: where the focus is, and what
a screen reader says."""

from __future__ import annotations

import re

import pytest

from tests.helpers.page.browser import open_tab, running_app, tab_to, unfold, wait_state

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
        watch = open_window(at=at) if at else open_window()
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
    page.keyboard.type("[S1] Hello there. [S2] Hi. [S1]")
    page.wait_for_function("window.said.at(-1) === 'No findings'")
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
    tab_to(page, "#wav")
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
