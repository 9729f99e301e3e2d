"""Every event that the page registers is made to fail, and its message is looked for on the page.

Events are read from the built app, so a new one is tested without being named here; one that no
rule below can trigger fails the first test.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request

import numpy as np
import pytest
import soundfile

from tests.helpers.models.checkpoints import write_small
from tests.helpers.page.browser import DESKTOP, Watch, running_app
from tests.helpers.page.event_triggers import Failing, a_take, press_id, rule_of, upload
from tests.helpers.page.lab_page import make_pairs, zip_comparison

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

WAIT = 60_000
# Of events that nobody waits for there is nobody to be told.
UNHEARD = "unload"


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """The app on a tiny model, with a comparison that every browser reaches."""
    folder = tmp_path_factory.mktemp("refusing")
    pairs = make_pairs(folder / "shared", seeds=(1,))
    model = write_small(folder / "small", codec=True)
    given = {
        "FAULT": str(folder / "fault"),
        "DIA_MODEL": str(model),
        "DIA_COMPARE": str(pairs.folder),
    }
    with running_app(folder, module="tests.browser.apps.refusing_app", **given) as url:
        yield Failing(url, folder / "fault")


@pytest.fixture(scope="module")
def watch(chromium, failing):
    """One browser for all events; its console does show that requests failed."""
    context = chromium.new_context(viewport=DESKTOP)
    context.set_default_timeout(WAIT)
    yield Watch(context, failing.url)
    context.close()


@pytest.fixture(scope="module")
def page(watch):
    page = watch.open()
    page.set_default_timeout(WAIT)
    return page


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A WAV without settings, and a comparison as a zip."""
    folder = tmp_path_factory.mktemp("files")
    soundfile.write(folder / "plain.wav", np.zeros(4000, np.float32), 16000)
    return folder / "plain.wav", zip_comparison(make_pairs(folder, seeds=(2,)), folder / "zip")


def shown(page, words: str) -> None:
    page.get_by_text(words, exact=True).first.wait_for()


# Keeps the numbers of the events whose failure was on the page at any time.
READ = """
  window.told = new Set();
  setInterval(() => {
    const text = document.body?.innerText ?? "";
    for (const [, number] of text.matchAll(/Event (\\d+) was made to fail/g)) told.add(+number);
  }, 200);
"""


def told_on_opening(failing, chromium, events: list[int]) -> set[int]:
    """Those of the events that a page tells of if all of them fail while it opens. An event that
    follows from another's success is not among them."""
    context = chromium.new_context(viewport=DESKTOP)
    context.add_init_script(READ)
    page = context.new_page()
    fail(failing, *events)
    page.goto(failing.url)
    try:
        page.wait_for_function("(wanted) => told.size >= wanted", arg=len(events), timeout=30_000)
    except sync_api.TimeoutError:
        pass  # The others are made to fail one by one.
    told = set(page.evaluate("[...told]"))
    context.close()
    failing.fail()
    return told


def fail(failing, *events: int) -> None:
    """Make events fail, and what has to fail before them."""
    before = [failing.events[n]["trigger_after"] for n in events if is_after_failure(failing, n)]
    failing.fail(*events, *before)


def is_after_failure(failing, number: int) -> bool:
    return failing.events[number]["trigger_only_on_failure"]


def heard_events(failing) -> list[int]:
    return [
        number
        for number in failing.events
        if UNHEARD not in [what for _, what in failing.targets(number)] and failing.targets(number)
    ]


def test_every_event_that_fails_says_so_on_the_page(failing, chromium, windows, page, files):
    """In one browser: those of a page that opens at once, the others one after the other, pressed,
    typed, dropped, loaded, followed."""
    silent = {}
    a_take(page)
    rules = {number: rule_of(failing, number) for number in heard_events(failing)}
    assert None not in rules.values(), [failing.targets(n) for n, r in rules.items() if r is None]
    told = told_on_opening(failing, chromium, [n for n, rule in rules.items() if rule == "open"])
    for number in sorted(rules.keys() - told):
        rule = rules[number]
        fail(failing, number)
        try:
            if rule == "open":
                opened = windows.open(failing.url, viewport=DESKTOP)
                fresh = opened.context.new_page()
                fresh.goto(failing.url)
                shown(fresh, f"Event {number} was made to fail.")
                windows.give_back(opened, is_reusable=True)
            else:
                rule(page, files)
                shown(page, f"Event {number} was made to fail.")
        except sync_api.Error as error:
            silent[number] = (failing.targets(number)[:2], str(error).splitlines()[0])
        failing.fail()
    assert silent == {}


def test_an_unexpected_error_is_explained_without_its_text(failing, watch):
    """Of a quick event and of one in gradio's queue: a sentence, and nothing of the inside."""
    (quick,) = [n for n in failing.events if ("lab-copy", "click") in failing.targets(n)]
    (queued,) = [n for n in failing.events if ("generate", "click") in failing.targets(n)]
    for number, name in ((quick, "lab-copy"), (queued, "generate")):
        page = watch.open()
        failing.fail(f"{number}!")
        press_id(page, name)
        page.get_by_text("An internal error ended this run").first.wait_for()
        assert "secret of event" not in page.locator("body").inner_text()
        failing.fail()
        page.close()


def test_events_without_a_place_on_the_page_answer_with_the_sentence(failing):
    """What only programs call answers with the message, where their clients look for it."""
    names = {"generate", "check", "models"}  # The others have no place there either.
    found = [n for n, event in failing.events.items() if event["api_name"] in names]
    assert len(found) == 3 and not any(map(failing.targets, found))
    failing.fail(*found)
    body = json.dumps(
        {"data": ["[S1] Hi.", *[None] * 6, 1.0, None, "", None, "auto", False]}
    ).encode()
    for number in found:
        url = f"{failing.url}/gradio_api/call/{failing.events[number]['api_name']}"
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            event = json.load(answer)["event_id"]
        with urllib.request.urlopen(f"{url}/{event}", timeout=60) as answer:
            told = answer.read().decode()
        assert re.search(f"event: error.*Event {number} was made to fail", told, re.DOTALL)
    failing.fail()


def test_a_wrong_file_is_refused_in_words(watch, files):
    """The case that was met: a WAV without settings, dropped on the earlier takes."""
    page = watch.open()
    upload(page, "dropped", files)
    alert = page.get_by_role("alert").filter(has_text="This file contains no settings")
    alert.wait_for()
    alert.get_by_role("button", name="Close").click()
    alert.wait_for(state="hidden")
