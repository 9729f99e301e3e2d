"""The owner's card in a real chromium: a test of the open pairs, its link, its end."""

from __future__ import annotations

import pytest

from tests.helpers.page.browser import DESKTOP, unfold
from tests.helpers.page.lab_page import WAIT, compare_tab, open_zip, zip_comparison

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")


def test_the_owner_makes_a_test_invites_and_ends_it(open_window, finished_pairs, tmp_path):
    page = compare_tab(open_window(DESKTOP, is_new=True))
    open_zip(page, zip_comparison(finished_pairs, tmp_path))
    unfold(page, "Many listeners")
    sync_api.expect(page.locator("#lab-panel-note")).to_contain_text("12 listeners", timeout=WAIT)
    page.locator("#lab-panel-create").click()
    link = page.locator("#lab-panel-state a")
    link.wait_for(timeout=WAIT)
    assert page.locator("#lab-panel-state svg").count() == 1
    invited = page.context.browser.new_context().new_page()
    invited.goto(link.inner_text())
    invited.get_by_label("I agree to take part").wait_for(timeout=WAIT)
    shown = invited.content()
    assert "temperature" not in shown and "/gradio_api" not in shown
    invited.context.close()
    # The first press asks.
    page.locator("#lab-panel-reveal").click()
    page.get_by_role("button", name="Press again to end the test for all").click()
    verdict = page.locator("#lab-panel-state .verdict")
    sync_api.expect(verdict).to_contain_text("no votes that count", timeout=WAIT)
    assert link.count() == 0, "nobody is invited any more"
    sync_api.expect(page.locator("#lab-panel-reveal")).to_be_hidden()
    with page.expect_download(timeout=WAIT) as download:
        page.locator("#lab-panel-report").click()
    assert "<h1>" in download.value.path().read_text()
