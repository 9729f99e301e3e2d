"""The page in a real chromium, over the real app and the embedded voice, as a person uses it.

DIA_SCREENSHOTS=1 writes the pictures of README.md to assets/screenshots/ as well.
"""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from dia_demo import audio
from dia_demo.files import ROOT
from tests.helpers.long import long_after
from tests.helpers.page.browser import (
    DESKTOP,
    PHONE,
    figure,
    make_take,
    press,
    press_twice,
    running_app,
    script_of,
    tab_to,
    unfold,
    wait_state,
    write_script,
)
from tests.helpers.voices import write_voice

sync_api = pytest.importorskip("playwright.sync_api")

SHORT = "[S1] Hello there. How are you? [S2] I am fine, thank you. [S1]"
LONG = " ".join(
    f"[S{1 + i % 2}] We walk along the river and talk of the weather." for i in range(9)
)
LONGEST = 1536  # Tokens, for which LONG is just short enough to be one take.
OVER = ("done", "cut")


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """The app with a decoder that takes its time, for takes that are stopped, one at a time."""
    folder = tmp_path_factory.mktemp("patient")
    app = "tests.browser.apps.patient_app"
    with running_app(folder, module=app, DIA_AT_ONCE="1") as url:
        yield url


def read_sound(data: bytes) -> tuple[np.ndarray, int]:
    samples, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    assert np.isfinite(samples).all() and len(samples)
    return samples, rate


@contextmanager
def playing(page):
    """Yields a function for after the block: the samples and rate of what the player fetched."""

    def is_take(response) -> bool:
        return "/file=" in response.url and response.url.endswith(".wav")

    with page.expect_response(is_take) as waiting:
        yield lambda: read_sound(page.request.get(waiting.value.url).body())


