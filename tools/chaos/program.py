"""The app as a process that is killed and started again, and a client of its routes."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from dia_demo.files import ROOT
from tools.app_process import HOST, START_SECONDS, app_environment, free_port

TURNS = (
    "[S1] Good morning, and welcome to the programme. [S2] Thank you, I am glad to be here. "
    "[S1] Let us begin with the weather. [S2] It is going to rain all day, and all night as well. "
)
LONG = (TURNS * 4).strip()
SHORT = "[S1] Good morning, and welcome. [S2] Thank you, I am glad to be here."


class Program:
    """`python app.py` with all it writes below `folder`. port: a free one if left out."""

    def __init__(
        self, folder: Path, more: Mapping[str, str] | None = None, port: int | None = None
    ) -> None:
        self.port = port = port or free_port()
        self.url, self.folder, self._log = f"http://{HOST}:{port}", folder, folder / "app.log"
        environment = app_environment(folder, port) | {"DIA_MEASURE": "off"} | dict(more or {})
        with self._log.open("a") as output:
            self._process = subprocess.Popen(
                [sys.executable, "app.py"],
                cwd=ROOT, env=environment, stdout=output, stderr=output,
            )  # fmt: skip

    def wait(self) -> None:
        """Until it answers. Raises AssertionError where it does not."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            with suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/v1/models", trust_env=False).is_success:
                    return
            time.sleep(0.2)
        raise AssertionError(f"the app did not start:\n{self.log()[-2000:]}")

    def kill(self) -> None:
        """kill -9"""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """As Ctrl-C does."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        if self._process.poll() is None:
            self.kill()

    def log(self) -> str:
        """All that it has written."""
        return self._log.read_text(errors="replace")

    @property
    def run_folders(self) -> list[Path]:
        """The temporary folders of this run and of earlier ones."""
        return list((self.folder / "takes").glob("dia-run-*"))


@contextmanager
def run_program(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[Program]:
    """An app that answers."""
    program = Program(folder, more)
    try:
        program.wait()
        yield program
    finally:
        program.end()


def speech(url: str, text: str, first: int = 0, **more: object) -> Iterator[bytes]:
    """A streamed answer, block by block, from a byte on. Raises httpx.HTTPError where it is cut.

    Each is made anew: without a key of its own, a request that is repeated gets the earlier answer.
    """
    own = {"idempotency-key": secrets.token_urlsafe(16)}
    body = {
        "model": "nano", "input": text, "response_format": "pcm", "seed": 11, "resume_from": first,
    } | more  # fmt: skip
    with httpx.Client(trust_env=False, timeout=300) as client:
        with client.stream("POST", f"{url}/v1/audio/speech", json=body, headers=own) as answer:
            if not answer.is_success:
                answer.read()
                answer.raise_for_status()
            yield from answer.iter_bytes()


def whole(url: str, text: str, first: int = 0) -> bytes:
    """All of an answer from a byte on."""
    return b"".join(speech(url, text, first))


def refusal(url: str, text: str) -> str:
    """What the server says where it cannot make an answer; "" where it makes it."""
    try:
        whole(url, text)
    except httpx.HTTPStatusError as error:
        return error.response.json()["error"]["message"]
    except httpx.HTTPError as error:
        return f"the answer was cut: {error}"
    return ""


def kill(pid: int) -> None:
    """kill -9"""
    os.kill(pid, signal.SIGKILL)
