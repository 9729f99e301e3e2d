"""A person with a browser: opens the page, makes a take and measures what the player plays."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
import soundfile
from playwright.sync_api import Browser, Error, Page, sync_playwright

from dia_demo.audio import integrated_loudness
from tests.helpers.page import browser

LINE = "We walk along the river and talk of the weather."
SCRIPT = "[S1] We walk along the river. What a fine day. [S2] It is, and we have time. [S1]"
# What speech of a few seconds is: neither a click nor hum nor noise at full scale.
SECONDS, LUFS = (2.0, 15.0), (-40.0, -8.0)

SPACE_ID = "someone/dia"
# What gradio's bar asks for: the Space, its author's picture, two fonts.
BAR = re.compile(rf"https://[^/]+/(api/(spaces/{SPACE_ID}|\w+/\w+/avatar)|css2\?family)")

# Notes every text of the status while it runs.
NOTE_STATUS = """() => {
  window.seenWhileRunning = [];
  new MutationObserver(() => {
    const status = document.querySelector('#status .status[data-state="running"]');
    if (status) window.seenWhileRunning.push(status.innerText);
  }).observe(document.querySelector("#status"), {
    subtree: true, childList: true, characterData: true, attributes: true,
  });
}"""


@dataclass(frozen=True)
class HeardTake:
    """What a visitor heard: seconds, loudness in LUFS (None for silence), and how many times the
    page reported seconds of audio while the take was made."""

    seconds: float
    lufs: float | None
    reports: int

    @property
    def is_speech(self) -> bool:
        loud = self.lufs is not None and LUFS[0] <= self.lufs <= LUFS[1]
        return loud and SECONDS[0] <= self.seconds <= SECONDS[1]

    def __str__(self) -> str:
        loudness = "silence" if self.lufs is None else f"{self.lufs:.1f} LUFS"
        return f"{self.seconds:.1f} s, {loudness}, {self.reports} reports of progress"


class Visitor:
    """One window on the page at `home`, and what must not happen in it.

    On a Space, gradio puts a bar above the page, and asks the hub for what it shows: the visitor's
    network answers that it exists.
    """

    def __init__(self, chromium: Browser, home: str) -> None:
        self._watch = browser.Watch(chromium.new_context(viewport=browser.DESKTOP), home)
        self._failed: list[str] = []
        self._watch.context.on("response", self._note_response)
        self._watch.context.route(re.compile("^https:"), _answer_bar)

    def open(self) -> Page:
        """The page, ready to be used."""
        return self._watch.open()

    def close(self) -> None:
        self._watch.context.close()

    def problems(self) -> list[str]:
        """Errors in the console, requests outside the path of the app, answers that are errors."""
        urls = [url for url in self._watch.outside if not BAR.match(url)]
        outside = [f"asked outside: {url}" for url in urls]
        return [*self._failed, *self._watch.errors, *outside]

    def _note_response(self, response) -> None:
        if response.status >= 400:
            self._failed.append(f"{response.status} for {response.url}")


def reload(page: Page) -> None:
    """Reload a page, which may be reloading itself because it has found another program."""
    with suppress(Error):
        page.reload()
    page.wait_for_load_state()


def wait_until_usable(page: Page) -> None:
    """Wait until the form has what this browser remembers."""
    page.wait_for_function("window.diaRestored === true")


def make_take(page: Page) -> HeardTake:
    """Press Generate, and read the file that the player fetched."""
    browser.write_script(page, SCRIPT, max_tokens=860)
    page.evaluate(NOTE_STATUS)

    def is_take(response) -> bool:
        return "/file=" in response.url and response.url.endswith(".wav")

    with page.expect_response(is_take) as waiting:
        browser.press(page, "Generate")
        browser.wait_state(page, "done", "cut")
    body = page.request.get(waiting.value.url).body()
    samples, rate = soundfile.read(io.BytesIO(body), dtype="float32")
    reports = page.evaluate("window.seenWhileRunning")
    return HeardTake(
        len(samples) / rate,
        integrated_loudness(samples, rate) if np.abs(samples).max(initial=0) > 0 else None,
        len({text for text in reports if "s of audio" in text}),
    )


def _answer_bar(route) -> None:
    route.fulfill(json={"id": SPACE_ID, "author": SPACE_ID.split("/")[0], "likes": 0})


def begin_take(page: Page) -> None:
    """Press Generate for a long take, and see it run."""
    script = " ".join(f"[S{1 + turn % 2}] {LINE}" for turn in range(8))
    browser.write_script(page, script, max_tokens=1536)
    browser.press(page, "Generate")
    browser.wait_state(page, "running", "done", "cut")


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """A browser without a window. Raises RuntimeError if none is installed."""
    with sync_playwright() as play:
        path = browser.find_chromium(play.chromium.executable_path)
        if path is None:
            raise RuntimeError(browser.GET_A_BROWSER)
        launched = play.chromium.launch(executable_path=path, args=browser.CHROMIUM_ARGS)
        yield launched
        launched.close()
