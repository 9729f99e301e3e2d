"""The server below the page: sessions cost little, and files come in only where there is room."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from types import SimpleNamespace

import gradio as gr
import pytest
from gradio import networking, queueing
from gradio.blocks import BlocksConfig
from gradio.routes import App
from gradio_client import Client
from starlette.testclient import TestClient

from dia_demo.files import ROOT
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui import serving
from dia_demo.ui.page import build_ui, serve
from dia_demo.ui.serving import SessionStore, server_options
from tests.helpers.asynchronous import run_async


@pytest.fixture(scope="module")
def page() -> gr.Blocks:
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
    options = server_options(settings)
    page.max_file_size = page.allowed_paths = page.blocked_paths = None
    app = App.create_app(page, app_kwargs=options["app_kwargs"])
    with TestClient(app) as client:
        yield client


def upload(client, size: int, path="/gradio_api/upload", **headers):
    files = {"files": ("x.wav", bytes(size))}
    return client.post(path, files=files, headers=headers)


def test_the_server_has_our_sessions(client):
    assert isinstance(client.app.state_holder, SessionStore)


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


def test_no_session_is_saved_for_a_deep_link(client, tmp_path):
    client.app.state_holder["mine"]
    answer = client.get("/gradio_api/deep_link", params={"session_hash": "mine"})
    assert answer.status_code == 404 and not (tmp_path / "gradio" / "deep_links").exists()


def test_the_server_tidies_up_while_it_runs(page, tmp_path, monkeypatch):
    tidied = []
    monkeypatch.setattr(serving.Scratch, "trim", lambda self: tidied.append(self.folder))
    monkeypatch.setattr(serving, "release_free_memory", lambda: tidied.append("memory"))
    monkeypatch.setattr(serving, "TIDY_SECONDS", 0.01)
    options = server_options(Settings(takes_folder=tmp_path))

    async def run() -> None:
        app = SimpleNamespace(get_blocks=lambda: page)
        async with options["app_kwargs"]["lifespan"](app):
            for _ in range(500):
                if len(tidied) > 2:
                    break
                await asyncio.sleep(0.01)

    run_async(run())
    assert tidied[:3] == [tmp_path, "memory", tmp_path]


def test_the_garbage_collector_skips_what_was_loaded_before_the_start(page, tmp_path):
    gc.unfreeze()
    options = server_options(Settings(takes_folder=tmp_path))

    async def frozen_objects() -> int:
        async with options["app_kwargs"]["lifespan"](SimpleNamespace(get_blocks=lambda: page)):
            return gc.get_freeze_count()

    try:
        assert run_async(frozen_objects()) > 10 * len(gc.get_objects())
    finally:
        gc.unfreeze()


def test_the_garbage_collector_runs_once_the_server_does(page, tmp_path):
    """app.py disables it while everything is loaded."""
    options = server_options(Settings(takes_folder=tmp_path))

    async def start() -> bool:
        async with options["app_kwargs"]["lifespan"](SimpleNamespace(get_blocks=lambda: page)):
            return gc.isenabled()

    gc.disable()
    try:
        assert run_async(start())
    finally:
        gc.enable()
        gc.unfreeze()


def test_a_page_that_answers_late_does_not_end_the_app(tmp_path, monkeypatch):
    """On a busy machine it may take longer than the 3 s that gradio's own look at it waits."""
    monkeypatch.setattr(networking, "url_ok", lambda url: False)
    with gr.Blocks() as page:
        gr.Markdown("Hello")
    options = server_options(Settings(takes_folder=tmp_path))
    page.launch(prevent_thread_lock=True, quiet=True, share=False, **options)
    page.close()


@pytest.fixture
def echo(tmp_path, monkeypatch):
    """A running server with one event, its queue ours."""
    monkeypatch.setenv("GRADIO_ANALYTICS_CACHE_FREQUENCY", "1000")  # As `configure_gradio`.
    options = server_options(Settings(takes_folder=tmp_path))
    with gr.Blocks() as page:
        said, heard = gr.Textbox(), gr.Textbox()
        said.submit(lambda text: text, said, heard, api_name="echo")
    _, url, _ = page.queue().launch(prevent_thread_lock=True, quiet=True, share=False, **options)
    yield page, url
    page.close()


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
    assert 5 <= len(sleeps) <= 15 and min(sleeps) == serving.IDLE_SECONDS


def test_events_that_wait_for_a_place_get_one(echo, monkeypatch):
    page, url = echo
    client = Client(url, verbose=False)
    page._queue.active_jobs = [None]
    jobs = [client.submit(str(number), api_name="/echo") for number in range(6)]
    assert [job.result(timeout=20) for job in jobs] == list("012345")


def test_an_event_loads_no_matplotlib():
    """gradio would load it for the backend of plots, which the page does not have."""
    script = (
        "import sys\n"
        "from dia_demo.services.settings import Settings\n"
        "from dia_demo.ui.serving import configure_gradio\n"
        "configure_gradio(Settings())\n"
        "from gradio import route_utils, utils\n"
        "with utils.MatplotlibBackendMananger(): pass\n"
        "assert route_utils.utils is utils and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=120)


def test_the_console_suggests_no_public_link(tmp_path, monkeypatch, capsys):
    with gr.Blocks() as page:
        gr.Markdown("Hello")
    monkeypatch.setattr(page, "block_thread", lambda: None)
    serve(page, Settings(takes_folder=tmp_path))
    page.close(verbose=False)
    printed = capsys.readouterr().out
    assert printed == f"Open {page.local_url} in a browser. Ctrl+C ends the program.\n"
