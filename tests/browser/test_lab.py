"""The listening lab in a real chromium: from the first field to the result, stopped and resumed."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request
from tests.helpers.page.browser import (
    DESKTOP,
    PHONE,
    Watch,
    open_tab,
    press,
    press_twice,
    running_app,
    unfold,
)
from tests.helpers.page.lab_page import (
    compare_tab,
    fill_in,
    make_pairs,
    open_zip,
    wait_until_ready,
    zip_comparison,
)
from tools.app_process import free_port

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

# So much that the voice, twenty times faster than speech, is still at it when Stop is pressed.
PAIRS = 12
# For some of them, on a slow machine beside other tests.
MAKING = 300_000
LONG = " ".join(["[S1] We walked along the river and talked of the weather until it was dark."] * 3)
SHORT = "[S1] Hello there. How are you? [S2] Fine."


def plans(home_folder) -> list[dict]:
    """plan.json of everything the app has kept, the latest last."""
    paths = sorted(
        home_folder.glob("kept/*/comparisons/*/plan.json"),
        key=lambda path: json.loads(path.read_text())["created"],
    )
    return [json.loads(path.read_text()) | {"folder": path.parent} for path in paths]


@pytest.mark.parametrize("alike", [True, False], ids=["the same codes", "other codes"])
def test_switching_keeps_the_place_where_the_listener_wants_it(open_window, tmp_path, alike):
    """Greedy takes do not depend on top-k: both sides then say the same, code for code. Before the
    vote nothing tells: the room looks and works alike for both."""
    sides = ({"top_k": 20}, {"top_k": 30})
    temperature = 0.0 if alike else 1.5
    pairs = make_pairs(
        tmp_path, sides=sides, seeds=(1,), temperature=temperature, max_tokens=300, cfg_scale=0.0
    )
    assert pairs.is_aligned(pairs.plan.trials[0]) == alike
    page, answers = compare_tab(open_window(DESKTOP)), []
    page.on("requestfinished", lambda request: note_answer(answers, request))
    open_zip(page, zip_comparison(pairs, tmp_path / "zip"))
    told = json.dumps(answers) + page.locator(".lab-room").inner_text()
    assert "aligned" not in told and "keep step" not in told
    last, first = switch_from_a_to_b(page)
    assert first < 5 < last, "the clip restarts"
    page.get_by_label("Keep the position when switching clips").check()
    last, first = switch_from_a_to_b(page)
    assert first >= last


def note_answer(answers: list, request) -> None:
    if "component_server" in request.url:
        answer = request.response().json()
        answers.append({name: value for name, value in answer.items() if name != "clip"})


# Presses B once A has played a third of its length, from within the page: a press from outside may
# come so late on a busy machine that A has ended. Resolves to the last position in A and the first
# in B, in percent.
SWITCH = """() => new Promise((resolve) => {
  const bar = document.querySelector(".lab-position");
  let last = null;
  new MutationObserver((_, observer) => {
    const clip = document.querySelector('.lab-clip[aria-pressed="true"]');
    const position = 100 * bar.value / bar.max;
    if (clip && clip.dataset.letter === "B") {
      observer.disconnect();
      resolve([last, position]);
    } else if (clip && position > 33 && last === null) {
      last = position;
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "b", bubbles: true }));
    }
  }).observe(bar, { attributes: true });
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
})"""


def switch_from_a_to_b(page) -> tuple[float, float]:
    """The position in A when B was pressed, and where B began, in percent."""
    last, first = page.evaluate(SWITCH)
    page.keyboard.press(" ")
    return last, first


def test_a_press_counts_from_the_moment_the_button_is_back(open_window):
    page = compare_tab(open_window(DESKTOP))
    fill_in(page, SHORT, max_tokens=60, seeds=1)
    press_twice(page, "Generate pairs", "#lab-make")
    page.locator('#lab-status [data-state="done"]').wait_for()


def spoken(script: str, path: Path) -> Path:
    """A take of the embedded voice, to be a voice prompt."""
    runtime = RuntimeConfig(threads=1)
    synthesis = Synthesis(Settings(runtime))
    info = synthesis.models["nano"]
    request = Request(script, replace(info.config.defaults, seed=1), info, runtime)
    *_, finished = synthesis.stream(request, threading.Event())
    return synthesis.take(request, finished.result).save(path)


def test_the_voice_prompt_speaks_on_both_sides(open_window, tmp_path, tmp_path_factory):
    page = compare_tab(open_window(DESKTOP))
    fill_in(page, "[S1] I am fine. [S2] Good.", max_tokens=400, seeds=1, second=0.3)
    # With some seeds the embedded voice ends a take with a voice prompt after half a second.
    page.locator("#lab-first-seed input, #lab-first-seed textarea").fill("11")
    page.get_by_label("Use the voice prompt of the Generate tab").check()
    page.locator("#lab-plan", has_text="There is no voice prompt").wait_for()
    open_tab(page, "Generate")
    voice = spoken(SHORT, tmp_path / "voice.wav")
    unfold(page, "Voice prompt")
    page.locator("#voice-prompt input[type=file]").set_input_files(voice)
    page.locator("#voice-prompt").get_by_label("Clear").wait_for()
    page.get_by_label("Text of the voice prompt").fill(SHORT)
    open_tab(page, "Compare")
    press(page, "Generate pairs")
    wait_until_ready(page)
    (folder,) = tmp_path_factory.getbasetemp().glob("app0")
    plan = plans(folder)[-1]
    assert plan["voice_file"] == "voice.wav" and plan["voice_transcript"] == SHORT
    assert (plan["folder"] / "voice.wav").stat().st_size == voice.stat().st_size


def test_a_restarted_app_makes_the_pairs_that_stop_left(chromium, tmp_path):
    """Stop on the page; end the app; start it again: the same browser finds it and makes the rest.

    An app of its own, since it is ended in the middle.
    """
    port = free_port()
    context = chromium.new_context(viewport=DESKTOP)
    watch = Watch(context, f"http://127.0.0.1:{port}")
    with running_app(tmp_path, port):
        page = compare_tab(watch)
        page.set_default_timeout(MAKING)
        fill_in(page, LONG, max_tokens=500, seeds=PAIRS)
        press(page, "Generate pairs")
        some = re.compile(rf"\b([2-9]|[1-9]\d) of {PAIRS} pairs ready")
        page.locator("#lab-status").get_by_text(some).wait_for()
        press(page, "Stop generating")
        page.locator('#lab-status [data-state="stopped"]').wait_for()
        told = page.locator("#lab-status").inner_text()
        assert "Press Resume to generate the rest" in told
        assert page.locator('.lab-room[data-state="listen"]').is_visible(), "what is made is heard"
        page.close()
    (plan,) = plans(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (plan["folder"] / "clips").iterdir()}
    assert 2 <= len(before) // 2 < PAIRS and not (plan["folder"] / "votes.csv").exists()
    with running_app(tmp_path, port):
        page = watch.open()
        page.set_default_timeout(MAKING)
        open_tab(page, "Compare")
        page.locator("#lab-kept input").click()
        page.get_by_role("option").click()
        press(page, "Open")
        page.locator("#lab-status", has_text="Press Resume to generate the rest").wait_for()
        wait_until_ready(page)
        press(page, "Resume")
        page.locator('#lab-status [data-state="done"]').wait_for()
        page.close()
    (plan,) = plans(tmp_path)
    assert all(trial["made"] for trial in plan["trials"]) and len(plan["trials"]) == PAIRS
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    context.close()
    assert watch.errors == [] and watch.outside == []


def test_both_players_of_a_sighted_pair_go_to_a_place(open_window, tmp_path):
    pairs = make_pairs(tmp_path, kind="sighted", seeds=(1,), max_tokens=200)
    page = compare_tab(open_window(PHONE, "dark"))
    page.locator("input[type=file][accept*='.zip']").set_input_files(
        zip_comparison(pairs, tmp_path / "z")
    )
    page.locator(".picture img").nth(1).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    slider = page.get_by_label("Position in temperature 1.9177")
    slider.fill("0.5")
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    assert page.locator(".hear").nth(1).inner_text() == "Stop"
    page.get_by_role("button", name="Stop", exact=True).click()
    assert float(slider.input_value()) >= 0.5 or float(slider.input_value()) == 0
    assert page.locator(".hear").nth(1).inner_text() == "Play temperature 1.9177"


def test_pairs_that_came_out_alike_are_named_in_the_result(open_window, tmp_path):
    sides = ({"top_k": 20}, {"top_k": 30})
    pairs = make_pairs(tmp_path, sides=sides, seeds=(1,), temperature=0.0, cfg_scale=0.0)
    pairs.reveal()
    page = compare_tab(open_window(DESKTOP))
    page.locator("input[type=file][accept*='.zip']").set_input_files(
        zip_comparison(pairs, tmp_path / "z")
    )
    page.get_by_text("All pairs (1), to listen to again").click()
    page.get_by_text("Both sides have exactly the same codes.").wait_for()
