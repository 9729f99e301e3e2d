"""The script on the page, in a real chromium: as a person types, pastes, repairs and undoes it."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from dia_demo.services.bench.words import SAMPLE_RATE, Recogniser, words
from tests.helpers.browser import PHONE, Watch, choose, press, wait_state, write_script

sync_api = pytest.importorskip("playwright.sync_api")

CURLY = "[S1] I’m sure you’ll like it — “really”… [S2] Don’t be late, please, my friend."
PLAIN = "[S1] I'm sure you'll like it, \"really\"... [S2] Don't be late, please, my friend."
# As it is pasted from a chat on a phone: two people on one line.
PASTED = "John: I’m sure you’ll like it — it’s $3.50. Mary: Don’t be late!"
OVER = ("done", "cut")


def script_of(page):
    return page.get_by_label("Script", exact=True)


def test_the_page_shows_the_script_as_the_model_reads_it(open_window):
    page = open_window().open()
    script = script_of(page)
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
    script = script_of(page)
    sync_api.expect(script).to_have_value(f"{text} [S1]")


def test_fix_all_makes_every_repair(open_window):
    page = open_window().open()
    write_script(page, "[S1] Hello (giggles). [S2] Hi (coughing), how are you?")
    press(page, "Fix all (3)")
    script = script_of(page)
    sync_api.expect(script).to_have_value(
        "[S1] Hello (laughs). [S2] Hi (coughs), how are you? [S1]"
    )
    page.get_by_text("Fix all").wait_for(state="detached")


# Undo


def test_an_example_is_undone_by_ctrl_z(open_window):
    page = open_window().open()
    script = script_of(page)
    write_script(page, "")
    script.type("[S1] What I typed myself. [S2]")
    press(page, "Short")
    sync_api.expect(script).to_have_value(re.compile("Hello there"))
    page.keyboard.press("Control+z")
    sync_api.expect(script).to_have_value("[S1] What I typed myself. [S2]")


def test_a_repair_is_undone_by_ctrl_z(open_window):
    page = open_window().open()
    script = script_of(page)
    for button in ("Write (laughs)", "Fix all (2)"):
        text = "[S1] Hello (giggles). [S2] Hi."
        write_script(page, text)
        press(page, button)
        sync_api.expect(script).not_to_have_value(text)
        page.keyboard.press("Control+z")
        sync_api.expect(script).to_have_value(text)


def test_undo_beside_the_counts_takes_back_step_by_step(open_window):
    page = open_window().open()
    script, undo = script_of(page), page.get_by_role("button", name="Undo", exact=True)
    assert not undo.is_visible(), "there is nothing to take back"
    typed = "[S1] Hello (giggles). [S2] Hi."
    write_script(page, typed)
    press(page, "Short")
    undo.wait_for()
    press(page, "Question and answer")
    undo.click()
    sync_api.expect(script).to_have_value(re.compile("Hello there"))
    undo.click()
    sync_api.expect(script).to_have_value(typed)
    undo.wait_for(state="hidden")


def test_typing_after_a_repair_ends_its_undo(open_window):
    """The button would take away what was typed."""
    page = open_window().open()
    write_script(page, "[S1] Hello. [S2] Hi.")
    press(page, "Add [S1] at the end")
    undo = page.get_by_role("button", name="Undo", exact=True)
    undo.wait_for()
    script_of(page).press("End")
    script_of(page).type(" More.")
    undo.wait_for(state="hidden")


# The choice to normalise


def test_the_choice_to_normalise_is_remembered(open_window):
    watch = open_window()
    page = watch.open()
    box = page.get_by_label("Write out numbers and symbols as words")
    assert box.count() == 0, "the nano voice always does it"
    choose(page, "Model", "Dia-1.6B")
    box.wait_for()
    assert not box.is_checked(), "Dia reads what is written unless a person agrees"
    script = "[S1] It is $3.50 — now. [S2]"
    script_of(page).fill(script)
    page.get_by_role("button", name="Write them out").wait_for()
    box.check()
    read = page.locator("#report .read-as")
    read.get_by_text("[S1] It is three dollars and fifty cents, now. [S2]").wait_for()
    assert script_of(page).input_value() == script
    page.wait_for_function("window.diaRestored === true")
    page.reload()
    page.wait_for_function("window.diaRestored === true")
    read.get_by_text("three dollars").wait_for()
    assert box.is_checked()
    choose(page, "Model", "Nano")
    box.wait_for(state="detached")


# Chips at Generate


@pytest.mark.parametrize("size", [None, PHONE], ids=["desktop", "phone"])
def test_a_kept_seed_is_shown_at_generate(open_window, size):
    page = open_window(**({} if size is None else {"size": size})).open()
    assert page.locator(".chip").count() == 0
    write_script(page, "[S1] Hi.", max_tokens=40)
    press(page, "Generate")
    wait_state(page, *OVER)
    press(page, "Keep this seed")
    chip = page.locator(".chip").filter(has_text=re.compile(r"Seed \d+ kept"))
    chip.wait_for()
    assert chip.bounding_box()["height"] >= 24
    page.get_by_role("button", name="Use a random seed again").click()
    chip.wait_for(state="detached")
    page.get_by_role("button", name="More").click()
    assert page.get_by_label("Seed", exact=True).input_value() == ""


# Voice prompts


@pytest.fixture
def memo(tmp_path):
    """A voice prompt of a second."""
    path = tmp_path / "memo.wav"
    soundfile.write(path, 0.2 * np.sin(np.arange(16000) / 12).astype(np.float32), 16000)
    return path


def open_fold(page) -> None:
    page.locator("#voice button.label-wrap").click()


def add_prompt(page, path) -> str:
    """Add a voice prompt; the address that its player fetches."""
    open_fold(page)
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
    open_fold(page)
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
    open_fold(page)
    page.get_by_label("Text of the voice prompt").fill("[S2] Words.")
    page.get_by_text("The text of the voice prompt is not used").wait_for()
    page.get_by_text(re.compile(r"\b13 of [\d,]+ bytes")).wait_for()


@pytest.mark.parametrize("name", ["memo.m4a", "memo.webm"])
def test_a_recording_of_a_phone_is_decoded_in_the_browser(open_window, tmp_path, name):
    """What the server cannot read becomes a WAV before it is uploaded."""
    page = open_window().open()
    kind = {"memo.m4a": "audio/mp4", "memo.webm": "audio/webm"}[name]
    if not page.evaluate("(kind) => MediaRecorder.isTypeSupported(kind)", kind):
        pytest.skip(f"this chromium does not record {kind}")
    path = tmp_path / name
    path.write_bytes(base64.b64decode(page.evaluate(RECORD, kind)))
    with pytest.raises(soundfile.LibsndfileError):
        soundfile.info(path)
    address = add_prompt(page, path)
    samples, rate = soundfile.read(io.BytesIO(page.request.get(address).body()))
    power = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    assert address.endswith("memo.wav")
    assert abs(power.argmax() * rate / len(samples) - 440) < 5


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


def test_a_file_that_is_no_sound_is_refused_before_generate(open_window, tmp_path):
    page = open_window().open()
    path = tmp_path / "notes.m4a"
    path.write_bytes(b"these are no sounds" * 100)
    open_fold(page)
    page.locator("#voice-prompt input[type=file]").set_input_files(path)
    page.get_by_text("“notes.m4a” cannot be read as audio: use WAV, FLAC, OGG or MP3.").wait_for()
    assert page.locator(".chip").count() == 0


# What must hold: a phone, a pasted script, two presses, two voices


@pytest.fixture
def phone(chromium, home):
    """A page on a phone with a touch screen."""
    context = chromium.new_context(
        viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2
    )
    yield Watch(context, home).open()
    context.close()


def test_a_pasted_dialogue_is_spoken_by_two_people_after_two_presses(phone):
    # The same take every time.
    phone.get_by_role("button", name="More").tap()
    phone.get_by_label("Seed", exact=True).fill("7")
    script = script_of(phone)
    script.tap()
    script.press("Control+a")
    phone.evaluate(PASTE, PASTED)
    sync_api.expect(script).to_have_value(PASTED)
    read = "[S1] I'm sure you'll like it, it's three dollars and fifty cents. [S2] Don't be late!"
    phone.locator("#report .read-as").get_by_text(read).wait_for()
    phone.get_by_role("button", name="Generate").tap()
    with phone.expect_response(lambda answer: answer.url.endswith(".wav")) as waiting:
        wait_state(phone, "done")
    samples, rate = soundfile.read(io.BytesIO(waiting.value.body()), dtype="float32")
    assert rate == SAMPLE_RATE
    heard = words(Recogniser().hear(samples))
    spoken = "sure you'll like it three dollars and fifty cents don't be late".split()
    assert [word for word in heard if word in spoken] == spoken, heard
    assert not {"john", "mary"} & set(heard), "names are not read"
    assert_two_voices(samples)


def test_undo_on_a_phone_leaves_its_keyboard_closed(phone):
    script = script_of(phone)
    before = script.input_value()
    phone.get_by_role("button", name="Short", exact=True).tap()
    sync_api.expect(script).not_to_have_value(before)
    phone.get_by_role("button", name="Undo", exact=True).tap()
    sync_api.expect(script).to_have_value(before)
    assert phone.evaluate("document.activeElement.tagName") != "TEXTAREA"


PASTE = """(text) => {
  const area = document.activeElement;
  const data = new DataTransfer();
  data.setData("text/plain", text);
  if (area.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true,
                                                      cancelable: true }))) {
    document.execCommand("insertText", false, text);
  }
}"""


HOP = SAMPLE_RATE // 100


def voiced_high(samples: np.ndarray) -> np.ndarray:
    """Of each 10 ms: 1 where a voice above 165 Hz speaks ([S1] has 208 Hz), -1 where one below
    does ([S2] has 125 Hz), 0 elsewhere. By autocorrelation of 50 ms."""
    size = 5 * HOP
    frames = np.lib.stride_tricks.sliding_window_view(samples, size)[::HOP]
    frames = frames - frames.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(frames, 2 * size)) ** 2
    correlation = np.fft.irfft(power)[:, :size]
    lags = np.arange(SAMPLE_RATE // 300, SAMPLE_RATE // 80)
    peaks = correlation[:, lags]
    loud = correlation[:, 0] > 0.02 * correlation[:, 0].max()
    voiced = loud & (peaks.max(axis=1) > 0.5 * correlation[:, 0])
    pitch = SAMPLE_RATE / lags[peaks.argmax(axis=1)]
    return np.where(voiced, np.where(pitch > 165, 1, -1), 0)


def assert_two_voices(samples: np.ndarray) -> None:
    """First the high voice speaks and then the low one, both clearly."""
    high = voiced_high(samples)
    before, after = high.cumsum(), (-high)[::-1].cumsum()[::-1]
    frame = int((before[:-1] + after[1:]).argmax()) + 1
    for part, sign in ((high[:frame], 1), (high[frame:], -1)):
        spoken = part[part != 0]
        assert len(spoken) > 30 and (spoken == sign).mean() > 0.8, "each turn has its own voice"
