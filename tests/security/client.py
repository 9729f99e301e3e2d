"""A stranger's tools: the app as a process, and what anybody who reaches its port can send."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from dia_demo.files import ROOT
from tools.app_process import HOST, START_SECONDS, app_environment, free_port


@dataclass(frozen=True)
class Attack:
    """what: what is done to the app. expected: what an app does that withstands it. carry_out: a
    function of an App, or of an empty folder, that returns whether the app withstood and what
    happened."""

    what: str
    expected: str
    carry_out: Callable[..., tuple[bool, str]]


def attack(what: str, expected: str) -> Callable[[Callable[..., tuple[bool, str]]], Attack]:
    """Decorates the function that carries out an attack."""
    return lambda carry_out: Attack(what, expected, carry_out)


class App:
    """`python app.py` on this machine alone, with all it writes below `folder`."""

    def __init__(self, folder: Path, descriptors: int | None = None, **given: str) -> None:
        self.folder, self.port = folder, free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "app.log"
        self.env = app_environment(folder, self.port) | {"DIA_KEPT_GB": "1", **given}
        command = [sys.executable, "app.py"]
        if descriptors is not None:
            command = ["sh", "-c", f"ulimit -n {descriptors}; exec {sys.executable} app.py"]
        with open(self.log, "w") as output:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=self.env, stdout=output, stderr=output
            )

    def wait_until_up(self) -> None:
        """Raises RuntimeError where it does not answer."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            with suppress(OSError, http.client.HTTPException):
                if self.get("/gradio_api/startup-events", timeout=10)[0] == 200:
                    self.config = json.loads(self.get("/config", timeout=30)[1])
                    return
            time.sleep(0.2)
        raise RuntimeError(f"the app does not answer:\n{self.log.read_text()}")

    def end(self, how: signal.Signals = signal.SIGTERM) -> int | None:
        """Its exit code; None where it had to be killed."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    # -- what it uses --------------------------------------------------------------------------

    def processor_seconds(self) -> float:
        used = psutil.Process(self.process.pid).cpu_times()
        return used.user + used.system

    def memory_bytes(self) -> int:
        return psutil.Process(self.process.pid).memory_info().rss

    # -- what is sent --------------------------------------------------------------------------

    @contextmanager
    def connection(self, timeout: float = 60.0, source: str = HOST):
        connection = http.client.HTTPConnection(
            HOST, self.port, timeout=timeout, source_address=(source, 0)
        )
        try:
            yield connection
        finally:
            connection.close()

    def get(self, path: str, timeout: float = 60.0, **headers: str) -> tuple[int, bytes]:
        with self.connection(timeout) as connection:
            connection.putrequest("GET", path, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            self.headers = dict(answer.getheaders())
            return answer.status, answer.read()

    def post(
        self, path: str, body: object, timeout: float = 60.0, source: str = HOST, **headers: str
    ) -> tuple[int, bytes]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with self.connection(timeout, source) as connection:
            connection.request("POST", path, data, {"Content-Type": "application/json"} | named)
            answer = connection.getresponse()
            self.headers = dict(answer.getheaders())
            return answer.status, answer.read()

    def run(self, name: str, *data: object) -> tuple[int, object]:
        """A quick event of the page, by its function's name."""
        status, body = self.post(f"/gradio_api/run/{name}", {"data": data})
        with suppress(ValueError):
            return status, json.loads(body)
        return status, None

    def serve(self, function: str, data: object) -> tuple[int, bytes]:
        """A component's server function."""
        owner = next(
            one["id"]
            for one in self.config["components"]
            if function in str(one["props"].get("server_fns") or one["props"].get("serverFns"))
        )
        body = {"data": data, "component_id": owner, "fn_name": function, "session_hash": "x"}
        return self.post("/gradio_api/component_server/", body)

    def upload(self, name: str, content: bytes, **headers: str) -> tuple[int, str]:
        """Status and the path under which the server keeps it."""
        edge = secrets.token_hex(12)
        head = (
            f'--{edge}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
        )
        data = head.encode() + content + f"\r\n--{edge}--\r\n".encode()
        kind = {"Content_Type": f"multipart/form-data; boundary={edge}"}
        status, body = self.post("/gradio_api/upload", data, **(kind | headers))
        return status, json.loads(body)[0] if status == 200 else body.decode(errors="replace")

    def call(self, *data: object, source: str = HOST) -> str:
        """Begin a take as a program does; the event's name. OSError where it is refused."""
        values = [*data, *[None] * (13 - len(data))]
        values[7], values[10:] = 1.0, ["nano", "float32", False]
        status, body = self.post("/gradio_api/call/generate", {"data": values}, source=source)
        if status != 200:
            raise OSError(f"{status}: {body[:200]!r}")
        return json.loads(body)["event_id"]

    def wait(self, event: str, source: str = HOST, timeout: float = 120.0) -> tuple[str, object]:
        """How a call ended, "complete" or "error", and with what."""
        with self.connection(timeout, source) as connection:
            connection.request("GET", f"/gradio_api/call/generate/{event}")
            answer, name = connection.getresponse(), ""
            for line in answer:
                said = line.decode().strip()
                if said.startswith("event:"):
                    name = said.partition(":")[2].strip()
                elif said.startswith("data:") and name in ("complete", "error"):
                    return name, json.loads(said.partition(":")[2])
        return "lost", None

    def press(self, name: str, data: list, session: str) -> None:
        """An event of the page that waits its turn, as the page itself sends it."""
        number = next(one["id"] for one in self.config["dependencies"] if one["api_name"] == name)
        body = {"data": data, "fn_index": number, "session_hash": session}
        self.post("/gradio_api/queue/join", body)

    def updates(self, session: str, timeout: float = 60.0) -> Iterator[dict]:
        """What the page is told meanwhile."""
        with self.connection(timeout) as connection:
            connection.request("GET", f"/gradio_api/queue/data?session_hash={session}")
            for line in connection.getresponse():
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])

    def begin_generate(self, script: str, session: str, key: str) -> None:
        """A press of the page's button, for the person with this key."""
        values = [script, 1.2, 3.0, 800, 0.95, 45, "5", 1.0, None, "", "nano", "float32"]
        self.press("press_generate", [key, *values, False, False, "", "", "", 0.6, False], session)

    def press_generate(self, script: str, session: str, key: str) -> tuple[str | None, dict | None]:
        """A take as the page makes it: the name of its live sound, and its file, kept under the
        key; None for what there is not."""
        token = take = None
        self.begin_generate(script, session, key)
        for update in self.updates(session):
            for value in (update.get("output") or {}).get("data") or []:
                if isinstance(value, dict) and value.get("run"):
                    token = value["run"]
                elif isinstance(value, dict) and str(value.get("path")).endswith(".wav"):
                    take = take or value
            if update.get("msg") == "process_completed":
                break
        return token, take


def in_threads(count: int, work) -> None:
    """Run `work(number)` in as many threads, and wait for all."""
    threads = [threading.Thread(target=work, args=[n], daemon=True) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)


def bytes_below(folder: Path) -> int:
    """What the files below a folder take."""
    total = 0
    for home, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(home, name)).st_size
    return total
