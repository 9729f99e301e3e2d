"""The Compare tab as browser tests use it: comparisons made beforehand, and what a person does."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from dataclasses import replace
from functools import cache
from pathlib import Path

from dia_demo.config import RuntimeConfig
from dia_demo.services.listening import archive
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan import plan_file
from dia_demo.services.listening.plan.plan import make_plan
from dia_demo.services.listening.plan.setting import Setting
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from tests.helpers.models.checkpoints import write_small
from tests.helpers.page.browser import choose_option, open_tab, unfold

SCRIPT = "[S1] Hello there. [S2] Yes."
WAIT = 60_000  # a shared machine may be slow
VOTE_KEYS = {"A": "Shift+1", "none": "Shift+0", "B": "Shift+2"}
# Two sides that differ in what one hears.
COLD, HOT = {"temperature": 0.7131}, {"temperature": 1.9177}


@cache
def small_voice() -> Synthesis:
    """A tiny model, loaded once for all tests: to open a codec means to try its forms."""
    folder = Path(tempfile.mkdtemp(prefix="dia-small-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    model = str(write_small(folder / "small", codec=True))
    return Synthesis(Settings(RuntimeConfig(model=model, threads=1)))


def make_pairs(folder: Path, kind="preference", sides=(COLD, HOT), seeds=(41, 42), **common):
    """A comparison of a tiny model's takes, made without the page. A take has 60 tokens, 0.9 s."""
    synthesis = small_voice()
    model = synthesis.settings.runtime.model
    params = replace(synthesis.models[model].config.defaults, **({"max_tokens": 60} | common))
    base = Setting(params, RuntimeConfig(model=model))
    plan = make_plan(kind, [base.change(side) for side in sides], (SCRIPT,), seeds)
    comparison = Comparison.create(folder / "plan", plan, synthesis)
    list(comparison.run(synthesis, threading.Event()))
    return comparison


def zip_comparison(comparison: Comparison, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return archive.export_zip(comparison.folder, folder / "comparison.zip")


def swap_sides(comparison: Comparison, folder: Path) -> Comparison:
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
    open_tab(page, "Compare")
    page.get_by_role("button", name="Generate pairs").wait_for()
    return page


def open_zip(page, path: Path) -> None:
    page.locator("#lab-keep input[type=file][accept*='.zip']").set_input_files(path)
    wait_until_ready(page)


def wait_until_ready(page) -> None:
    """A pair is there, and its clips have come."""
    page.locator('.lab-room[data-state="listen"]').wait_for()
    page.wait_for_function(
        "[...document.querySelectorAll('.lab-clip')].every((one) => !one.disabled)"
    )


def hear(page, letter: str) -> None:
    page.keyboard.press(letter.lower())
    heard(page, letter)


def heard(page, letter: str) -> None:
    page.wait_for_function(
        "(letter) => document.querySelector(`.lab-clip[data-letter='${letter}'] .lab-heard`)"
        ".textContent === 'heard'",
        arg=letter,
    )


def vote(page, answer: str) -> None:
    """Vote for clip 1 (A), clip 2 (B) or neither (none), with the keyboard."""
    page.keyboard.press(VOTE_KEYS[answer])


def open_more(page) -> None:
    """Unfold everything but the question."""
    if not page.locator("#lab-scripts").is_visible():
        unfold(page, "Scripts, seeds and other settings")
        page.locator("#lab-scripts").wait_for()


def fill(page, name: str, value: object) -> None:
    """A field's new value, as the server has it. name: the end of its id, such as "second"."""
    field = page.locator(f"#lab-{name} input").first
    field.fill(str(value))
    field.press("Tab")


def fill_in(page, script: str, max_tokens: int, seeds: int, second: float = 0.9) -> None:
    """The form of a blind comparison of temperatures, until the server has read it."""
    open_more(page)
    page.get_by_label("What both sides say").fill(script)
    fill(page, "a-max-tokens", max_tokens)
    fill(page, "second", second)
    fill(page, "seeds", seeds)
    page.get_by_text(f"{seeds} pair{'s' if seeds > 1 else ''} to listen to").wait_for()


def choose(page, name: str, option: str) -> None:
    """Choose from a menu of the form. name: the end of its id."""
    page.locator(f"#lab-{name} input").click()
    choose_option(page, option)


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
