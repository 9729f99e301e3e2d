"""The app under test: a process of its own, and what it uses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from dia_demo.files import ROOT
from dia_demo.services.folders import LOCK
from tools.app_process import HOST, START_SECONDS, app_environment, free_port

# The engine's thread and worker threads of the server end a while after their last work.
QUIET_SECONDS = 60.0
# A folder for as long as a long script is made.
TEMPORARY = "speech-*"
# multiprocessing starts it with the first child process, as the background measurement is one, and
# keeps the writing end of its pipe.
TRACKER = "multiprocessing.resource_tracker"


@dataclass(frozen=True)
class Usage:
    """What the app has open. answers: files of answers that are kept for those who come back;
    files: all others. temporary: folders of runs."""

    memory: int
    threads: int
    sockets: int
    files: int
    answers: int
    temporary: int


class App:
    """`python app.py` with all it writes below `folder`."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url, self.folder, self.log = f"http://{HOST}:{port}", folder, folder / "app.log"
        with self.log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "app.py"],
                cwd=ROOT, env=app_environment(folder, port), stdout=output, stderr=output,
            )  # fmt: skip
        self._usage = psutil.Process(self._process.pid)

    def wait_until_ready(self) -> None:
        """Raises RuntimeError where it is not."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            with suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/ready", trust_env=False).is_success:
                    return
            time.sleep(0.2)
        raise RuntimeError(f"the app does not get ready:\n{self.log.read_text()}")

    def end(self) -> None:
        """End it as Ctrl-C does."""
        self._process.terminate()
        try:
            self._process.wait(90)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def memory(self) -> int:
        """Resident bytes."""
        return self._usage.memory_info().rss

    def usage(self) -> Usage:
        """All it uses now. Linux only."""
        kinds: list[str] = []
        folder = Path(f"/proc/{self._process.pid}/fd")
        for link in folder.iterdir():
            with suppress(OSError):
                kinds.append(os.readlink(link))
        sockets = sum(kind.startswith("socket:") for kind in kinds)
        answers = sum("/answers/" in kind for kind in kinds)
        temporary = len(list((self.folder / "takes").rglob(TEMPORARY)))
        others = len(kinds) - sockets - answers - self._trackers()
        return Usage(self.memory, self._usage.num_threads(), sockets, others, answers, temporary)

    def _trackers(self) -> int:
        """Resource trackers that run: one or none."""
        found = 0
        for child in self._usage.children():
            with suppress(psutil.NoSuchProcess):
                found += any(TRACKER in word for word in child.cmdline())
        return found

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        text = httpx.get(f"{self.url}/metrics", trust_env=False).text
        lines = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, lines))

    def wait_until_quiet(self, before: Usage) -> Usage:
        """What it uses once nothing runs, and no more than before or for QUIET_SECONDS."""
        end = time.monotonic() + QUIET_SECONDS
        while True:
            usage = self.usage()
            is_idle = self.metric("dia_rows") + self.metric("dia_queue_length") == 0
            has_ended = (
                usage.threads <= before.threads
                and usage.sockets <= before.sockets
                and usage.files <= before.files
            )
            if time.monotonic() > end or (is_idle and has_ended):
                return usage
            time.sleep(0.5)

    def left_files(self) -> list[Path]:
        """What is left below its temporary folders, once it has ended."""
        folders = (self.folder / "takes", self.folder / "gradio")
        found = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        return [path for path in found if path.name != LOCK]


@contextmanager
def running_app(folder: Path) -> Iterator[App]:
    """An app that is ready."""
    app = App(folder)
    try:
        app.wait_until_ready()
        yield app
    finally:
        app.end()
