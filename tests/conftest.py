"""What tests share: a browser on the real app, and care for a torchaudio that does not load."""

import os

import browser
import pytest
import torch

from tools.torchaudio_guard import hide_broken_torchaudio

hide_broken_torchaudio()
# Small models on shared cores: a second thread waits more than it helps.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """The address of the real app, running as a process of its own."""
    with browser.running_app(tmp_path_factory.mktemp("app")) as url:
        yield url


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Two finished pairs that differ in temperature; tests open copies of it on the page."""
    from lab_page import make_pairs

    return make_pairs(tmp_path_factory.mktemp("lab-made"))


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests: playwright cannot be started twice in a process."""
    sync_playwright = pytest.importorskip("playwright.sync_api").sync_playwright
    with sync_playwright() as playwright:
        path = browser.find_chromium(playwright.chromium.executable_path)
        if path is None and not os.environ.get("CI"):
            pytest.skip(browser.GET_A_BROWSER)
        assert path, browser.GET_A_BROWSER
        launched = playwright.chromium.launch(executable_path=path, args=browser.CHROMIUM_ARGS)
        yield launched
        launched.close()


@pytest.fixture
def visit(chromium, home):
    """Opens a window of its own (nothing remembered) and, after the test, holds it to account."""
    watches = []

    def open_window(size=browser.DESKTOP, scheme="light") -> browser.Watch:
        context = chromium.new_context(viewport=size, color_scheme=scheme, accept_downloads=True)
        watches.append(browser.Watch(context, home))
        return watches[-1]

    yield open_window
    for watch in watches:
        watch.context.close()
        assert watch.outside == [], "the page asked for something outside this machine"
        assert watch.errors == [], "the browser's console shows errors"
