"""What a person waits for on the page, measured in a real browser with the embedded voice.

    python -m tools.measure_page [--starts N] [--takes N]

Prints seconds from `python app.py` to a usable page (the process is started twice unless told
otherwise: the first start also fills the system's file cache), from the click to the first sound at
the speakers and to the finished take, and the take's own figures. Needs requirements-dev.txt and a
chromium.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.helpers.page import browser

# Notes when Generate is pressed, and the time for which the first sound is sent to the speakers.
NOTE_TIMES = """document.addEventListener("click", ({ target }) => {
  if (target.closest("#generate")) Object.assign(window, { pressed: performance.now(), first: 0 });
}, true);
const { start } = AudioBufferSourceNode.prototype;
AudioBufferSourceNode.prototype.start = function (when = 0, ...others) {
  const wait = Math.max(0, when - this.context.currentTime);
  window.first ||= performance.now() + 1000 * wait;
  start.call(this, when, ...others);
};"""


def measure_take(page: Page) -> tuple[float, float]:
    """Seconds from the click to the first sound, and to the finished take."""
    began = time.perf_counter()
    page.get_by_role("button", name="Generate", exact=True).click()
    page.wait_for_function("window.first > 0")
    browser.wait_state(page, "done", "cut")
    whole = time.perf_counter() - began
    return page.evaluate("(window.first - window.pressed) / 1000"), whole


def measure_start(play, folder: Path, takes: int) -> None:
    """One start of the app, and a few takes of the script it opens with."""
    executable = browser.find_chromium(play.chromium.executable_path)
    chromium = play.chromium.launch(executable_path=executable, args=browser.CHROMIUM_ARGS)
    began = time.perf_counter()
    with browser.running_app(folder) as url:
        page = chromium.new_page()
        page.set_default_timeout(600_000)
        page.add_init_script(NOTE_TIMES)
        page.goto(url)
        page.wait_for_function("window.diaRestored === true")
        print(f"page usable {time.perf_counter() - began:.1f} s after the start")
        for number in range(takes):
            first, whole = measure_take(page)
            names = ("Audio", "Realtime factor", "Codec only")
            figures = ", ".join(f"{name} {browser.figure(page, name)}" for name in names)
            print(f"take {number + 1}: first sound {first:.2f} s, done {whole:.1f} s ({figures})")
    chromium.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=2, metavar="N")
    parser.add_argument("--takes", type=int, default=3, metavar="N", help="takes of each start")
    options = parser.parse_args()
    with sync_playwright() as play:
        for _ in range(options.starts):
            with tempfile.TemporaryDirectory() as folder:
                measure_start(play, Path(folder), options.takes)


if __name__ == "__main__":
    main()
