"""An app whose takes the engine of another app makes, each in a process of its own."""

import subprocess
import sys

import httpx
import pytest
from gradio_client import Client

from dia_demo.audio import read_metadata
from dia_demo.files import ROOT
from tools.app_process import app_environment
from tools.chaos.program import LONG, SHORT, Program, run_program, speech, whole

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with run_program(tmp_path_factory.mktemp("engine")) as app:
        yield app


@pytest.fixture(scope="module")
def page(engine, tmp_path_factory):
    """An app without a model of its own."""
    with run_program(tmp_path_factory.mktemp("page"), {"DIA_ENGINE": engine.url}) as app:
        yield app


def test_programs_cannot_tell_the_difference(page, engine):
    assert whole(page.url, LONG) == whole(engine.url, LONG)


def test_a_call_of_the_page_is_the_same_take(page, engine, tmp_path):
    codes = []
    for app in (page, engine):
        client = Client(app.url, download_files=str(tmp_path), verbose=False)
        file, figures = client.predict(script=SHORT, seed=3, api_name="/generate")
        assert figures["finish_reason"] == "end"
        codes.append(read_metadata(file)["codes"])
    assert codes[0] == codes[1]


def test_the_command_line_uses_it(engine, tmp_path):
    environment = app_environment(tmp_path, 0)
    files = []
    for more in ({"DIA_ENGINE": engine.url}, {}):
        files.append(tmp_path / f"{len(files)}.npy")
        command = [sys.executable, "-m", "dia_demo", "say", SHORT, "--seed", "5"]
        subprocess.run(
            [*command, "--codes", str(files[-1])], cwd=ROOT, env=environment | more, check=True
        )
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_take_goes_on_when_its_engine_is_started_again(tmp_path):
    """On the same port, within the time for which a page waits for it."""
    for name in ("engine", "page"):
        (tmp_path / name).mkdir()
    engine = Program(tmp_path / "engine")
    programs = [engine]
    try:
        engine.wait()
        with run_program(tmp_path / "page", {"DIA_ENGINE": engine.url}) as page:
            expected = whole(engine.url, LONG)
            blocks = speech(page.url, LONG)
            got = next(blocks)
            engine.kill()
            programs.append(Program(tmp_path / "engine", port=engine.port))
            assert got + b"".join(blocks) == expected
    finally:
        for program in programs:
            program.end()


def test_without_its_engine_a_page_says_so(page, tmp_path):
    (tmp_path / "page").mkdir()
    with run_program(tmp_path / "page", {"DIA_ENGINE": "http://127.0.0.1:9"}) as app:
        with pytest.raises(httpx.HTTPStatusError) as caught:
            whole(app.url, SHORT)
    message = caught.value.response.json()["error"]["message"]
    assert "http://127.0.0.1:9 cannot be reached" in message
