"""What tests share: a tiny service and comparisons made by it, a browser on the real app.

And care for a torchaudio that does not load: what imports the package is imported in fixtures.
"""

import gc
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

# First of all: DIA_CPU takes effect when the package is imported, before torch is.
import dia_demo  # noqa: F401

# Before gradio is imported, so that it writes no stubs.
import dia_demo.ui  # noqa: F401

# isort: split
import pytest
import torch

from dia_demo.files import cache_folder
from tests.helpers.page import browser
from tests.helpers.page.windows import Windows
from tools.torchaudio_guard import hide_broken_torchaudio

# Kept for the next run, since it has the compiled kernels, but not the user's: what takes of tests
# say of this machine's speed is nothing to go by.
os.environ.setdefault("DIA_CACHE", str(cache_folder() / "tests"))
hide_broken_torchaudio()
# Small models on shared cores: a second thread waits more than it helps.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A tiny checkpoint with a codec, to be read alone."""
    from tests.helpers.models.checkpoints import write_small

    return write_small(tmp_path_factory.mktemp("checkpoint") / "small", codec=True)


@pytest.fixture(scope="session")
def synthesis(folder, tmp_path_factory):
    """One service for all tests: whatever a test does to it, the next one finds it working."""
    from dia_demo.services.settings import Settings
    from dia_demo.services.synthesis import Synthesis
    from tests.helpers.synthesis_requests import runtime

    return Synthesis(Settings(runtime(folder), takes_folder=tmp_path_factory.mktemp("takes")))


@pytest.fixture
def talkative(monkeypatch):
    """A report after every step, instead of a few a second."""
    monkeypatch.setattr("dia_demo.engine.events.REPORT_SECONDS", 0.0)
    monkeypatch.setattr("dia_demo.services.queue.POSITION_SECONDS", 0.001)


@pytest.fixture
def slow_steps(monkeypatch):
    """A step takes 5 ms: whoever reads the events is far from the end of a long take."""
    from dia_demo.engine.batch import Batch

    step = Batch.step

    def step_slowly(batch):
        time.sleep(0.005)
        step(batch)

    monkeypatch.setattr(Batch, "step", step_slowly)


@pytest.fixture
def in_threads(monkeypatch):
    """A device's process is a thread, and reports after every step."""
    from tests.helpers.engines import until
    from tests.helpers.stand_ins.faults import ThreadProcess

    for module in ("selfcheck.runner", "remote"):
        monkeypatch.setattr(f"dia_demo.accelerator.{module}.DeviceProcess", ThreadProcess)
    monkeypatch.setattr("dia_demo.engine.events.REPORT_SECONDS", 0.0)
    yield
    # torch sets the form of attention for the whole process: later takes on the CPU would differ.
    until(torch.backends.cuda.flash_sdp_enabled, 30)


@pytest.fixture(scope="session")
def base(folder, synthesis):
    """The settings that comparisons start from: takes of 60 tokens, about a second."""
    from dia_demo.config import RuntimeConfig
    from dia_demo.services.listening.plan.setting import Setting

    params = replace(synthesis.models[str(folder)].config.defaults, max_tokens=60)
    return Setting(params, RuntimeConfig(model=str(folder)))


@pytest.fixture(scope="session")
def two_settings(base):
    """Two settings that differ in what one hears."""
    return [base.change({"temperature": 0.7}), base.change({"temperature": 1.9})]


@pytest.fixture(scope="session")
def finished(two_settings, synthesis, tmp_path_factory):
    """Four finished pairs nobody has voted on; tests must not vote on them."""
    from dia_demo.services.listening.comparison import Comparison
    from dia_demo.services.listening.plan.plan import make_plan
    from tests.helpers.comparisons import SCRIPTS, make

    plan = make_plan("preference", two_settings, SCRIPTS, (5, 6))
    comparison = Comparison.create(tmp_path_factory.mktemp("finished") / "dir", plan, synthesis)
    comparison.events = make(comparison, synthesis)
    return comparison


