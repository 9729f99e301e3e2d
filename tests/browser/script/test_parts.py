"""A long script in a real chromium: its parts are listed, played, changed and there again."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO

import numpy as np
import pytest
import soundfile

from tests.helpers.page.browser import (
    PHONE,
    figure,
    press,
    script_of,
    wait_state,
)

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

LONG = "\n".join(
    f"[S{1 + i % 2}] We walk along the river and talk of the weather and of old friends."
    for i in range(8)
)
WORDS = "[S1] Hello and welcome. [S2] Thank you, it is good to be here."


def tracks_in(path) -> list[np.ndarray]:
    """The sounds in a zip."""
    with zipfile.ZipFile(path) as archive:
        return [soundfile.read(BytesIO(archive.read(name)))[0] for name in archive.namelist()]


def test_a_long_script_is_made_in_parts(open_window):
    page = open_window(PHONE).open()
    assert page.locator("#parts").is_hidden()
    script_of(page).fill(LONG)
    page.locator("#report", has_text="made in parts").wait_for()
    press(page, "Generate")
    words = wait_state(page, "done", "failed")
    found = re.search(r"Done (\d+) s of audio in (\d+) parts", words)
    assert found, words
    rows = page.locator("#parts .part")
    assert rows.count() == int(found[2]) >= 3
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    before = figure(page, "Audio")

    play = rows.nth(1).locator(".part-play")
    play.click()
    sync_api.expect(play).to_have_text("Stop")
    sync_api.expect(play).to_have_text("Play", timeout=30_000)  # at its end
    with page.expect_download() as waiting:
        page.locator("#parts [data-get=vtt]").click()
    assert waiting.value.suggested_filename.startswith("we-walk-along-the-river")

    with page.expect_download() as waiting:
        page.locator("#parts [data-get=speakers]").click()
    whole, tracks = float(before.split()[0]), tracks_in(waiting.value.path())
    assert [len(track) / 16000 for track in tracks] == pytest.approx([whole] * 2, abs=0.06)
    heard = [np.abs(track) > 0.01 for track in tracks]
    assert all(one.mean() > 0.05 for one in heard) and not (heard[0] & heard[1]).any()

    rows.nth(0).locator(".part-edit").click()
    field = rows.nth(0).locator(".part-field")
    sync_api.expect(field).to_be_focused()
    field.fill(WORDS)
    field.press("Control+Enter")
    sync_api.expect(rows.nth(0).locator(".part-text")).to_have_text(WORDS, timeout=60_000)
    page.wait_for_function(
        "(before) => ![before, '–'].includes(document.querySelector('#figures dd').innerText)",
        arg=before,
    )

    page.locator("#take .player-play").click()
    page.locator("#parts .is-heard").wait_for()
    page.reload()
    sync_api.expect(rows.nth(0).locator(".part-text")).to_have_text(WORDS, timeout=60_000)
