"""The Compare tab and the earlier takes in a real chromium: by keyboard, in private, and blind.

Most comparisons are made here by the services with a tiny model and opened as zips, which is
quick; one is made on the page with the embedded voice. DIA_SCREENSHOTS=1 writes the pictures.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from dataclasses import replace

import pytest
from browser import DESKTOP, PHONE, ROOT, press, wait_state, write_script
from checkpoints import write_small

from dia_demo.config import RuntimeConfig
from dia_demo.services import archive, plan_file
from dia_demo.services.compare import Comparison
from dia_demo.services.plan import Setting, make_plan
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis

sync_api = pytest.importorskip("playwright.sync_api")

SCRIPT = "[S1] Hello there. [S2] Yes."
WAIT = 240_000  # a shared machine may be slow


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Two pairs that differ in temperature, by a tiny model."""
    folder = tmp_path_factory.mktemp("lab-made")
    model = str(write_small(folder / "small", codec=True))
    synthesis = Synthesis(Settings(RuntimeConfig(model=model, threads=1)))
    params = replace(synthesis.info(model).config.defaults, max_tokens=60)
    base = Setting(params, RuntimeConfig(model=model))
    sides = [base.changed({"temperature": 0.7131}), base.changed({"temperature": 1.9177})]
    plan = make_plan("preference", sides, (SCRIPT,), (41, 42))
    comparison = Comparison.create(folder / "plan", plan, synthesis)
    list(comparison.run(synthesis, threading.Event()))
    return comparison


def zipped(comparison: Comparison, folder):
    folder.mkdir(parents=True, exist_ok=True)
    return archive.export_zip(comparison.folder, folder / "comparison.zip")


def swapped(comparison: Comparison, folder) -> Comparison:
    """The same comparison, every name included, but with A and B of each pair changed round."""
    shutil.copytree(comparison.folder, folder)
    plan = comparison.plan
    for trial in plan.trials:
        a, b = (folder / "clips" / clip for clip in trial.clips)
        kept = a.read_bytes()
        a.write_bytes(b.read_bytes())
        b.write_bytes(kept)
        secret = plan.secrets[trial.id]
        turned = replace(secret, flip=not secret.flip, gains_db=secret.gains_db[::-1])
        plan = plan.with_trial(trial, turned)
    plan_file.write_plan(folder, plan)
    return Comparison.open(folder)


def compare_tab(watch):
    page = watch.open()
    page.set_default_timeout(WAIT)
    page.get_by_role("tab", name="Compare").click()
    page.get_by_role("button", name="Make the pairs").wait_for()
    return page


def open_zip(page, path) -> None:
    page.locator("input[type=file][accept*='.zip']").set_input_files(path)
    ready(page)


def ready(page) -> None:
    """A pair is there, and its clips have come."""
    page.locator('.lab-room[data-state="listen"]').wait_for()
    page.wait_for_function(
        "[...document.querySelectorAll('.lab-clip')].every((one) => !one.disabled)"
    )


def hear(page, letter: str) -> None:
    page.keyboard.press(letter.lower())
    page.wait_for_function(
        "(letter) => document.querySelector(`.lab-clip[data-letter='${letter}'] .lab-heard`)"
        ".textContent === 'heard'",
        arg=letter,
    )


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_pair_is_judged_by_keyboard_alone(visit, made, tmp_path, size):
    page = compare_tab(visit(size))
    open_zip(page, zipped(made, tmp_path))
    for number in (1, 2):
        page.get_by_text(f"Pair {number} of 2").wait_for()
        ready(page)
        page.keyboard.press("1")
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
        page.keyboard.press("1" if number == 1 else "0")
    page.locator('.lab-room[data-state="open"]').wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    result = page.locator(".lab-result").inner_text()
    assert "1 without a difference" in result and "“ab 1 20”" in result
    assert "0.7131" in result and "1.9177" in result
    page.get_by_role("button", name="Download zip").wait_for()
    page.wait_for_function("!document.querySelector('#lab-zip').disabled")
    with page.expect_download() as waiting:
        page.locator("#lab-zip").click()
    waiting.value.save_as(tmp_path / "out.zip")
    plan = archive.import_zip(tmp_path / "out.zip", tmp_path / "back")
    back = Comparison.open(tmp_path / "back")
    assert plan.id == made.plan.id and len(back.votes) == 2
    assert all(vote.seconds_a > 0 and vote.seconds_b > 0 for vote in back.votes.values())


