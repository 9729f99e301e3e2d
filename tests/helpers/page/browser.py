"""What the browser tests stand on: the real app as a process of its own, and a real chromium."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path

from dia_demo.files import ROOT, cache_folder
from tests.helpers.stand_ins.bench_stubs import QUICK, write_speed
from tools.app_process import START_SECONDS, app_environment, free_port

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
CHROMIUM_ARGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --autoplay-policy=no-user-gesture-required"
).split()
# The app prints this when gradio has started the queue of its events.
LAUNCHED = "in a browser"
# What gradio's page writes when it is left or reloaded while an event runs.
LEFT = re.compile("AbortError|Connection errored out")
GET_A_BROWSER = (
    "no chromium found: install one (`apt-get install chromium`, or "
    "`python -m playwright install chromium`), or name it in DIA_CHROMIUM"
)


def find_chromium(bundled: str) -> str | None:
    """A chromium to drive: the one named in DIA_CHROMIUM, the system's, or playwright's own."""
    names = [os.environ.get("DIA_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]
    for name in names:
        if name and (path := shutil.which(name)):
            return path
    return bundled if Path(bundled).exists() else None


@contextmanager
def running_app(
    folder: Path,
    port: int | None = None,
    module: str = "",
    options: Sequence[str] = (),
    **given: str,
):
    """`python app.py` on a free port, offline, with all it writes in `folder`; yields its URL.

    module: an app to run in its place, by its module's name. options: of its command line.
    given: environment variables beside or above the usual.
    """
    port = port or free_port()
    env = app_environment(folder, port) | {"DIA_CACHE": str(known_machine(folder))} | given
    log = folder / "app.log"
    with open(log, "w") as output:
        command = [sys.executable, *(["-m", module] if module else ["app.py"]), *options]
        app = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_up(url, app, log)
            yield url
        finally:
            app.terminate()
            try:
                app.wait(timeout=120)
            except subprocess.TimeoutExpired:
                app.kill()
                app.wait()


def known_machine(folder: Path) -> Path:
    """A cache folder in `folder`, in which this machine's speed is known to be `QUICK`: no app
    measures it beside the tests. Compiled kernels are those of all runs."""
    shared, own = cache_folder(), folder / "cache"
    if not own.exists():
        own.mkdir()
        (shared / "kernels").mkdir(parents=True, exist_ok=True)
        (own / "kernels").symlink_to(shared / "kernels")
        if (shared / "kernels.json").exists():
            shutil.copy(shared / "kernels.json", own)
        write_speed(own, QUICK)
    return own


def wait_until_up(url: str, app: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if app.poll() is not None:
            raise RuntimeError(f"the app ended with {app.returncode}:\n{log.read_text()}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                if LAUNCHED in log.read_text():
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.2)
    raise RuntimeError(f"the app did not answer within {START_SECONDS} s:\n{log.read_text()}")


# On a busy machine.
WAIT_MS = 300_000


class Watch:
    """Opens pages and notes what must not happen: console errors, requests that leave here."""

    def __init__(self, context, home: str) -> None:
        self.home = home
        self.context = context
        self.errors: list[str] = []
        self.outside: list[str] = []
        self.key: str | None = None  # Of `windows.Windows`.
        context.set_default_timeout(WAIT_MS)
        context.on("request", self._request)
        context.on("response", self._response)

    def stop(self) -> None:
        """Note nothing more of what happens in the context."""
        self.context.remove_listener("request", self._request)
        self.context.remove_listener("response", self._response)

    def open(self):
        """A page of the app, ready to be used."""
        page = self.context.new_page()
        page.on("console", lambda message: self._console(message))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto(self.home)
        page.get_by_role("button", name="Generate").wait_for()
        page.wait_for_function("window.diaRestored === true")
        return page

    def _console(self, message) -> None:
        if message.type == "error" and not LEFT.search(message.text):
            self.errors.append(message.text)

    def _response(self, response) -> None:
        """Print what a failure of the server was about: the console only has its number."""
        if response.status >= 500:
            print(f"{response.status} for {response.url}: {response.request.post_data}")

    def _request(self, request) -> None:
        if not request.url.startswith((self.home, "data:", "blob:", "about:")):
            self.outside.append(request.url)


class Interceptor:
    """The requests of a window's pages to one address: `handle` answers them, or they pass.

    Made before the pages are opened. A page that begins to be intercepted later goes on sending
    past it for a moment: on a busy machine, a press that follows at once is missed.
    """

    def __init__(self, context, pattern: str) -> None:
        self.handle: Callable | None = None
        context.route(pattern, self._route)

    def _route(self, route) -> None:
        if self.handle:
            self.handle(route)
        else:
            route.continue_()


def script_of(page):
    """The text area of the script."""
    return page.get_by_label("Script", exact=True)


def write_script(page, text: str, max_tokens: int | None = None) -> None:
    """Fill the form in, and wait until the checker has read it."""
    if max_tokens is not None:
        number = page.get_by_label("number input for Max tokens")
        number.fill(str(max_tokens))
        number.press("Tab")
        page.get_by_text(f"{max_tokens:,} tokens ≈").wait_for()
    script_of(page).fill(text)
    size = len(text.replace("[S1]", "1").replace("[S2]", "2").encode())
    page.get_by_text(re.compile(rf"\b{size:,} of [\d,]+ bytes")).wait_for()


def choose(page, label: str, option: str) -> None:
    page.get_by_label(label, exact=True).click()
    choose_option(page, option)


def choose_option(page, option: str) -> None:
    """Choose the first option of an open menu whose name begins so."""
    # Playwright takes a slash for the end of the expression.
    beginning = re.escape(option).replace("/", r"\/")
    page.get_by_role("option", name=re.compile(f"^{beginning}")).first.click()


def press(page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


FOUR_FRAMES = """() => new Promise((done) => {
  let frames = 4;
  const next = () => (frames-- ? requestAnimationFrame(next) : done());
  next();
})"""


def wait_for_values(page) -> None:
    """Wait until the fields that have just appeared can be filled in.

    gradio (6.31) sends the fields that a tab or a folded part shows for the first time their
    values once more, up to three frames after they have appeared. What was entered meanwhile is
    lost.
    """
    page.evaluate(FOUR_FRAMES)


def open_tab(page, name: str) -> None:
    """Choose a tab; its fields can be filled then."""
    page.get_by_role("tab", name=name).click()
    page.get_by_role("tab", name=name, selected=True).wait_for()
    page.locator('[role="tabpanel"]:visible button:visible').first.wait_for()
    wait_for_values(page)


def unfold(page, name: str) -> None:
    """Open a part of the page if it is folded; its fields can be filled then."""
    its_name = re.compile(f"^{re.escape(name)}")
    button = page.get_by_role("button", name=its_name)
    if button.get_attribute("aria-expanded") != "true":
        button.click()
    page.get_by_role("button", name=its_name, expanded=True).wait_for()
    wait_for_values(page)


def tab_to(page, selector: str) -> None:
    """Press Tab until the focus is there, as a person without a mouse does."""
    for _ in range(200):
        if page.evaluate("(chosen) => document.activeElement?.matches(chosen)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} cannot be reached with the Tab key")


# Counts how often a button was taken away, and presses it the very moment it first comes back. The
# button is looked up each time: a page that is still being built may replace it.
AT_ONCE = """(selector) => {
  const isDisabled = () => document.querySelector(selector)?.disabled;
  let before = isDisabled();
  window.begun = 0;
  new MutationObserver(() => {
    const now = isDisabled();
    if (now === undefined || now === before) return;
    before = now;
    if (now) window.begun += 1;
    else if (window.begun === 1) document.querySelector(selector).click();
  }).observe(document.body,
    { attributes: true, attributeFilter: ["disabled"], childList: true, subtree: true });
}"""


def press_twice(page, name: str, selector: str, meanwhile: Callable[[], object] = int) -> None:
    """Press a button, do something `meanwhile`, press it again the moment it is back; both times
    a run must begin, and the button come back."""
    page.evaluate(AT_ONCE, selector)
    press(page, name)
    page.wait_for_function("window.begun >= 1")
    meanwhile()
    page.wait_for_function("window.begun === 2")
    meanwhile()
    page.wait_for_function("(selector) => !document.querySelector(selector).disabled", arg=selector)
    assert page.evaluate("window.begun") == 2


def wait_state(page, *states: str) -> str:
    """Wait until the status shows one of these states; its text."""
    chosen = ", ".join(f'[data-state="{state}"]' for state in states)
    page.locator(chosen).wait_for()
    return page.locator("#status .status-line").inner_text()


def make_take(page) -> str:
    """Press Generate, and wait for the end of this run, not of one before; the status's text."""
    page.evaluate("document.querySelector('#status .status').dataset.before = ''")
    press(page, "Generate")
    page.locator(
        "#status .status:not([data-before]):is([data-state=done], [data-state=cut])"
    ).wait_for()
    return page.locator("#status .status-line").inner_text()


def figure(page, name: str) -> str:
    """One figure of the take, by its name on the page."""
    return (
        page.locator(".figures div", has=page.get_by_text(name, exact=True))
        .locator("dd")
        .inner_text()
    )