def download(page, name: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        press(page, name)
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


@pytest.mark.parametrize("size", long_after(1, [DESKTOP, PHONE]), ids=["desktop", "phone"])
@pytest.mark.processor
def test_generate_gives_a_take(open_window, size, tmp_path):
    page = open_window(size).open()
    write_script(page, SHORT, max_tokens=200)
    with playing(page) as sound:
        press(page, "Generate")
        assert re.search(r"[\d.]+ s of audio.* [\d.]+x realtime", wait_progress(page))
        assert page.get_by_role("progressbar").get_attribute("aria-valuemax") == "100"
        wait_state(page, *OVER)
    samples, rate = sound()
    page.locator("#take").get_by_label("Play", exact=True).wait_for()
    shown = float(figure(page, "Audio").split()[0])
    assert rate == 16000 and len(samples) / rate == pytest.approx(shown, abs=0.06)
    assert np.abs(samples).max() > 0.005

    for name in audio.FORMAT_NAMES:
        page.locator("#take-actions .audio-format").select_option(name)
        path = download(page, "Download take", tmp_path)
        kept, kept_rate = soundfile.read(path, dtype="float32")
        assert path.suffix == f".{name}" and kept_rate == rate
        assert np.array_equal(kept, samples) or name in ("mp3", "opus")
        inside = audio.read_metadata(path)
        assert inside["script"] == SHORT and inside["settings"]["max_tokens"] == 200
        assert str(inside["settings"]["seed"]) == figure(page, "Seed")
        assert inside["figures"]["model"] == "nano"
    assert page.get_by_alt_text("Spectrogram of the take").is_visible()


def wait_progress(page, seconds: float = 0) -> str:
    """The first status line with figures in it, of a take that long or longer."""
    page.wait_for_function(
        """seconds => {
            const line = document.querySelector("#status .status-line").textContent;
            return parseFloat(line.match(/([\\d.]+) s of audio/)?.[1]) >= seconds;
        }""",
        arg=seconds,
    )
    return page.locator("#status .status-line").inner_text()


@pytest.mark.long
def test_a_press_counts_from_the_moment_the_button_is_back(shared_page):
    page = shared_page
    write_script(page, SHORT, max_tokens=60)
    press_twice(page, "Generate", "#generate")
    wait_state(page, *OVER)


@pytest.mark.long
def test_stop_keeps_the_sound_made_so_far(open_window, patient):
    page = open_window(at=patient).open()
    write_script(page, LONG, LONGEST)
    with playing(page) as sound:
        press(page, "Generate")
        wait_progress(page, seconds=2)
        press(page, "Stop")
    assert re.search(r"Stopped [\d.]+ s of audio kept", wait_state(page, "stopped"))
    assert figure(page, "Ended") == "stopped"
    samples, rate = sound()
    assert 0 < len(samples) / rate < 30

    write_script(page, SHORT, max_tokens=60)
    press(page, "Generate")
    wait_state(page, *OVER)


@pytest.mark.long
def test_the_page_is_quiet_when_nothing_happens(open_window, tmp_path):
    """No two events postpone each other for ever, which gradio does not prevent."""
    page = open_window().open()
    write_script(page, SHORT, max_tokens=60)
    press(page, "Generate")
    wait_state(page, *OVER)
    write_voice(tmp_path / "voice.wav")
    unfold(page, "Voice prompt")
    page.locator("#voice-prompt input[type=file]").set_input_files(tmp_path / "voice.wav")
    page.locator("#voice-prompt").get_by_label("Clear").wait_for()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for is_reloaded in (False, True):
        if is_reloaded:
            page.reload()
            page.wait_for_function("window.diaRestored === true")
        # A loaded machine answers late; handlers that call each other never become quiet.
        for _ in range(15):
            asked.clear()
            page.wait_for_timeout(1000)
            if not asked:
                break
        assert asked == []


@pytest.mark.long
def test_a_refusal_keeps_the_take_on_show(open_window, tmp_path):
    watch = open_window()
    page = watch.open()
    write_script(page, SHORT, max_tokens=60)
    press(page, "Generate")
    wait_state(page, *OVER)
    seed = figure(page, "Seed")

    write_script(page, "")
    press(page, "Generate")
    wait_refusal(page, "script is empty")

    script_of(page).fill("[S1] Hello. (pause 99) [S2] Hi.")
    press(page, "Generate")
    wait_refusal(page, "pause.* 30")

    garbage = tmp_path / "voice.wav"
    garbage.write_bytes(b"this is no sound at all" * 100)
    write_script(page, SHORT)
    unfold(page, "Voice prompt")
    page.locator("#voice-prompt input[type=file]").set_input_files(garbage)
    page.locator("#voice-prompt").get_by_label("Clear").wait_for()
    press(page, "Generate")
    wait_refusal(page, "voice prompt")

    assert figure(page, "Seed") == seed
    page.locator("#take").get_by_label("Play", exact=True).wait_for()
    assert page.locator(".player-label").inner_text() == "Earlier take"
    page.locator("#voice-prompt").get_by_label("Clear").click()
    press(page, "Generate")
    wait_state(page, *OVER)
    # The browser itself remarks that it cannot draw the waveform of what is no sound.
    watch.errors[:] = [error for error in watch.errors if "Waveform" not in error]


def wait_refusal(page, words: str) -> None:
    """Wait until the status is a failure that says why."""
    failure = page.locator('#status [data-state="failed"]')
    failure.filter(has_text=re.compile(words, re.IGNORECASE)).wait_for()
    page.locator(".player", has_text=re.compile("Earlier take|No sound was generated")).wait_for()


@pytest.mark.long
def test_cut_by_max_tokens_is_said_loudly(shared_page):
    page = shared_page
    write_script(page, SHORT, max_tokens=40)
    assert "Cut off at Max tokens" in make_take(page)
    assert figure(page, "Ended") == "cut off at Max tokens"


@pytest.mark.long
def test_a_reload_keeps_the_form(open_window):
    page = open_window().open()
    write_script(page, SHORT, max_tokens=333)
    temperature = page.get_by_label("number input for Temperature")
    temperature.fill("0.7")
    temperature.press("Tab")
    page.wait_for_function("() => Object.keys(localStorage).some((key) => key.startsWith('dia'))")
    page.reload()
    page.wait_for_function("window.diaRestored === true")
    page.get_by_text("333 tokens ≈").wait_for()
    assert script_of(page).input_value() == SHORT
    assert page.get_by_label("number input for Temperature").input_value() == "0.7"
    assert page.get_by_label("number input for Max tokens").input_value() == "333"


@pytest.mark.long
def test_a_kept_seed_gives_the_take_again(shared_page):
    page = shared_page
    unfold(page, "More")
    seed = page.get_by_label("Seed", exact=True)
    seed.fill("7")
    press(page, "Reset to the model's defaults")
    sync_api.expect(seed).to_have_value("")  # The answer: later, it would reset what is written.
    write_script(page, SHORT, max_tokens=60)
    heard = []
    for _ in range(2):
        with playing(page) as sound:
            make_take(page)
        heard.append(sound()[0])
        press(page, "Keep this seed")
        sync_api.expect(seed).to_have_value(figure(page, "Seed"))
    assert np.array_equal(*heard)


@pytest.mark.long
def test_a_model_brings_its_own_defaults(shared_page):
    page = shared_page
    page.get_by_label("Model").click()
    page.get_by_role("option", name="Dia-1.6B").click()
    page.get_by_text("3,072 tokens ≈ 35 s").wait_for()
    assert page.get_by_label("number input for Temperature").input_value() == "1.8"
    assert page.get_by_label("range slider for Max tokens").get_attribute("max") == "3072"
    write_script(page, SHORT, max_tokens=1720)
    unfold(page, "More")
    speed = page.get_by_label("number input for Speed")
    speed.fill("0.5")
    page.get_by_label("Seed", exact=True).fill("7")
    press(page, "Reset to the model's defaults")
    page.get_by_text("3,072 tokens ≈ 35 s").wait_for()
    sync_api.expect(speed).to_have_value("1")
    sync_api.expect(page.get_by_label("Seed", exact=True)).to_have_value("")
    press(page, "Back to Nano")
    page.get_by_role("button", name="Use Dia-1.6B").wait_for()


@pytest.mark.long
def test_stop_lets_the_next_tab_in_the_queue_run(open_window, patient):
    first, second = open_window(at=patient).open(), open_window(at=patient).open()
    for page in (first, second):
        write_script(page, LONG, LONGEST)
    press(first, "Generate")
    wait_state(first, "loading", "running")
    press(second, "Generate")
    assert "Place 1 in the queue" in wait_state(second, "waiting")
    press(first, "Stop")
    wait_state(first, "stopped")
    wait_state(second, "running")
    press(second, "Stop")
    wait_state(second, "stopped")


@pytest.mark.long
def test_keyboard_alone_is_enough(open_window, patient):
    page = open_window(at=patient).open()
    write_script(page, SHORT, max_tokens=300)
    tab_to(page, "#script textarea")
    page.keyboard.press("Control+Enter")
    wait_state(page, "running", *OVER)
    wait_state(page, "stopped", *OVER)
    write_script(page, LONG, LONGEST)
    tab_to(page, "#generate")
    page.keyboard.press("Enter")
    page.wait_for_function("!document.querySelector('#stop').disabled")
    tab_to(page, "#stop")
    page.keyboard.press("Enter")
    wait_state(page, "stopped", *OVER)


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(open_window, scheme):
    page = open_window(scheme=scheme).open()
    write_script(page, SHORT, max_tokens=60)
    press(page, "Generate")
    wait_state(page, *OVER)
    page.locator("#take").get_by_label("Play", exact=True).wait_for()
    for name in ("More", "Voice prompt"):
        page.get_by_role("button", name=name).click()
    write_script(page, "[S1] Hello [S2] Hi. (lauhgs) [S2] What? [S3]")
    faint = page.evaluate((ROOT / "tests" / "browser" / "contrast.js").read_text())
    assert faint == []


@pytest.mark.long
@pytest.mark.skipif("not os.environ.get('DIA_SCREENSHOTS')", reason="DIA_SCREENSHOTS is not set")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_screenshots(open_window, size, scheme):
    page = open_window(size, scheme).open()
    press(page, "Generate")
    wait_state(page, *OVER)
    page.locator("#take").get_by_label("Play", exact=True).wait_for()
    page.get_by_alt_text("Spectrogram of the take").wait_for()
    folder = ROOT / "assets" / "screenshots"
    folder.mkdir(exist_ok=True)
    name = "phone" if size == PHONE else "desktop"
    picture = folder / f"{name}-{scheme}.png"
    seen = page.screenshot(full_page=True, animations="disabled")
    Image.open(io.BytesIO(seen)).convert("RGB").quantize(256).save(picture, optimize=True)
    assert picture.stat().st_size < 300_000
