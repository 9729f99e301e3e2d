"""The list of earlier takes in a real chromium: found again, named, starred, downloaded."""

from __future__ import annotations

import zipfile

import pytest

from tests.helpers.page.browser import press, unfold, wait_state, write_script

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")


def test_takes_are_found_named_starred_and_downloaded(open_window, tmp_path):
    page = open_window().open()
    for script in ("[S1] Hello there. How are you? [S1]", "[S1] Good morning, all. [S1]"):
        write_script(page, script, max_tokens=60)
        press(page, "Generate")
        wait_state(page, "done", "cut")
        page.locator("#generate:enabled").wait_for()
    unfold(page, "Earlier takes")
    rows = page.locator(".earlier li")
    sync_api.expect(rows).to_have_count(2)

    search = page.get_by_label("Search earlier takes")
    search.fill("HOW hello")
    sync_api.expect(rows).to_have_count(1)
    rows.get_by_role("button", name="Rename").press("Enter")
    name = page.get_by_label("Name of this take")
    name.fill("For <i>Ben</i>")
    name.press("Enter")
    sync_api.expect(rows.locator(".earlier-name")).to_have_text("For <i>Ben</i>")
    sync_api.expect(rows.get_by_role("button", name="Rename")).to_be_focused()
    rows.get_by_role("button", name="Star").press("Enter")
    sync_api.expect(rows.get_by_role("button", name="Star", pressed=True)).to_be_focused()
    with page.expect_download() as waiting:
        rows.get_by_role("button", name="Download", exact=True).click()
    assert waiting.value.suggested_filename.startswith("for-i-ben-i_nano_seed")

    search.fill("")
    sync_api.expect(rows).to_have_count(2)
    page.locator("#earlier .audio-format").select_option("mp3")
    with page.expect_download() as waiting:
        press(page, "Download all")
    waiting.value.save_as(tmp_path / "takes.zip")
    with zipfile.ZipFile(tmp_path / "takes.zip") as archive:
        assert [name[-4:] for name in archive.namelist()] == [".mp3"] * 2
    page.get_by_label("★ only").check()
    sync_api.expect(rows).to_have_count(1)
    page.reload()
    unfold(page, "Earlier takes")
    sync_api.expect(rows).to_have_count(2)
    assert rows.locator(".earlier-name").inner_text() == "For <i>Ben</i>"
    for menu in page.locator(".audio-format").all():
        sync_api.expect(menu).to_have_value("mp3")
