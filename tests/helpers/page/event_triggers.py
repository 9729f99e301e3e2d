"""Every event of the page, and what triggers it in a browser."""

from __future__ import annotations

import json
import urllib.request
from functools import partial

from tests.helpers.page.browser import open_tab, unfold


class Failing:
    """The app with the file that says which events fail, and its events by number."""

    def __init__(self, url: str, fault) -> None:
        self.url, self.fault = url, fault
        with urllib.request.urlopen(f"{url}/config", timeout=180) as answer:
            config = json.load(answer)
        self.names = {one["id"]: one["props"].get("elem_id") for one in config["components"]}
        self.all = {event["id"]: event for event in config["dependencies"]}
        self.events = {number: event for number, event in self.all.items() if event["backend_fn"]}

    def fail(self, *events: str | int) -> None:
        self.fault.write_text(" ".join(map(str, events)))

    def targets(self, number: int) -> list[tuple[str | None, str]]:
        event = self.all[number]
        return [(self.names.get(where), what) for where, what in event["targets"]]


def press_id(page, name: str) -> None:
    """A press on a button, whatever the program thinks of it at the moment."""
    tabs = {"lab": "Compare", "machine": "Machine"}
    open_tab(page, tabs.get(name.split("-")[0], "Generate"))
    if name.startswith("lab-panel"):
        unfold_panels(page)
    page.locator(f"button#{name}, #{name} button").first.wait_for(state="attached")
    page.evaluate(
        """(name) => {
          const found = document.querySelector(`button#${name}, #${name} button`);
          found.disabled = false;
          found.click();
        }""",
        name,
    )


def unfold_panels(page) -> None:
    """What is folded on the card of tests with many listeners is not on the page."""
    unfold(page, "Many listeners")
    unfold(page, "Leave a listener out")


def press_until_done(page, name: str) -> None:
    """A press that the page may ask to confirm with a second one."""
    press_id(page, name)
    question = page.locator(f"button#{name}", has_text="Press again")
    if question.count():
        question.dispatch_event("click")


def type_into(page, name: str, tab: str) -> None:
    open_tab(page, tab)
    field = page.locator(f"#{name} textarea")
    field.fill(field.input_value() + ".")


def run_of_generate(page) -> None:
    press_id(page, "generate")
    page.wait_for_function(
        """() => /done|cut|failed/.test(document.querySelector("#status .status").dataset.state)"""
    )


def a_take(page) -> None:
    """One take is made and listed, unless it is there already."""
    if not page.locator(".earlier li").count():
        run_of_generate(page)
        page.locator(".earlier li").first.wait_for()


def press_in_list(page, text: str) -> None:
    open_tab(page, "Generate")
    a_take(page)
    page.locator(".earlier").get_by_role("button", name=text).first.click()


def press_new_button(page, where: str, name: str, **data) -> None:
    """A press on a button as the program would add it to the last of these elements."""
    page.evaluate(
        """([where, name, data]) => {
          const button = document.createElement("button");
          button.className = name;
          Object.assign(button.dataset, data);
          [...document.querySelectorAll(where)].at(-1).append(button);
          button.click();
          button.remove();
        }""",
        [where, name, data],
    )


def repair(page, name: str, tab: str) -> None:
    open_tab(page, tab)
    press_new_button(page, f"#{name} .report", "repair", code="x", index=0)


def press_in_card(page) -> None:
    """A press on a button of the download's card, which is empty here."""
    press_new_button(page, "#download div", "", action="cancel")


def press_in_parts(page) -> None:
    """A press on Resume in the list of parts, which is hidden while there are none."""
    open_tab(page, "Generate")
    page.evaluate("() => document.querySelector('#parts .parts-resume').click()")


def make_again(page, files) -> None:
    """A part of a dialogue is made again, to the end."""
    as_a_stranger(page)
    script = "[S1] We walk along the river. [S2] And talk of it. (pause 0.5) [S1] Then home."
    page.locator("#script textarea").fill(script)
    run_of_generate(page)
    page.locator(".part-again:enabled").first.click()


def press_candidate(page, button: str) -> None:
    """A press on a button of the first candidate that has it."""
    open_tab(page, "Generate")
    buttons = page.locator(f"#candidates .candidate-{button}:enabled")
    if not buttons.count():
        press_id(page, "make-candidates")
    buttons.first.click(timeout=60_000)


