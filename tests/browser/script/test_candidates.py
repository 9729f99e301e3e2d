"""Candidates in a real chromium: made with one press, heard, chosen, there again, deleted."""

from __future__ import annotations

import pytest

from tests.helpers.page.browser import PHONE, figure, unfold, wait_state

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")


def test_one_of_four_candidates_is_chosen(open_window):
    page = open_window(PHONE).open()
    assert page.locator("#candidates").is_hidden()
    page.locator("#make-candidates").click()
    rows = page.locator("#candidates .candidate")
    sync_api.expect(rows).to_have_count(4)
    assert "4 candidates made" in wait_state(page, "done", "failed")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]

    play = rows.nth(1).locator(".candidate-play")
    play.click()
    sync_api.expect(play).to_have_text("Stop")
    # The first good one is in the player already, which may be any of them.
    name, other = next(
        (name, row)
        for name, row in zip("CD", (rows.nth(2), rows.nth(3)), strict=True)
        if row.locator(".candidate-choose").is_enabled()
    )
    other.locator(".candidate-choose").click()
    sync_api.expect(other).to_contain_text("in the player")
    sync_api.expect(page.locator("#take .player-label")).to_have_text(f"Candidate {name}")
    seed = figure(page, "Seed")
    assert seed in other.inner_text()

    page.reload()
    page.wait_for_function("window.diaRestored === true")
    sync_api.expect(other).to_contain_text("in the player")
    unfold(page, "Earlier takes")
    kept = page.locator("#earlier .earlier > li")
    sync_api.expect(kept.first).to_be_visible()  # The list comes whole, after the page.
    before = kept.count()
    page.locator(".candidates-discard").click()
    sync_api.expect(rows).to_have_count(1)
    sync_api.expect(kept).to_have_count(before - 3)
    assert figure(page, "Seed") == seed
