"""The Compare tab and the earlier takes in a real chromium: by keyboard, in private, and blind.

Most comparisons are made here by the services with a tiny model and opened as zips, which is
quick; one is made on the page with the embedded voice. DIA_SCREENSHOTS=1 writes the pictures.
"""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
import soundfile

from dia_demo.files import ROOT
from dia_demo.services.listening import archive
from dia_demo.services.listening.comparison import Comparison
from tests.helpers.models.checkpoints import NANO_DEFAULTS
from tests.helpers.page.browser import (
    DESKTOP,
    PHONE,
    open_tab,
    press,
    script_of,
    unfold,
    wait_state,
    write_script,
)
from tests.helpers.page.lab_page import (
    WAIT,
    compare_tab,
    fill,
    fill_in,
    hear,
    open_more,
    open_zip,
    vote,
    wait_until_ready,
    zip_comparison,
)

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_pair_is_judged_by_keyboard_alone(open_window, finished_pairs, tmp_path, size):
    page = compare_tab(open_window(size))
    open_zip(page, zip_comparison(finished_pairs, tmp_path))
    for number in (1, 2):
        page.get_by_text(f"Pair {number} of 2").wait_for()
        wait_until_ready(page)
        vote(page, "A")
        assert page.locator(".lab-vote").first.is_disabled(), "no vote before both were heard"
        hear(page, "A")
        assert page.locator(".lab-vote").first.is_disabled()
        hear(page, "B")
        if number == 1:
            note = page.locator(".lab-note")
            note.fill("")
            note.press_sequentially("ab 1 20")
            assert note.input_value() == "ab 1 20" and page.get_by_text("Pair 1 of 2").is_visible()
            note.blur()
        vote(page, "A" if number == 1 else "none")
    page.locator('.lab-room[data-state="open"]').wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    result = page.locator(".lab-result").text_content()
    assert "In 1 more pair no difference was heard" in result and "“ab 1 20”" in result
    assert "temperature 0.7131" in result and "temperature 1.9177" in result
    with page.expect_download() as waiting:
        page.locator("#lab-zip").click()
    waiting.value.save_as(tmp_path / "out.zip")
    plan = archive.import_zip(tmp_path / "out.zip", tmp_path / "back")
    back = Comparison.open(tmp_path / "back")
    assert plan.id == finished_pairs.plan.id and len(back.votes) == 2
    assert all(vote.seconds_a > 0 and vote.seconds_b > 0 for vote in back.votes.values())


def test_the_folder_is_not_served(open_window, home, tmp_path_factory, finished_pairs, tmp_path):
    """Even who knows where a plan lies on the server's disk gets nothing."""
    page = compare_tab(open_window(DESKTOP))
    open_zip(page, zip_comparison(finished_pairs, tmp_path))
    clip = f"clips/{finished_pairs.plan.trials[0].clips[0]}"
    kept = sorted(tmp_path_factory.getbasetemp().glob(f"app*/kept/*/comparisons/*/{clip}"))
    assert kept, "the app keeps its comparisons where the test told it to"
    for path in (kept[-1], kept[-1].parents[1] / "plan.json"):
        assert path.exists()
        assert page.request.get(f"{home}/gradio_api/file={path}").status in (403, 404)


@pytest.mark.parametrize(
    "name, data",
    [
        ("no zip", b"hello"),
        ("empty", b"PK\x05\x06" + bytes(18)),
    ],
)
def test_a_bad_zip_gets_one_message(open_window, tmp_path, name, data):
    page = compare_tab(open_window(DESKTOP))
    (tmp_path / "bad.zip").write_bytes(data)
    page.locator("input[type=file][accept*='.zip']").set_input_files(tmp_path / "bad.zip")
    page.get_by_text(
        re.compile("This is not a readable zip|The zip contains no plan")
    ).first.wait_for()
    assert page.locator('.lab-room[data-state="empty"]').is_visible()


def test_a_comparison_is_made_on_the_page(open_window):
    page = compare_tab(open_window(PHONE, "dark"))
    own = NANO_DEFAULTS.temperature
    fill(page, "second", own)
    page.locator("#lab-plan", has_text="Both sides are identical").wait_for()
    fill_in(page, "[S1] Hello there. How are you? [S2] Fine.", max_tokens=80, seeds=1)
    page.get_by_text("1 pair of 1 script can show nothing").wait_for()
    page.get_by_label("Side by side, not blind").check()
    page.get_by_text("it proves nothing").wait_for()
    press(page, "Generate pairs")
    page.locator('.lab-room[data-state="open"]').wait_for()
    page.locator(".picture img").nth(1).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    shown = page.locator(".lab-result").inner_text()
    for word in ("Words per minute", "Loudness before matching", "temperature 0.9"):
        assert word in shown
    assert "Realtime" not in shown, "in a batch it says nothing of a single take"
    page.get_by_role("button", name=f"Play temperature {own}").click()
    page.get_by_role("button", name="Stop", exact=True).first.wait_for()