def choose_preset(page) -> None:
    """Another one than before, in any case."""
    open_tab(page, "Generate")
    page.locator("#preset input:not(:checked)").first.check()


def free_seed(page) -> None:
    open_tab(page, "Generate")
    page.get_by_label("Seed", exact=True).fill("7")
    page.get_by_role("button", name="Use a random seed again").click()


def open_shared(page) -> None:
    """The shared comparison is in the room."""
    open_tab(page, "Compare")
    page.locator("#lab-kept input").click()
    page.locator("#lab-kept").get_by_role("option").first.click()
    press_id(page, "lab-open")
    page.locator('.lab-room:is([data-state="listen"], [data-state="open"])').wait_for()


def end_the_test(page) -> None:
    """The room tells the page of it."""
    open_shared(page)
    page.get_by_role("button", name="End the test and reveal").click()
    page.get_by_role("button", name="Press again to end the test").click()


def as_a_stranger(page) -> None:
    """The page as on a first visit: without takes, an open comparison or a form to restore."""
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.reload()
    page.get_by_role("button", name="Generate", exact=True).wait_for()
    page.wait_for_function("window.diaRestored === true")


def download(page, name: str, files) -> None:
    """After the reveal of a comparison of one's own."""
    as_a_stranger(page)  # Nothing is open, and the browser uploads a file once.
    upload(page, "lab-upload", files)
    page.locator('.lab-room[data-state="listen"]').wait_for()
    page.get_by_role("button", name="End the test and reveal").click()
    page.get_by_role("button", name="Press again to end the test").click()
    page.locator('.lab-room[data-state="open"]').wait_for()
    press_id(page, name)


def choose_test(page) -> None:
    """A test with many listeners, of the shared comparison."""
    open_shared(page)
    if not page.locator("#lab-panel-state a").count():
        press_id(page, "lab-panel-create")
        page.locator("#lab-panel-state a").wait_for(state="attached")
    unfold(page, "Many listeners")
    page.locator("#lab-panel-tests input").click()
    page.locator("#lab-panel-tests").get_by_role("option").first.click()


def send_to(page, where: str, data: bytes) -> None:
    """Upload a file at a button."""
    open_tab(page, "Compare")
    unfold_panels(page)
    suffix = {"lab-panel-clips": ".zip", "lab-panel-results": ".json"}[where]
    field = page.locator(f"#lab-panel input[type=file][accept*='{suffix}']").first
    field.set_input_files({"name": f"x{suffix}", "mimeType": "text/plain", "buffer": data})


def on_cpu(page) -> None:
    """A run hides the button: on a page without one it is there."""
    as_a_stranger(page)
    press_id(page, "on-cpu")


def choose_kind(page) -> None:
    open_tab(page, "Compare")
    radio = page.locator("#lab-kind input[type=radio]")
    radio.nth(0 if radio.nth(1).is_checked() else 1).check()


def choose_other(page, menu: str, tab: str = "Compare") -> None:
    """Choose what is not chosen yet in a menu."""
    open_tab(page, tab)
    page.locator(f"#{menu} input").click()
    page.locator("[role=option][aria-selected=false]").first.click()


def ask_about(page, setting: str) -> None:
    """Make a setting the question of the comparison."""
    open_tab(page, "Compare")
    page.locator("#lab-differs input").click()
    page.get_by_role("option", name=setting, exact=True).click()


def choose_value(page, menu: str) -> None:
    ask_about(page, "Precision")
    choose_other(page, menu)


def choose_model(page, menu: str) -> None:
    ask_about(page, "Temperature")
    # Once more if it is on: the event that shows the fields may have been made to fail.
    page.locator("#lab-separate input").uncheck()
    page.locator("#lab-separate input").check()
    choose_other(page, menu)


def separate(page) -> None:
    ask_about(page, "Temperature")
    page.locator("#lab-separate input").click()


