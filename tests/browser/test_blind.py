"""A curious person at the page: everything a browser is told is held against its mirror image.

The same comparison is opened twice, once with A and B of every pair changed round. Whatever differs
between the two, but for the sound itself, would tell which side is which.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections import Counter

import pytest

from dia_demo.services.listening.comparison import Comparison
from tests.helpers.page.browser import DESKTOP, PHONE, open_tab
from tests.helpers.page.lab_page import (
    WAIT,
    ask_server,
    compare_tab,
    heard,
    open_zip,
    swap_sides,
    vote,
    wait_until_ready,
    zip_comparison,
)

pytestmark = pytest.mark.long

sync_api = pytest.importorskip("playwright.sync_api")

# What is drawn anew by every page and every question, and what only tells the time.
ANEW = re.compile(
    r'"(?:tick|\w*(?:duration|time|eta))": ?(?:[\d.e-]+|null)'
    r'|"(?:session_hash|event_id)": ?"\w+"|(?<=session_hash=)\w+|\bhtml-\w+'
)
# What comes as a stream of events has no end that a browser's driver would tell: listen along.
LISTEN = """() => {
  const fetched = window.fetch;
  window.streamed = "";
  window.fetch = async (...given) => {
    const response = await fetched(...given);
    if (response.url.includes("/queue/data")) {
      const reader = response.clone().body.getReader(), decoder = new TextDecoder();
      (async () => {
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          window.streamed += decoder.decode(part.value, { stream: true });
        }
      })().catch(() => {}); // the page has hung up
    }
    return response;
  };
}"""
# What the form would make. How often the page asks depends on how quickly its fields appear.
FORM = "plan-note"
# The times beside Generate and in the form, which are revised while the machine is being measured.
EXPECTATION = 'class=\\"wait\\"'
ESTIMATE = re.compile(r", [^<>,.]* to generate on this machine")
# Words of what a plan keeps secret.
SECRETS = re.compile(r"(?<![a-z])(?:flip|gain|lufs|codes_sha256|sealed)")
STREAMS = ("/queue/data", "/heartbeat/")  # answers without an end
WAV = re.compile(r'"clip": ?"([A-Za-z0-9+/=]+)"')


class Spy:
    """All that the network brings a page: every answer of every sort, with its headers."""

    def __init__(self, context, plan) -> None:
        self.bodies: Counter[tuple[str, str]] = Counter()
        self.headers: set[str] = set()
        self.expectations: list[str] = []
        self.sounds: list[bytes] = []
        self.sockets: list[str] = []
        self._known = names_of(plan)
        context.add_init_script(f"({LISTEN})()")
        self._unanswered: list = []
        context.on("request", self._begun)
        context.on("requestfinished", self._finished)
        context.on("requestfailed", self._answered)
        context.on("page", lambda page: page.on("websocket", self._socket))

    def _socket(self, socket) -> None:
        self.sockets.append(socket.url)

    def _begun(self, request) -> None:
        if not any(part in request.url for part in STREAMS):
            self._unanswered.append(request)

    def _answered(self, request) -> None:
        if request in self._unanswered:
            self._unanswered.remove(request)

    def _finished(self, request) -> None:
        response = request.response()
        kind = response.headers.get("content-type", "")
        if not kind.startswith(("image/", "font/", "text/css", "text/event-stream")):
            try:
                body = response.text()
            except (sync_api.Error, UnicodeDecodeError):
                body = "not text, or dropped by the browser"
            self.sounds += [base64.b64decode(found) for found in WAV.findall(body)]
            body = WAV.sub(lambda found: f"wav of {len(found[1])}", body)
            body = self.plain(body)
            if EXPECTATION in body:
                self.expectations.append(body)
            elif FORM in body:
                self.bodies[self.plain(request.url), body] = 1
            else:
                self.bodies[self.plain(request.url), body] += 1
        self.headers |= set(response.headers)
        self._answered(request)

    def settle(self, page) -> None:
        """Wait for the driver, which may tell of an answer after the page has used it."""
        deadline = time.monotonic() + WAIT / 1000
        while self._unanswered and time.monotonic() < deadline:
            page.wait_for_timeout(20)
        assert not self._unanswered, [request.url for request in self._unanswered]

    def plain(self, text: str) -> str:
        """Without random names; those of the plan stay, for the mirror image has the same."""

        def name(found: re.Match) -> str:
            return found[0] if found[0] in self._known else "<random>"

        text = ESTIMATE.sub("", ANEW.sub("<anew>", text))
        return re.sub(r"(?<![\w-])(?=[\w-]*\d)[\w-]{20,}(?![\w-])", name, text)


def names_of(plan) -> set[str]:
    """The names of a comparison, its takes, pairs and clips."""
    names = [plan.id, *(slot.id for slot in plan.slots)]
    names += [name for trial in plan.trials for name in (trial.id, *trial.clips)]
    return {name.removesuffix(".wav") for name in names}


def own_files(url: str) -> tuple[str, ...]:
    """How the addresses of gradio's own scripts begin."""
    origin = "/".join(url.split("/")[:3])
    return f"{origin}/assets/", f"{origin}/static/"