class Spy:
    """Everything the page is told over the network, and all it shows, as text."""

    def __init__(self, context) -> None:
        self.answers: list[str] = []
        context.on("response", self._response)

    def _response(self, response) -> None:
        if "/gradio_api/" not in response.url or response.request.method != "POST":
            return
        try:
            text = response.text()
        except Exception:  # a body that the browser has dropped
            return
        if "needed" in text or '"wav"' in text or '"error"' in text:
            self.answers.append(text)


def told(spy: Spy) -> list[object]:
    """The answers about the pair, without the sound itself and without what is drawn anew."""
    found = []
    for text in spy.answers:
        answer = json.loads(text)
        if isinstance(answer, dict) and "wav" in answer:
            answer = {"bytes of sound": len(answer["wav"])}
        found.append(answer)
    return found


def test_nothing_tells_which_side_is_which(visit, made, tmp_path):
    """The page of a comparison and that of its mirror image are the same but for the sound."""
    seen = []
    for name, comparison in (
        ("as it is", made),
        ("swapped", swapped(made, tmp_path / "mirror")),
    ):
        watch = visit(DESKTOP)
        spy = Spy(watch.context)
        page = compare_tab(watch)
        open_zip(page, zipped(comparison, tmp_path / name))
        page.wait_for_timeout(1500)
        room = page.locator(".lab-room").evaluate("(node) => node.outerHTML")
        names = page.evaluate(
            "performance.getEntriesByType('resource').map((one) => one.name.split('?')[0])"
        )
        sounds = [one for one in names if re.search(r"\.(wav|flac|mp3)", one)]
        seen.append({"room": room, "answers": told(spy), "sounds": sounds})
        assert page.locator("#lab-zip").is_disabled(), "the zip holds the answers"
        assert "0.7131" not in room and "1.9177" not in room
    assert seen[0]["sounds"] == seen[1]["sounds"] == [], "clips come under no address of their own"
    assert seen[0]["room"] == seen[1]["room"]
    assert seen[0]["answers"] == seen[1]["answers"]
    lengths = {one["bytes of sound"] for one in seen[0]["answers"] if "bytes of sound" in one}
    assert len(lengths) == 1, "both clips of a pair are equally long"
    assert "flip" not in json.dumps(seen) and "gain" not in json.dumps(seen)


def ask_server(page, question: dict) -> dict:
    """A question to the lab as a curious person would send it, past the page's own script."""
    return page.evaluate(
        """async (question) => {
          const config = window.gradio_config;
          const lab = config.components.find((one) => one.props.elem_id === "lab");
          const response = await fetch(`${config.root}/gradio_api/component_server/`, {
            method: "POST", headers: { "Content-Type": "application/json" },
            body: JSON.stringify({ data: question, component_id: lab.id, fn_name: "ask",
                                   session_hash: "curious" }) });
          return response.ok ? await response.json() : { error: String(response.status) };
        }""",
        question,
    )


def kept_ids(home_folder) -> set[str]:
    return {path.name for path in home_folder.glob("*/comparisons/*")}


def test_two_people_never_meet(visit, made, tmp_path):
    ann, bob = compare_tab(visit(DESKTOP)), compare_tab(visit(PHONE))
    sent: list[dict] = []
    ann.on("request", lambda one: _note_question(sent, one))
    open_zip(ann, zipped(made, tmp_path / "a"))
    assert bob.locator('.lab-room[data-state="empty"]').is_visible()
    question = next(one for one in sent if one.get("do") == "look")
    assert "trial" in ask_server(ann, question), "Ann's own key opens it"
    for wrong in ("A" * 32, "", None):
        assert "error" in ask_server(bob, question | {"key": wrong})
    open_zip(bob, zipped(made, tmp_path / "b"))
    for page, answer in ((ann, "1"), (bob, "2")):
        hear(page, "A")
        hear(page, "B")
        page.keyboard.press(answer)
        page.get_by_text("Pair 2 of 2").wait_for()
    bob.reload()
    bob.get_by_role("tab", name="Compare").click()
    bob.locator("#lab-kept input").click()
    assert bob.get_by_role("option").count() == 1, "a reload keeps one's own, and nothing else"


def _note_question(sent: list, request) -> None:
    if "component_server" in request.url and request.post_data:
        data = json.loads(request.post_data).get("data")
        if isinstance(data, dict):
            sent.append(data)


