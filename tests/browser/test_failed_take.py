"""A take that fails inside a comparison, in a real chromium: told, worked around, made again."""

from __future__ import annotations

import pytest

from tests.helpers.models.checkpoints import write_small
from tests.helpers.page.browser import PHONE, Watch, open_tab, press, running_app
from tests.helpers.page.lab_page import SCRIPT, compare_tab, fill_in, hear, vote, wait_until_ready

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

PAIRS = 2


def test_a_failed_take_is_made_again_on_request(chromium, tmp_path):
    fault = tmp_path / "fault"
    fault.touch()
    model = write_small(tmp_path / "small", codec=True)
    given = {"FAULT": str(fault), "DIA_MODEL": str(model)}
    with running_app(tmp_path, module="tests.browser.apps.failing_app", **given) as url:
        watch = Watch(chromium.new_context(viewport=PHONE), url)
        page = compare_tab(watch)
        begin(page)
        status = page.locator("#lab-status")
        status.locator('[data-state="failed"]').wait_for()
        said = status.inner_text()
        assert f"1 of {PAIRS} pairs ready" in said and "error: The decoder returned" in said
        assert "Press Resume to retry" in said and not fault.exists()
        assert status.get_by_role("progressbar").get_attribute("aria-valuenow") == "50"
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]

        judge(page, 1)
        page.get_by_text("No pair is ready (1 failed). Press Resume").wait_for()
        # The words are still there for who comes back later.
        page.reload()
        open_tab(page, "Compare")
        page.locator("#lab-kept input").click()
        page.get_by_role("option").click()
        press(page, "Open")
        status.locator(".status-detail").get_by_text("Some takes failed.").wait_for()

        press(page, "Resume")
        status.locator('[data-state="done"]').wait_for()
        assert f"{PAIRS} of {PAIRS} pairs ready" in status.inner_text()
        sync_api.expect(page.get_by_role("button", name="Resume")).to_be_hidden()
        judge(page, 2)
        page.locator('.lab-room[data-state="open"]').wait_for()
        assert f"{PAIRS} of {PAIRS} pairs judged" in page.locator(".lab-result").inner_text()
        watch.context.close()
        assert watch.errors == [] and watch.outside == []


def begin(page) -> None:
    """Two short pairs, in the making."""
    fill_in(page, SCRIPT, max_tokens=60, seeds=PAIRS)
    press(page, "Generate pairs")


def judge(page, number: int) -> None:
    """Hear both clips of the pair that is there and prefer the first."""
    page.get_by_text(f"Pair {number} of {PAIRS}").wait_for()
    wait_until_ready(page)
    page.locator(".lab-room").focus()
    for letter in "AB":
        hear(page, letter)
    vote(page, "A")