def look_around(watch, comparison: Comparison, path) -> dict:
    """Open it, hear both clips, look at everything; then end the test and look again."""
    spy = Spy(watch.context, comparison.plan)
    page = compare_tab(watch)
    open_zip(page, zip_comparison(comparison, path))
    still = room(page)
    for letter in "AB":
        page.keyboard.press(letter.lower())
        heard(page, letter)
    page.wait_for_function(
        "[...document.querySelectorAll('.lab-clip')]"
        ".every((one) => one.getAttribute('aria-pressed') === 'false')"
    )
    page.wait_for_function("window.streamed.includes('process_completed')")
    streamed = page.evaluate("window.streamed")
    seen = {
        "streamed": sorted(set(spy.plain(streamed).split("\n"))),
        "room": [still, room(page)],
        "page": spy.plain(page.locator("#compare").inner_html()),
        "stored": sorted(page.evaluate("Object.keys(localStorage).concat(document.cookie)")),
        "fetched": page.evaluate(
            """performance.getEntriesByType("resource")
              .filter((one) => one.name.includes("component_server"))
              .map((one) => [one.initiatorType, one.decodedBodySize])"""
        ),
        "downloads": page.locator("#lab-downloads").is_hidden(),
    }
    spy.settle(page)
    blind = {"bodies": dict(spy.bodies), "headers": spy.headers, "sockets": spy.sockets}
    seen |= blind | {"sounds": spy.sounds[:2], "expectations": spy.expectations}
    page.get_by_role("button", name="End the test and reveal").click()
    page.get_by_role("button", name="Press again to end the test").click()
    page.locator('.lab-room[data-state="open"]').wait_for()
    return seen | {"revealed": room(page)}


def room(page) -> str:
    return page.locator(".lab-room").evaluate("(node) => node.outerHTML")


def test_nothing_tells_which_side_is_which(open_window, finished_pairs, tmp_path):
    """Page source, answers, headers, storage, names, sizes: all as in the mirror image."""
    mirror = swap_sides(finished_pairs, tmp_path / "mirror")
    one = look_around(open_window(DESKTOP, is_new=True), finished_pairs, tmp_path / "one")
    other = look_around(open_window(DESKTOP, is_new=True), mirror, tmp_path / "other")
    for what in one.keys() - {"sounds", "revealed", "bodies", "expectations"}:
        assert one[what] == other[what], what
    differing = one["bodies"].items() ^ other["bodies"].items()
    assert not differing, differing
    assert any("needed" in body for _, body in one["bodies"]), "the spy sees the pair's answer"
    assert one["downloads"], "they hold the answers"
    for body in one["expectations"] + other["expectations"]:
        assert not any(name in body for name in names_of(finished_pairs.plan)), body[:200]
    answers = [body for url, body in one["bodies"] if not url.startswith(own_files(url))]
    for text in (*answers, *one["room"]):
        told = SECRETS.search(text.lower())
        assert told is None, text[max(0, told.start() - 100) : told.end() + 100]
    # The two were not the same: the sound was changed round, and so is what the end reveals.
    assert one["sounds"] == other["sounds"][::-1] and one["sounds"][0] != one["sounds"][1]
    assert one["revealed"] != other["revealed"]