# How each kind of event is triggered: by where it is and what happens there.
SPECIAL = {
    ("report", "click"): lambda page: repair(page, "report", "Generate"),
    ("lab-report", "click"): lambda page: repair(page, "lab-report", "Compare"),
    ("chips", "click"): free_seed,
    ("download", "click"): press_in_card,
    ("parts", "click"): press_in_parts,
    ("candidates", "click"): lambda page: press_candidate(page, "again"),
    ("candidates", "submit"): lambda page: press_candidate(page, "choose"),
    ("preset", "input"): choose_preset,
    ("on-cpu", "click"): on_cpu,
    ("model-chosen", "change"): lambda page: choose_other(page, "model", "Generate"),
    ("model", "change"): lambda page: choose_other(page, "model", "Generate"),
    ("speaker", "click"): lambda page: page.locator("#speaker .switch-model").click(),
    ("script", "change"): lambda page: type_into(page, "script", "Generate"),
    ("lab-scripts", "change"): lambda page: type_into(page, "lab-scripts", "Compare"),
    ("lab-kind", "change"): choose_kind,
    ("lab-kind", "input"): choose_kind,
    ("lab-differs-chosen", "change"): lambda page: choose_other(page, "lab-differs"),
    ("lab-separate", "input"): separate,
    **{
        (f"{name}-chosen", "change"): partial(choose_value, menu=name)
        for name in ("lab-first-choice", "lab-second-choice")
    },
    **{
        (f"{name}-chosen", "change"): partial(choose_model, menu=name)
        for name in ("lab-a-model", "lab-b-model")
    },
    ("lab", "click"): end_the_test,
    ("lab-delete", "click"): lambda page: open_shared(page) or press_until_done(page, "lab-delete"),
    ("lab-panel-delete", "click"): lambda page: press_until_done(page, "lab-panel-delete"),
    ("lab-panel-reveal", "click"): lambda page: press_until_done(page, "lab-panel-reveal"),
    ("lab-panel-tests", "input"): choose_test,
    ("lab-panel-clips", "upload"): lambda page: send_to(page, "lab-panel-clips", b"PK"),
    ("lab-panel-results", "upload"): lambda page: send_to(page, "lab-panel-results", b"{}"),
    ("figures", "change"): run_of_generate,
    (None, "click"): lambda page: press_in_list(page, "Use these settings"),
    (None, "submit"): lambda page: press_in_list(page, "Compare with this"),
}
# Runs that last are ended with their own Stop, so that what follows them follows soon.
STOPS = {"generate": "stop", "make-candidates": "stop", "xpu-check": "xpu-stop",
         "machine-measure": "machine-stop", "lab-make": "lab-stop",
         "lab-resume": "lab-stop"}  # fmt: skip


def rule_of(failing, number: int):
    """What triggers an event: a function of the page and the files; None where nothing here can."""
    targets = failing.targets(number)
    for where, what in targets:
        if (where, what) in SPECIAL:
            act = SPECIAL[where, what]
            return lambda page, files, act=act: act(page)
    for where, what in targets:
        if where in ("lab-zip", "lab-csv", "lab-audio"):
            return lambda page, files, where=where: download(page, where, files)
        if what == "click" and where:
            return lambda page, files, where=where: press_id(page, where)
        if where == "voice-prompt" and what in ("upload", "change"):
            return add_voice_prompt
        if what == "upload":
            return lambda page, files, where=where: upload(page, where, files)
        if what in ("load", "change"):
            return "open"
        if what in ("then", "failure"):
            before = failing.all[number]["trigger_after"]
            start, _ = failing.targets(before)[0]
            if (start, what) == ("parts", "then"):
                return make_again
            if start not in STOPS:
                return rule_of(failing, before)
            return lambda page, files, start=start: run_and_stop(page, start)
    return None


def upload(page, where: str, files) -> None:
    plain, pairs = files
    open_tab(page, "Compare" if where.startswith("lab") else "Generate")
    # The field of a button is beside it.
    buttons = {"lab-upload": (".zip", pairs), "add-voice": (".safetensors", voice_beside(plain))}
    suffix, chosen = buttons.get(where, ("none", plain))
    if where == "add-voice":
        as_a_stranger(page)  # The browser uploads a file once.
    page.locator(
        f"#{where} input[type=file], input[type=file][accept*='{suffix}']"
    ).first.set_input_files(chosen)


def voice_beside(plain):
    """A file with the name of a voice."""
    path = plain.with_suffix(".dia-voice.safetensors")
    path.write_bytes(plain.read_bytes())
    return path


def add_voice_prompt(page, files) -> None:
    as_a_stranger(page)  # Without one.
    upload(page, "voice-prompt", files)


def run_and_stop(page, start: str) -> None:
    press_id(page, start)
    page.wait_for_timeout(300)
    press_id(page, STOPS[start])