@pytest.fixture
def voting(finished, tmp_path):
    """A copy of the finished pairs to vote on."""
    from dia_demo.services.listening.comparison import Comparison

    shutil.copytree(finished.folder, tmp_path / "voting")
    return Comparison.open(tmp_path / "voting")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A folder of its own for prepared weights; models are loaded for one kernel."""
    from dia_demo.model.weights import packed_cache
    from tests.helpers.models.kernels import choose_compiled

    monkeypatch.setattr(packed_cache, "cache_folder", lambda: tmp_path / "cache")
    choose_compiled(monkeypatch)
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """The address of the real app, running as a process of its own."""
    with browser.running_app(tmp_path_factory.mktemp("app")) as url:
        yield url


@pytest.fixture(scope="session")
def finished_pairs(tmp_path_factory):
    """Two finished pairs that differ in temperature; tests open copies of it on the page."""
    from tests.helpers.page.lab_page import make_pairs

    return make_pairs(tmp_path_factory.mktemp("lab-made"))


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests: playwright cannot be started twice in a process."""
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect.set_options(timeout=browser.WAIT_MS)
    with sync_api.sync_playwright() as playwright:
        path = browser.find_chromium(playwright.chromium.executable_path)
        if path is None and not os.environ.get("CI"):
            pytest.skip(browser.GET_A_BROWSER)
        assert path, browser.GET_A_BROWSER
        launched = playwright.chromium.launch(executable_path=path, args=browser.CHROMIUM_ARGS)
        yield launched
        launched.close()


def pytest_xdist_auto_num_workers(config) -> int:
    """As many processes as cores, also where a container has fewer than its machine."""
    from dia_demo.machine.system import granted_cores

    return granted_cores()


# Tests that are marked by their folder.
FOLDER_MARKERS = {
    "browser": "browser",
    "kernels": "kernels",
    "parity": "slow",
    "security": "slow",
    "tools": "slow",
    "training": "slow",
}


# Its file takes longest: begun last it would hold up the end.
FIRST = "test_problems.py"


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Exclude imported modules from garbage collection: traversing them takes a sixth of the
    suite's time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items):
    tests = Path(__file__).parent
    items.sort(
        key=lambda item: (item.path.name != FIRST, tests / "browser" not in item.path.parents)
    )
    for item in items:
        folder = item.path.relative_to(tests).parts[0]
        if folder in FOLDER_MARKERS:
            item.add_marker(FOLDER_MARKERS[folder])


def pytest_xdist_make_scheduler(config, log):
    """A file's tests run in one process; all short ones of the browser do, so that they share an
    app and a Chromium."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            is_short = config.option.markexpr != "long"
            return "browser" if is_short and "/browser/" in nodeid else super()._split_scope(nodeid)

    return Scheduling(config, log)


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(scope="session")
def windows(chromium):
    """The windows that tests take turns with."""
    return Windows(chromium)


@pytest.fixture(scope="module")
def shared_page(windows, home):
    """One page for the tests of a file that say all they need and leave the nano voice chosen."""
    watch = windows.open(home, viewport=browser.DESKTOP, color_scheme="light")
    yield watch.open()
    windows.give_back(watch, is_reusable=True)
    assert watch.outside == [] and watch.errors == []


@pytest.fixture
def open_window(windows, home, request):
    """A function that opens a window of its own, with nothing remembered from others.

    After the test, no page may have asked for anything outside or shown an error in the console.
    """
    watches = []

    def open_watched(
        size=browser.DESKTOP, scheme="light", at=home, is_new=False, **options
    ) -> browser.Watch:
        options |= {"viewport": size, "color_scheme": scheme, "accept_downloads": True}
        watches.append(windows.open(at, is_new, **options))
        return watches[-1]

    yield open_watched
    failed = request.node.stash[FAILED]
    if failed:
        for page in (page for watch in watches for page in watch.context.pages):
            print(f"What the page said:\n{page.locator('body').inner_text()}\n")
    for watch in watches:
        windows.give_back(watch, is_reusable=not failed)
        assert watch.outside == [], "the page asked for something outside this machine"
        assert watch.errors == [], "the browser's console shows errors"
