"""The end of the program: runs and warm-up stop, and nothing aborts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import suppress
from functools import partial

import pytest

from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Started
from dia_demo.errors import RunError
from dia_demo.machine.background import Background
from dia_demo.services.settings import Settings
from dia_demo.services.shutdown import Shutdown
from dia_demo.services.synthesis import Synthesis
from tests.helpers.long import long_after
from tests.helpers.page import browser
from tests.helpers.synthesis_requests import make_request, runtime, say
from tools.app_process import app_environment, free_port


def test_no_step_begins_after_the_end():
    shutdown, inside, go_on = Shutdown(), threading.Event(), threading.Event()

    def work():
        inside.set()
        go_on.wait(10)
        yield "step"
        pytest.fail("a step began after the end")

    seen: list[str] = []

    def run():
        with suppress(RunError):
            seen.extend(shutdown.steps(work()))

    running = Background("take", run).start()
    inside.wait(10)
    ended = Background("end", lambda: shutdown.begin(Background("warm up", print))).start()
    ended.join(0.2)
    assert ended.is_running, "it did not wait for the step"
    go_on.set()
    for background in (ended, running):
        background.join(10)
        assert not background.is_running
    assert seen in ([], ["step"])


def test_closing_ends_the_warm_up(folder, tmp_path):
    synthesis = Synthesis(Settings(runtime(folder), takes_folder=tmp_path))
    synthesis.warm_up()
    synthesis.close()
    assert not synthesis._warming.background.is_running


def test_closing_ends_the_takes_of_all_and_the_engines_threads(folder, tmp_path):
    earlier = set(threading.enumerate())  # Those of other tests' engines end after a while.
    synthesis, ends = Synthesis(Settings(runtime(folder), takes_folder=tmp_path)), []
    first = synthesis.stream(make_request(synthesis, max_tokens=400), threading.Event())
    next(event for event in first if isinstance(event, Started))

    def work() -> None:
        try:
            ends.append(say(synthesis, make_request(synthesis, max_tokens=400))[-1])
        except RunError as error:
            ends.append(str(error))

    others = [threading.Thread(target=work) for _ in range(3)]
    for other in others:
        other.start()
    synthesis.close()
    for other in others:
        other.join(30)
    assert len(ends) == 3 and not [end for end in ends if "shutting down" not in str(end)]
    with pytest.raises(RunError, match="shutting down"):
        list(first)
    names = {thread.name for thread in set(threading.enumerate()) - earlier}
    assert not names & {"engine", "prefill"}


def test_a_take_that_is_about_to_begin_is_told_of_the_end(folder, tmp_path, monkeypatch):
    """And not that the model was closed, which it was in one of some hundred ends."""
    synthesis = Synthesis(Settings(runtime(folder), takes_folder=tmp_path))
    submit, closing = Engine.submit, Background("close", synthesis.close)

    def submit_late(*arguments):
        closing.start().join(0.3)
        return submit(*arguments)

    monkeypatch.setattr(Engine, "submit", submit_late)
    with pytest.raises(RunError, match="shutting down"):
        say(synthesis, make_request(synthesis, max_tokens=400))
    closing.join(30)
    assert not closing.is_running


@pytest.mark.parametrize("seconds", long_after(1, (0.5, None)))
@pytest.mark.slow
def test_ctrl_c_in_the_warm_up_or_in_a_take_ends_in_order(tmp_path, seconds):
    """The process itself: it aborted in three of four tries ("terminate called")."""
    port = free_port()
    env = app_environment(tmp_path, port)
    log = tmp_path / "app.log"
    with open(log, "w") as output:
        app = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=browser.ROOT,
            env=env,
            stdout=output,
            stderr=output,
            # A shell's background job ignores Ctrl-C, and so would everything it starts.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        try:
            browser.wait_until_up(f"http://127.0.0.1:{port}", app, log)
            if seconds is not None:
                begin_takes(port)
                threading.Event().wait(seconds)
            os.kill(app.pid, signal.SIGINT)
            code = app.wait(timeout=180)
        finally:
            app.kill()
            app.wait()
    assert code in (0, 130), log.read_text()
    assert "terminate called" not in log.read_text() and "FATAL" not in log.read_text()


def begin_takes(port: int) -> None:
    script = "[S1] " + "Hello there, my friend. " * 20
    for _ in range(3):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/gradio_api/call/generate",
            data=json.dumps({"data": [script, *[None] * 6, 1.0, *[None] * 4, False]}).encode(),
            headers={"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=180).read()
