"""A take's file in a real chromium: what comes back, what is told."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from dia_demo import audio
from tests.helpers.page.browser import choose, figure, press, unfold, wait_state, write_script

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

SHORT = "[S1] Hello there. How are you? [S2] I am fine, thank you. [S1]"
OVER = ("done", "cut")


def make_and_keep(page, path):
    """Generate, and the WAV as one downloads it."""
    press(page, "Generate")
    wait_state(page, *OVER)
    with page.expect_download() as waiting:
        press(page, "Download take")
    waiting.value.save_as(path)
    return soundfile.read(path, dtype="int16")[0]


def drop(page, path) -> str:
    """Drop a file on "Settings from a take"; what the status says then."""
    unfold(page, "Earlier takes")
    page.locator("#dropped input[type=file]").set_input_files(path)
    page.locator("#status .status-detail").get_by_text(
        "The settings of the take are in the form"
    ).wait_for()
    return page.locator("#status").inner_text()


def test_a_file_gives_its_take_again_precision_included(open_window, tmp_path):
    page = open_window().open()
    write_script(page, SHORT, max_tokens=120)
    choose(page, "Precision", "int8")
    first = make_and_keep(page, tmp_path / "take.wav")
    seed = figure(page, "Seed")
    fresh = open_window().open()
    assert fresh.get_by_label("Precision", exact=True).input_value() == "auto"
    assert "voice prompt" not in drop(fresh, tmp_path / "take.wav")
    assert fresh.get_by_label("Precision", exact=True).input_value() == "int8"
    again = make_and_keep(fresh, tmp_path / "again.wav")
    assert figure(fresh, "Seed") == seed and np.array_equal(first, again)


def test_a_file_says_what_it_cannot_bring_back(open_window, tmp_path):
    page = open_window().open()
    write_script(page, SHORT, max_tokens=60)
    samples = make_and_keep(page, tmp_path / "take.wav")
    inside = audio.read_metadata(tmp_path / "take.wav")
    inside["settings"]["temperature"] = 6.25
    inside["voice_transcript"] = "[S1] The words of the recording."
    wave = samples.astype(np.float32) / 32767
    audio.write_audio(tmp_path / "other.wav", wave, inside["figures"]["sample_rate"], inside)
    told = drop(page, tmp_path / "other.wav")
    assert "Temperature was 6.25, but the slider ends at 5" in told
    assert "voice prompt that says “[S1] The words of the recording.”" in told
    assert page.get_by_label("number input for Temperature").input_value() == "5"
