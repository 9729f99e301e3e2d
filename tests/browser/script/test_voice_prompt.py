"""Voice prompts on the page, in a real chromium: their text, a reload, and what is refused."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.helpers.page.browser import press, script_of, unfold, wait_state, write_script
from tests.helpers.voices import write_voice

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

WORDS = "[S1] We walk along the river and talk. [S1]"


# A second of 440 Hz, as the browser itself records it.
RECORD = """async (mimeType) => {
  const context = new AudioContext();
  const out = context.createMediaStreamDestination();
  const tone = new OscillatorNode(context, { frequency: 440 });
  tone.connect(out);
  tone.start();
  const recorder = new MediaRecorder(out.stream, { mimeType });
  const pieces = [];
  recorder.addEventListener("dataavailable", ({ data }) => pieces.push(data));
  const ended = new Promise((resolve) => { recorder.addEventListener("stop", resolve); });
  recorder.start();
  await new Promise((resolve) => { setTimeout(resolve, 1000); });
  recorder.stop();
  await ended;
  const bytes = new Uint8Array(await new Blob(pieces).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}"""


@pytest.fixture
def memo(tmp_path):
    """A voice prompt of two seconds."""
    return write_voice(tmp_path / "memo.wav")


def add_prompt(page, path) -> str:
    """Add a voice prompt; the address that its player fetches."""
    unfold(page, "Voice prompt")
    with page.expect_response(lambda answer: "/file=" in answer.url) as waiting:
        page.locator("#voice-prompt input[type=file]").set_input_files(path)
    page.locator(".chip").filter(has_text="Voice prompt in use").wait_for()
    return waiting.value.url


def test_a_voice_prompt_outlives_a_reload_with_its_words(open_window, memo):
    page = open_window().open()
    add_prompt(page, memo)
    chip = page.locator(".chip").filter(has_text="Voice prompt in use")
    chip.wait_for()
    page.get_by_label("Text of the voice prompt").fill("[S2] These are its words.")
    script_of(page).fill("[S1] Hi. [S2] Ho. [S1]")
    page.get_by_text(re.compile(r"\b36 of [\d,]+ bytes")).wait_for()
    page.reload()
    page.wait_for_function("window.diaRestored === true")
    chip.wait_for()
    page.get_by_text(re.compile(r"\b36 of [\d,]+ bytes")).wait_for()
    unfold(page, "Voice prompt")
    words_field = page.get_by_label("Text of the voice prompt")
    assert words_field.input_value() == "[S2] These are its words."
    page.get_by_role("button", name="Remove the voice prompt").click()
    chip.wait_for(state="detached")
    assert words_field.input_value() == ""
    page.get_by_text(re.compile(r"\b13 of [\d,]+ bytes")).wait_for()


def test_words_of_a_lost_voice_prompt_are_gone_too(open_window, memo):
    page = open_window().open()
    address = add_prompt(page, memo)
    page.get_by_label("Text of the voice prompt").fill("[S2] These are its words.")
    script_of(page).fill("[S1] Hi. [S2] Ho. [S1]")
    page.get_by_text(re.compile(r"\b36 of [\d,]+ bytes")).wait_for()
    Path(address.partition("/file=")[2]).unlink()
    page.reload()
    page.get_by_text("The voice prompt is no longer on the server").wait_for()
    page.get_by_text(re.compile(r"\b13 of [\d,]+ bytes")).wait_for()


def test_words_without_a_voice_prompt_are_said_to_be_unused(open_window):
    page = open_window().open()
    write_script(page, "[S1] Hi. [S2] Ho. [S1]")
    unfold(page, "Voice prompt")
    page.get_by_label("Text of the voice prompt").fill("[S2] Words.")
    page.locator("#report .finding").get_by_text(
        "The text of the voice prompt is not used"
    ).wait_for()
    page.get_by_text(re.compile(r"\b13 of [\d,]+ bytes")).wait_for()


def test_a_recording_that_nothing_here_decodes_is_refused(open_window, tmp_path):
    """As by programs and the command line, also where this browser can play it."""
    page, name, kind = open_window().open(), "memo.m4a", "audio/mp4"
    if not page.evaluate("(kind) => MediaRecorder.isTypeSupported(kind)", kind):
        pytest.skip(f"this chromium does not record {kind}")
    path = tmp_path / name
    path.write_bytes(base64.b64decode(page.evaluate(RECORD, kind)))
    add_prompt(page, path)
    page.get_by_text(f"{name} cannot be read as audio: use one of WAV, FLAC, MP3, Opus.").wait_for()
    page.get_by_text("have to be converted first").wait_for()


def test_a_tone_is_refused_before_generate_and_a_take_lends_its_voice(open_window, tmp_path):
    page = open_window().open()
    write_script(page, WORDS, max_tokens=400)
    press(page, "Generate")
    wait_state(page, "done")
    path = tmp_path / "tone.wav"
    soundfile.write(path, 0.3 * np.sin(np.arange(4 * 16000) / 6), 16000)
    add_prompt(page, path)
    page.get_by_text("is not speech, but a tone").wait_for()
    press(page, "Use this voice")
    page.get_by_text("is not speech, but a tone").wait_for(state="detached")
    words = page.get_by_label("Text of the voice prompt")
    sync_api.expect(words).to_have_value(WORDS)