def beside_samples(wav: bytes) -> tuple[bytes, bytes]:
    """What is before the samples of a WAV, and what is behind them."""
    start = wav.index(b"data") + 8
    end = start + int.from_bytes(wav[start - 4 : start], "little")
    return wav[:start], wav[end:]


def test_a_clip_carries_only_sound(open_window, finished_pairs, tmp_path):
    """No name, no length of its own: beside the samples, both have the same bytes, which say that
    this is synthetic speech."""
    watch = open_window(DESKTOP, is_new=True)
    spy = Spy(watch.context, finished_pairs.plan)
    page = compare_tab(watch)
    open_zip(page, zip_comparison(finished_pairs, tmp_path))
    spy.settle(page)
    a, b = spy.sounds[:2]
    assert len(a) == len(b) and beside_samples(a) == beside_samples(b)
    assert b"Synthetic speech (dia_demo)" in beside_samples(a)[0]


def test_a_curious_person_gets_no_further_by_asking(open_window, finished_pairs, tmp_path):
    """Questions past the page's own script, while the test is blind."""
    page, sent = compare_tab(open_window(DESKTOP)), []
    page.on("request", lambda request: note_question(sent, request))
    open_zip(page, zip_comparison(finished_pairs, tmp_path))
    own = next(one for one in sent if one.get("do") == "look")
    (first, second) = finished_pairs.plan.trials
    for question in (
        {"do": "pictures", "trial": first.id},
        {"do": "clip", "trial": second.id, "letter": "A"},
        {"do": "clip", "trial": first.id, "letter": first.clips[0]},
        {"do": "clip", "trial": f"../{first.id}", "letter": "A"},
        {"do": "plan"},
        {"do": "__init__"},
    ):
        assert list(ask_server(page, own | question)) == ["error"], question
    answer = ask_server(page, own | {"do": "look"})
    assert answer["result"] == "" and set(answer["trial"]) == {
        "id", "number", "script", "letters", "needed",
    }  # fmt: skip


def note_question(sent: list, request) -> None:
    if "component_server" in request.url and request.post_data:
        data = json.loads(request.post_data).get("data")
        if isinstance(data, dict):
            sent.append(data)


def test_two_people_at_once_never_meet(open_window, finished_pairs, tmp_path):
    """Two browsers, two comparisons of the very same pairs, heard and judged at the same time."""
    ann, bob = compare_tab(open_window(DESKTOP)), compare_tab(open_window(PHONE))
    sent: dict = {ann: [], bob: []}
    for page, questions in sent.items():
        page.on("request", lambda one, questions=questions: note_question(questions, one))
    open_zip(ann, zip_comparison(finished_pairs, tmp_path / "a"))
    assert bob.locator('.lab-room[data-state="empty"]').is_visible()
    anns = next(one for one in sent[ann] if one.get("do") == "look")
    assert "trial" in ask_server(ann, anns), "Ann's own key opens it"
    for wrong in ("A" * 32, "", None):
        assert "error" in ask_server(bob, anns | {"key": wrong})
    open_zip(bob, zip_comparison(finished_pairs, tmp_path / "b"))
    bobs = [one for one in sent[bob] if one.get("do") == "look"][-1]
    assert anns["key"] != bobs["key"] and anns["id"] != bobs["id"]
    assert "error" in ask_server(bob, bobs | {"id": anns["id"]})
    for number in (1, 2):
        for page in (ann, bob):
            page.get_by_text(f"Pair {number} of 2").wait_for()
            wait_until_ready(page)
        for letter in "AB":
            for page in (ann, bob):
                page.keyboard.press(letter.lower())
            for page in (ann, bob):
                heard(page, letter)
        # Both votes are under way before either answer is awaited.
        vote(ann, "A")
        vote(bob, "B")
    for page, said in ((ann, "heard as clip 1"), (bob, "heard as clip 2")):
        page.locator('.lab-room[data-state="open"]').wait_for()
        text = page.locator(".lab-result").text_content()
        assert text.count(said) == 2 and "2 of 2 pairs judged" in text
    bob.reload()
    open_tab(bob, "Compare")
    bob.locator("#lab-kept input").click()
    kept = bob.locator("#lab-kept").get_by_role("option")
    assert kept.count() == 1, "a reload keeps one's own, and nothing else"