def test_earlier_takes_come_back(open_window, tmp_path):
    page = open_window(DESKTOP).open()
    page.set_default_timeout(WAIT)
    write_script(page, "[S1] Hello there. [S2] Hi. [S1]", max_tokens=80)
    press(page, "Generate")
    wait_state(page, "done", "cut")
    unfold(page, "Earlier takes")
    page.get_by_role("button", name="Use these settings").wait_for()
    with page.expect_download() as waiting:
        press(page, "Download take")
    waiting.value.save_as(tmp_path / "take.wav")
    script = script_of(page)
    script.fill("[S1] Something else. [S2]")
    page.get_by_role("button", name="Use these settings").click()
    has = "(words) => document.querySelector('#script textarea').value.includes(words)"
    page.wait_for_function(has, arg="Hello there.")
    script.fill("[S1] Something else. [S2]")
    page.locator("#dropped input[type=file]").set_input_files(tmp_path / "take.wav")
    page.wait_for_function(has, arg="Hello there.")
    page.get_by_role("button", name="Compare with this").click()
    page.get_by_role("button", name="Generate pairs").wait_for()
    open_more(page)
    assert page.get_by_label("What both sides say").input_value().startswith("[S1] Hello there.")
    assert page.locator("#lab-a-max-tokens input").input_value() == "80"
    open_tab(page, "Generate")
    page.locator(".earlier-buttons").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Really delete?").click()
    page.get_by_text("Your takes are listed here.").wait_for()


# What every player of the page was given to play: {samples, rate} of its file, decoded.
NOTE_PLAYED = """() => {
  window.played = [];
  const play = HTMLMediaElement.prototype.play;
  HTMLMediaElement.prototype.play = async function () {
    const bytes = await (await fetch(this.src)).arrayBuffer();
    const rate = new DataView(bytes).getUint32(24, true);
    const sound = await new OfflineAudioContext(1, 1, rate).decodeAudioData(bytes);
    window.played.push(Array.from(sound.getChannelData(0)));
    this.addEventListener("timeupdate", () => { window.heardTo = this.currentTime; });
    return play.call(this);
  };
}"""


def test_hear_plays_the_take_that_was_chosen(open_window, tmp_path):
    """Not the one in the player: the earlier one, sample for sample."""
    page = open_window(DESKTOP).open()
    page.set_default_timeout(WAIT)
    unfold(page, "Earlier takes")
    takes = {}
    for words, tokens in (("Hello there.", 60), ("Something else.", 120)):
        write_script(page, f"[S1] {words} [S2] Hi. [S1]", max_tokens=tokens)
        press(page, "Generate")
        page.locator("#earlier li", has_text=words).wait_for()
        with page.expect_download() as waiting:
            press(page, "Download take")
        waiting.value.save_as(tmp_path / "take.wav")
        takes[words], _ = soundfile.read(tmp_path / "take.wav", dtype="float32")
    lengths = [len(samples) for samples in takes.values()]
    assert lengths[0] != lengths[1], lengths
    page.evaluate(NOTE_PLAYED)
    for number, (words, samples) in enumerate(takes.items(), start=1):
        row = page.locator("#earlier li", has_text=words)
        row.get_by_role("button", name="Play").click()
        page.wait_for_function("(count) => window.played.length === count", arg=number)
        played = np.array(page.evaluate("window.played.at(-1)"), np.float32)
        assert len(played) == len(samples) and np.abs(played - samples).max() < 1e-4
    page.wait_for_function("window.heardTo > 0")
    page.wait_for_function("!document.querySelector('#earlier').innerText.includes('Stop')")


@pytest.mark.skipif(not os.environ.get("DIA_SCREENSHOTS"), reason="pictures on request")
@pytest.mark.parametrize(
    "name, size, scheme",
    [("compare-light", DESKTOP, "light"), ("compare-phone-dark", PHONE, "dark")],
)
def test_screenshots(open_window, finished_pairs, tmp_path, name, size, scheme):
    page = compare_tab(open_window(size, scheme))
    open_zip(page, zip_comparison(finished_pairs, tmp_path))
    hear(page, "A")
    page.locator(".card:has(#lab)").screenshot(path=ROOT / "assets" / "screenshots" / f"{name}.png")
