"""The first visit: that it fits, what is transferred, and the ways to the API's documentation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.long import long_after
from tests.helpers.page.browser import DESKTOP, PHONE, open_tab
from tests.helpers.page.lab_page import WAIT

pytest.importorskip("playwright.sync_api")

MOST_BYTES = 800_000


@pytest.mark.parametrize("size", long_after(1, [DESKTOP, PHONE]), ids=["desktop", "phone"])
def test_the_page_fits_the_window(open_window, size):
    page = open_window(size).open()
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    assert "a small synthetic voice for trying" in page.locator("#speaker").inner_text()
    assert page.get_by_label("Intel XPU (experimental)").is_disabled()
    assert not page.get_by_label("Intel XPU (experimental)").is_checked()
    page.get_by_role("tab", name="About").click()
    page.get_by_text("How it sounds says nothing about").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_a_cold_load_is_small(open_window):
    """open_window refuses requests to other hosts."""
    watch = open_window(is_new=True)
    page = watch.context.new_page()
    session = watch.context.new_cdp_session(page)
    session.send("Network.enable")
    sizes: list[int] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(watch.home)
    page.get_by_role("button", name="Generate").wait_for()
    page.wait_for_function("window.diaRestored === true")
    assert len(sizes) > 20 and sum(sizes) <= MOST_BYTES


def test_the_browser_shows_our_title_beside_our_icon(shared_page):
    page = shared_page
    assert page.title() == "Dia on your CPU"
    icon = page.locator("link[rel=icon]").evaluate("(link) => link.href")
    answer = page.request.get(icon)
    assert answer.headers["content-type"] == "image/png"


@pytest.mark.long
def test_keys_are_named_in_a_tooltip(shared_page):
    """A touch screen shows none."""
    page = shared_page
    assert page.locator("#generate").get_attribute("title") == "Ctrl+Enter"
    assert "Ctrl" not in page.locator("body").inner_text()


@pytest.fixture
def api_window(open_window):
    """A window for gradio's API page, which asks for a schema of MCP that this app does not have:
    the browser notes the answer 404."""
    watch = open_window()
    watch.context.set_default_timeout(WAIT)
    yield watch
    watch.errors[:] = [error for error in watch.errors if "404 (Not Found)" not in error]


def documentation(page):
    return page.get_by_role("heading", name="API documentation")


@pytest.mark.long
def test_the_footer_opens_the_api_page(api_window):
    page = api_window.open()
    page.locator("footer").get_by_role("button", name="API").click()
    documentation(page).wait_for()


@pytest.mark.long
def test_a_link_to_the_api_page_opens_it(api_window):
    page = api_window.context.new_page()
    page.goto(f"{api_window.home}/?view=api")
    documentation(page).wait_for()


@pytest.mark.long
def test_the_example_for_programs_runs(api_window, tmp_path):
    page = api_window.open()
    page.get_by_role("tab", name="About").click()
    example = page.locator("pre.example").inner_text()
    command = [sys.executable, "-c", example]
    output = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    ).stdout
    wav, seconds = output.strip().splitlines()[-1].rsplit(" ", 1)
    assert Path(wav).read_bytes()[:4] == b"RIFF" and float(seconds) > 0.5
    page.get_by_role("link", name="API page").click()
    documentation(page).wait_for()


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1440])
def test_a_link_explains_why_the_xpu_is_off(shared_page, width):
    page = shared_page
    open_tab(page, "Generate")
    page.set_viewport_size({"width": width, "height": 844})
    toggle = page.get_by_label("Intel XPU (experimental)")
    assert toggle.is_disabled() and not toggle.is_checked()
    area = page.locator("#xpu-area")
    assert area.bounding_box()["height"] < 60, "one line"
    last = page.locator("#generate-grid > *").evaluate_all(
        "(cards) => Math.max(...cards.map((card) => card.getBoundingClientRect().bottom))"
    )
    box = page.locator("#settings-area").bounding_box()
    assert width > 860 or box["y"] + box["height"] == last
    area.get_by_role("link", name="Why it is off").click()
    page.get_by_text("has no XPU support").wait_for()
