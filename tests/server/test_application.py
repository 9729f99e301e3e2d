"""The server below the page: sessions cost little, and files come in only where there is room."""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import httpx
import pytest
import uvicorn
from gradio import queueing
from gradio.blocks import BlocksConfig
from gradio_client import Client
from starlette.testclient import TestClient

from dia_demo.files import ROOT
from dia_demo.server import application, run
from dia_demo.server.application import make_application
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui import gradio_internals
from dia_demo.ui.gradio_internals import Page, SessionStore
from dia_demo.ui.page import build_ui
from tests.helpers.asynchronous import run_async
from tests.helpers.speech import speech_of


@pytest.fixture(scope="module")
def page() -> Page:
    return build_ui(Synthesis(Settings()))


@pytest.fixture
def sessions(page) -> SessionStore:
    page.state_session_capacity = 20
    return SessionStore(page)


def test_a_session_makes_no_configuration_of_the_page(page, sessions, monkeypatch):
    made = []
    monkeypatch.setattr(BlocksConfig, "config_for_block", lambda *given: made.append(given))
    session = sessions["a"]
    for key, block in page.blocks.items():
        if not block.stateful:
            assert session[key] is block
            session._update_value_in_config(key, "a value")
    assert made == [] and session.config_values == {}


def test_what_one_session_changes_no_other_sees(page, sessions):
    key, block = next((k, b) for k, b in page.blocks.items() if isinstance(b, gr.Slider))
    sessions["a"][key] = gr.Slider(0, 9, render=False)
    assert sessions["a"][key].maximum == 9
    assert sessions["b"][key] is block and page.blocks[key] is block
    assert key in sessions["b"] and len(sessions["b"].blocks_config.blocks) == len(page.blocks)


def test_a_programs_calls_do_not_push_out_an_open_page(page, sessions):
    key = next(k for k, b in page.blocks.items() if isinstance(b, gr.Dropdown))
    sessions["page"][key] = gr.Dropdown(["mine"], render=False)
    sessions["closed"][key] = gr.Dropdown(["theirs"], render=False)
    sessions["closed"].is_closed = True
    for number in range(200):
        sessions[f"call {number}"]
    assert len(sessions.session_data) == 20 and "closed" not in sessions
    assert len(sessions["page"][key].choices) == 1
    for number in range(200):
        sessions[f"page {number}"][key] = gr.Dropdown(["yours"], render=False)
    assert len(sessions.session_data) == 20, "the bound holds for pages too"


@pytest.fixture
def client(page, tmp_path, monkeypatch):
    """The page's server, with room for 1 MB of temporary files."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "gradio"))
    settings = Settings(takes_folder=tmp_path, temp_bytes=1_000_000)
    with TestClient(make_application(page, settings, speech_of(settings))) as client:
        yield client


def upload(client, size: int, path="/gradio_api/upload", **headers):
    files = {"files": ("x.wav", bytes(size))}
    return client.post(path, files=files, headers=headers)


def test_the_server_has_our_sessions(client, page):
    assert isinstance(page.app.state_holder, SessionStore)
    assert page.app.state_holder.capacity == application.MAX_SESSIONS


def test_uploads_fit_into_the_bound_or_are_refused_before_they_are_written(client, tmp_path):
    assert upload(client, 600_000).status_code == 200
    refused = upload(client, 600_001)
    assert refused.status_code == 507 and "DIA_TEMP_GB" in refused.text
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) == 600_000
    assert upload(client, 200_000).status_code == 200, "a refusal reserves nothing"


def test_an_upload_without_an_acceptable_length_is_refused(client, tmp_path):
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    chunked = client.post("/gradio_api/upload", content=iter([b"x"]), headers=kind)
    assert chunked.status_code == 411
    too_long = {"Content-Length": str(101 * 2**20)} | kind
    assert client.post("/gradio_api/upload", content=b"x", headers=too_long).status_code == 413
    assert not (tmp_path / "gradio").exists() or not any((tmp_path / "gradio").rglob("*.*"))


@pytest.mark.parametrize("path", ["component_server", "process_recording", "component_server/"])
def test_files_come_in_at_one_place_only(client, path):
    assert upload(client, 10, f"/gradio_api/{path}").status_code == 415


def test_no_session_is_saved_for_a_deep_link(client, page, tmp_path):
    page.app.state_holder["mine"]
    answer = client.get("/gradio_api/deep_link", params={"session_hash": "mine"})
    assert answer.status_code == 404 and not (tmp_path / "gradio" / "deep_links").exists()


def test_the_app_reports_its_status_beside_the_page(page, tmp_path, monkeypatch):
    settings = Settings(takes_folder=tmp_path)
    synthesis, checked = Synthesis(settings), threading.Event()
    monkeypatch.setattr(synthesis, "unload_if_idle", checked.set)
    app = make_application(page, settings, speech_of(settings), synthesis=synthesis)
    with TestClient(app) as client:
        assert client.get("/config").status_code == 200 and client.get("/readyz").status_code == 404
        assert client.get("/health").json()["status"] == "ok"
        assert client.get("/ready").json() == {"ready": True}
        counts = client.get("/metrics").text
        assert checked.wait(20), "an idle model is unloaded"
    assert 'dia_http_requests_total{method="GET",route="page",status="200"} 1.0' in counts
    assert 'dia_http_requests_total{method="GET",route="/ready",status="200"} 1.0' in counts


def started(page: Page, folder: Path):
    """The application's life, as uvicorn begins and ends it."""
    settings = Settings(takes_folder=folder)
    app = make_application(page, settings, speech_of(settings))
    return app.router.lifespan_context(app)


