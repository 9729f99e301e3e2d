"""A take's file and a script from elsewhere, in a real chromium: what comes back, what is told."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from dia_demo import audio
from tests.helpers.browser import figure, press, wait_state, write_script

sync_api = pytest.importorskip("playwright.sync_api")

SHORT = "[S1] Hello there. How are you? [S2] I am fine, thank you. [S1]"
CURLY = "[S1] I’m sure you’ll like it — “really”… [S2] Don’t be late, please, my friend."
PLAIN = "[S1] I'm sure you'll like it, \"really\"... [S2] Don't be late, please, my friend."
OVER = ("done", "cut")


def choose(page, label: str, option: str) -> None:
    page.get_by_label(label, exact=True).click()
    page.get_by_role("option", name=option).click()


def make_and_keep(page, path):
    """Generate, and the WAV as one downloads it."""
    press(page, "Generate")
    page.wait_for_function("!document.querySelector('#stop').disabled")
    page.wait_for_function("!document.querySelector('#generate').disabled")
    wait_state(page, *OVER)
    with page.expect_download() as waiting:
        press(page, "Download WAV")
    waiting.value.save_as(path)
    return soundfile.read(path, dtype="int16")[0]


def drop(page, path) -> str:
    """Drop a file on "Settings from a take"; what the status says then."""
    page.get_by_role("button", name="Earlier takes").click()
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
    inside["settings"]["temperature"] = 4.25
    inside["voice_transcript"] = "[S1] The words of the recording."
    wave = samples.astype(np.float32) / 32767
    audio.write_audio(tmp_path / "other.wav", wave, inside["figures"]["sample_rate"], inside)
    told = drop(page, tmp_path / "other.wav")
    assert "Temperature was 4.25, but the slider ends at 2.5" in told
    assert "voice prompt that says “[S1] The words of the recording.”" in told
    assert page.get_by_label("number input for Temperature").input_value() == "2.5"


def test_the_page_shows_the_script_as_the_model_reads_it(open_window):
    page = open_window().open()
    script = page.get_by_label("Script", exact=True)
    script.fill(CURLY)
    page.locator("#report .read-as").get_by_text(PLAIN).wait_for()
    assert script.input_value() == CURLY, "what was written stays as it is"
    choose(page, "Model", "Dia-1.6B")
    page.locator("#report .finding").get_by_text("Typographic quotes").wait_for()
    assert page.locator("#report .read-as").count() == 0
    press(page, "Use plain quotes and dashes")
    sync_api.expect(script).to_have_value(PLAIN)


def test_a_finding_is_repaired_by_one_click(open_window):
    page = open_window().open()
    text = "[S1] Hello there. [S2] Hi, how are you?"
    write_script(page, text)
    press(page, "Add [S1] at the end")
    script = page.get_by_label("Script", exact=True)
    sync_api.expect(script).to_have_value(f"{text} [S1]")


def test_fix_all_makes_every_repair(open_window):
    page = open_window().open()
    write_script(page, "[S1] Hello (giggles). [S2] Hi (coughing), how are you?")
    press(page, "Fix all (3)")
    script = page.get_by_label("Script", exact=True)
    sync_api.expect(script).to_have_value(
        "[S1] Hello (laughs). [S2] Hi (coughs), how are you? [S1]"
    )
    page.get_by_text("Fix all").wait_for(state="detached")
