"""The script on a phone, in a real chromium: a dialogue that is pasted is spoken by two people."""

from __future__ import annotations

import io
from difflib import SequenceMatcher

import numpy as np
import pytest
import soundfile

from dia_demo.checkpoint_config import read_model_config
from dia_demo.services.measurements.words import SAMPLE_RATE, Recogniser, words
from tests.helpers.models.known import EMBEDDED_FOLDER
from tests.helpers.page.browser import PHONE, Watch, script_of, wait_state

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

# As it is pasted from a chat on a phone: two people on one line.
PASTED = "John: I’m sure you’ll like it — it’s $3.50. Mary: Don’t be late!"
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
# The same take every time on one class of processor, and understood on all. Its two voices are ten
# semitones apart.
SEED = 18


@pytest.fixture
def phone(chromium, home):
    """A page on a phone with a touch screen."""
    context = chromium.new_context(
        viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2
    )
    yield Watch(context, home).open()
    context.close()


def test_a_pasted_dialogue_is_spoken_by_two_people_after_two_presses(phone):
    phone.get_by_role("button", name="More").tap()
    phone.get_by_label("Seed", exact=True).fill(str(SEED))
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
    in_order = SequenceMatcher(None, heard, spoken, autojunk=False).get_matching_blocks()
    assert sum(block.size for block in in_order) >= len(spoken) - 2, heard
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


def voiced_high(samples: np.ndarray, border: float) -> np.ndarray:
    """Of each 10 ms: 1 where a voice above `border` (Hz) speaks, -1 where one below does, 0
    elsewhere. By autocorrelation of 50 ms."""
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
    return np.where(voiced, np.where(pitch > border, 1, -1), 0)


def assert_two_voices(samples: np.ndarray) -> None:
    """First the seed's voice of S1 speaks and then that of S2, both clearly."""
    first, second = read_model_config(EMBEDDED_FOLDER).voices.draw(SEED)
    border = 100 * 2 ** ((first.semitones + second.semitones) / 24)
    is_first = voiced_high(samples, border) * (1 if first.semitones > second.semitones else -1)
    before, after = is_first.cumsum(), (-is_first)[::-1].cumsum()[::-1]
    frame = int((before[:-1] + after[1:]).argmax()) + 1
    for part, sign in ((is_first[:frame], 1), (is_first[frame:], -1)):
        spoken = part[part != 0]
        assert len(spoken) > 30 and (spoken == sign).mean() > 0.8, "each turn has its own voice"