def test_the_server_tidies_up_while_it_runs(page, tmp_path, monkeypatch):
    tidied = []
    monkeypatch.setattr(application.Scratch, "trim", lambda self: tidied.append(self.folder))
    monkeypatch.setattr(application, "release_free_memory", lambda: tidied.append("memory"))
    monkeypatch.setattr(application, "TIDY_SECONDS", 0.01)

    async def wait() -> None:
        async with started(page, tmp_path):
            for _ in range(500):
                if len(tidied) > 2:
                    break
                await asyncio.sleep(0.01)

    run_async(wait())
    assert tidied[:3] == [tmp_path, "memory", tmp_path]


def test_the_garbage_collector_skips_what_was_loaded_before_the_start(page, tmp_path):
    gc.unfreeze()

    async def frozen_objects() -> int:
        async with started(page, tmp_path):
            return gc.get_freeze_count()

    try:
        assert run_async(frozen_objects()) > 10 * len(gc.get_objects())
    finally:
        gc.unfreeze()


def test_the_garbage_collector_runs_once_the_server_does(page, tmp_path):
    """app.py disables it while everything is loaded."""

    async def start() -> bool:
        async with started(page, tmp_path):
            return gc.isenabled()

    gc.disable()
    try:
        assert run_async(start())
    finally:
        gc.enable()
        gc.unfreeze()


@pytest.fixture
def echo(tmp_path, monkeypatch):
    """A running server with one event, its queue ours: the page and its address."""
    monkeypatch.setenv("GRADIO_ANALYTICS_CACHE_FREQUENCY", "1000")  # As `configure_gradio`.
    with Page() as page:
        said, heard = gr.Textbox(), gr.Textbox()
        said.submit(lambda text: text, said, heard, api_name="echo")
    page.queue()
    with served(page, tmp_path) as url:
        yield page, url


@contextmanager
def served(page: Page, folder: Path):
    """The page on a free port, in a thread: its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    settings = Settings(takes_folder=folder)
    app = make_application(page, settings, speech_of(settings))
    server = run.Server(uvicorn.Config(app, log_level="warning"), page)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    url = run.address_of(listening)
    thread.start()
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join(timeout=120)
    assert not thread.is_alive()


def test_an_idle_queue_sleeps_until_an_event_arrives(echo, monkeypatch):
    """gradio's own wakes up 1,000 times a second, whether or not anybody is there."""
    page, url = echo
    sleeps, sleep = [], asyncio.sleep

    async def recorded_sleep(seconds: float) -> None:
        sleeps.append(seconds)
        await sleep(seconds)

    patched = SimpleNamespace(**vars(asyncio) | {"sleep": recorded_sleep})
    monkeypatch.setattr(queueing, "asyncio", patched)
    client = Client(url, verbose=False)
    assert [client.predict(str(number), api_name="/echo") for number in range(5)] == list("01234")
    assert 5 <= len(sleeps) <= 15 and min(sleeps) == gradio_internals.IDLE_SECONDS


def test_events_that_wait_for_a_place_get_one(echo, monkeypatch):
    page, url = echo
    client = Client(url, verbose=False)
    page._queue.active_jobs = [None]
    jobs = [client.submit(str(number), api_name="/echo") for number in range(6)]
    assert [job.result(timeout=120) for job in jobs] == list("012345")


@pytest.mark.long
def test_an_event_loads_no_matplotlib():
    """gradio would load it for the backend of plots, which the page does not have."""
    script = (
        "import sys\n"
        "from dia_demo.services.settings import Settings\n"
        "from dia_demo.ui.gradio_internals import configure_gradio\n"
        "configure_gradio(Settings())\n"
        "from gradio import route_utils, utils\n"
        "with utils.MatplotlibBackendMananger(): pass\n"
        "assert route_utils.utils is utils and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=300)


def test_the_console_suggests_no_public_link(tmp_path, capsys):
    with Page() as page:
        gr.Markdown("Hello")
    with served(page, tmp_path) as url:
        assert httpx.get(url, timeout=120, trust_env=False).status_code == 200
    assert capsys.readouterr().out == f"Open {url} in a browser. Press Ctrl+C to quit.\n"


def test_only_one_module_imports_the_insides_of_gradio():
    module = r"from gradio(\.| +import (utils|routes|queueing))|import gradio\."
    inside = re.compile(rf"^\s*({module})", re.MULTILINE)
    package = ROOT / "dia_demo"
    found = [path for path in package.rglob("*.py") if inside.search(path.read_text())]
    assert found == [package / "ui" / "gradio_internals.py"]