def test_the_folder_is_not_served(visit, home, tmp_path_factory, made, tmp_path):
    """Even who knows where a plan lies on the server's disk gets nothing."""
    page = compare_tab(visit(DESKTOP))
    open_zip(page, zipped(made, tmp_path))
    kept = sorted(tmp_path_factory.getbasetemp().glob("app*/kept/*/comparisons/*/plan.json"))
    assert kept, "the app keeps its comparisons where the test told it to"
    for path in (kept[-1], kept[-1].parent / "clips" / made.plan.trials[0].clips[0]):
        assert path.exists()
        assert page.request.get(f"{home}/gradio_api/file={path}").status in (403, 404)


@pytest.mark.parametrize("name, data", [("no zip", b"hello"), ("empty", b"PK\x05\x06" + bytes(18))])
def test_a_bad_zip_gets_one_message(visit, tmp_path, name, data):
    page = compare_tab(visit(DESKTOP))
    (tmp_path / "bad.zip").write_bytes(data)
    page.locator("input[type=file][accept*='.zip']").set_input_files(tmp_path / "bad.zip")
    page.get_by_text(re.compile("This is no zip|The zip holds no plan")).first.wait_for()
    assert page.locator('.lab-room[data-state="empty"]').is_visible()


def test_a_comparison_is_made_on_the_page(visit):
    page = compare_tab(visit(PHONE, "dark"))
    page.get_by_label("What both sides say").fill("[S1] Hello there. How are you? [S2] Fine.")
    press(page, "Make the pairs")
    page.locator("#lab-status", has_text="Settings A and B are identical").wait_for()
    for label, value in (("Max tokens, A", 80), ("Max tokens, B", 80), ("Temperature, B", 0.9)):
        page.get_by_label(label).fill(str(value))
        page.get_by_label(label).press("Tab")
    seeds = page.get_by_label("number input for Seeds for each script")
    seeds.fill("1")
    seeds.press("Tab")
    page.get_by_text("1 pair can show nothing").wait_for()
    assert "Temperature" in page.locator("#lab-plan").inner_text()
    page.get_by_label("Side by side, not blind").check()
    page.get_by_text("It proves nothing").wait_for()
    press(page, "Make the pairs")
    page.locator('.lab-room[data-state="open"]').wait_for()
    page.locator(".picture img").nth(1).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    shown = page.locator(".lab-result").inner_text()
    for word in ("Words a minute", "Loudness as made", "Realtime factor", "Temperature"):
        assert word in shown
    page.get_by_role("button", name="Hear settings A").click()
    page.get_by_role("button", name="Stop", exact=True).first.wait_for()


def test_earlier_takes_come_back(visit, tmp_path):
    page = visit(DESKTOP).open()
    page.set_default_timeout(WAIT)
    write_script(page, "[S1] Hello there. [S2] Hi. [S1]", max_tokens=80)
    press(page, "Generate")
    wait_state(page, "done", "cut")
    page.get_by_role("button", name="Earlier takes").click()
    page.get_by_role("button", name="Use these settings").wait_for()
    with page.expect_download() as waiting:
        press(page, "Download WAV")
    waiting.value.save_as(tmp_path / "take.wav")
    script = page.get_by_label("Script", exact=True)
    script.fill("[S1] Something else. [S2]")
    page.get_by_role("button", name="Use these settings").click()
    has = "(words) => document.querySelector('#script textarea').value.includes(words)"
    page.wait_for_function(has, arg="Hello there.")
    script.fill("[S1] Something else. [S2]")
    page.locator("#dropped input[type=file]").set_input_files(tmp_path / "take.wav")
    page.wait_for_function(has, arg="Hello there.")
    page.get_by_role("button", name="Compare with this").click()
    page.get_by_role("button", name="Make the pairs").wait_for()
    assert page.get_by_label("What both sides say").input_value().startswith("[S1] Hello there.")
    assert page.get_by_label("Max tokens, B").input_value() == "80"
    page.get_by_role("tab", name="Generate").click()
    page.locator(".earlier-buttons").get_by_role("button", name="Delete").click()
    page.get_by_text("Takes you make are kept here.").wait_for()


@pytest.mark.skipif(not os.environ.get("DIA_SCREENSHOTS"), reason="pictures on request")
@pytest.mark.parametrize(
    "name, size, scheme",
    [("compare-light", DESKTOP, "light"), ("compare-phone-dark", PHONE, "dark")],
)
def test_screenshots(visit, made, tmp_path, name, size, scheme):
    page = compare_tab(visit(size, scheme))
    open_zip(page, zipped(made, tmp_path))
    hear(page, "A")
    page.locator("#lab").screenshot(path=ROOT / "assets" / "screenshots" / f"{name}.png")
