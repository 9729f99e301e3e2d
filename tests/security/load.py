"""Attacks on the app's time: what freezes it, grows it, or keeps others waiting."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

from dia_demo.engine.scheduler import PLACES
from dia_demo.services.people import new_key
from dia_demo.ui.person_runs import MAX_UNATTENDED
from tests.security.client import HOST, App, attack, in_threads

# Of the server's own, so that other programs on the machine do not count.
MOST_PROCESSOR_SECONDS = 1.0
OTHER = "127.0.0.2"


def spent_on(app: App, script: str) -> tuple[bool, str]:
    app.run("check", "[S1] Hi. [S2]", "nano")
    before = app.processor_seconds()
    status, _ = app.run("check", script, "nano")
    spent = app.processor_seconds() - before
    return spent <= MOST_PROCESSOR_SECONDS, f"{spent:.2f} s of processor, status {status}"


@attack("a tag that never closes, 15,000 spaces", expected="a check within 1 s of processor")
def unclosed_tag(app: App) -> tuple[bool, str]:
    return spent_on(app, "[s1" + " " * 15_000 + "x")


@attack("20,000 tagged turns, 100 kB", expected="a check within 1 s of processor")
def tagged_turns(app: App) -> tuple[bool, str]:
    return spent_on(app, "[S1]a" * 20_000)


@attack("alternating turns, 96 kB", expected="a check within 1 s of processor")
def alternating_turns(app: App) -> tuple[bool, str]:
    return spent_on(app, "[S1] Hello there. [S2] And you? " * 3000)


@attack("300 refused calls, each a session", expected="memory grows by less than 20 MB")
def refused_calls(app: App) -> tuple[bool, str]:
    def call_often(_: int) -> None:
        for _ in range(75):
            with suppress(OSError):
                app.wait(app.call(""))

    call_often(0)
    before = app.memory_bytes()
    in_threads(4, call_often)
    grown = (app.memory_bytes() - before) / 1e6
    return grown < 20, f"{grown:+.0f} MB"


@attack("13 refused presses beside a take that is heard live", expected="its sound is still there")
def refused_presses(app: App) -> tuple[bool, str]:
    script = "[S1] " + "Hello there, my good old friend. " * 6
    token, _ = app.press_generate(script, "listener", new_key())
    for number in range(13):
        app.press_generate("", f"other{number}", new_key())
    if token is None:
        return False, "no take was heard"
    _, body = app.serve("hear", {"run": token, "from": 0})
    left = len(json.loads(body)["pcm"])
    return left > 0, f"{left:,} characters of sound"


@attack("6 pages of one address begin a long take and leave", expected="at most 4 takes go on")
def abandoned_pages(app: App) -> tuple[bool, str]:
    script = "[S1] " + "Hello there, my good old friend. " * 25
    keys = [new_key() for _ in range(6)]
    for number, key in enumerate(keys):
        app.begin_generate(script, f"left{number}", key)
        next(update for update in app.updates(f"left{number}") if update.get("output"))

    def count_running() -> int:
        buttons = [app.run("idle_of", key)[1]["data"][0] for key in keys]
        return sum(not button["interactive"] for button in buttons)

    found, end = count_running(), time.monotonic() + 20
    while found > MAX_UNATTENDED and time.monotonic() < end:
        time.sleep(0.2)
        found = count_running()
    for key in keys:
        app.run("stop", key)
    return 0 < found <= MAX_UNATTENDED, f"{found} go on"


@attack(
    "a polite visitor beside 12 requests that retry",
    expected="waits until one take of the other ends",
)
def greedy_visitor(app: App) -> tuple[bool, str]:
    ended: list[float] = []
    over = threading.Event()

    def greedy(_: int) -> None:
        while not over.is_set():
            with suppress(OSError):
                if app.wait(app.call("[S1] Hello there, my friend.", source=OTHER), OTHER)[0]:
                    ended.append(time.monotonic())

    threads = [threading.Thread(target=greedy, args=[n], daemon=True) for n in range(12)]
    for thread in threads:
        thread.start()
    while len(ended) < 3:
        time.sleep(0.05)
    worst, refused = 0, 0
    for _ in range(4):
        began = time.monotonic()
        with suppress(OSError):
            refused += app.wait(app.call("[S1] Hi. [S2]"))[0] != "complete"
        worst = max(worst, sum(began < one < time.monotonic() for one in ended))
    over.set()
    for thread in threads:
        thread.join(60)
    # The one, those that are made beside the visitor's own take, and one that may end between the
    # question and its arrival.
    most = 1 + (PLACES - 1) + 1
    return worst <= most and not refused, f"{worst} ended meanwhile, {refused} of 4 refused"


@attack("3 programs ask for long takes and hang up", expected="the takes stop")
def abandoned_calls(app: App) -> tuple[bool, str]:
    script = "[S1] " + "Hello there, my good old friend. " * 25
    before = app.processor_seconds()
    app.wait(app.call(script))
    whole = app.processor_seconds() - before
    events = [app.call(script) for _ in range(3)]
    before = app.processor_seconds()
    for event in events:
        with socket.create_connection((HOST, app.port)) as caller:
            line = f"GET /gradio_api/call/generate/{event} HTTP/1.1\r\nHost: {HOST}\r\n\r\n"
            caller.sendall(line.encode())
            caller.recv(10)
    app.wait(app.call("[S1] Hi. [S2]"))
    spent = app.processor_seconds() - before
    return spent < 2 * whole, f"{spent / whole:.1f} takes' worth of processor, of 3"


def takes_a_minute(app: App, clients: int, seconds: float) -> tuple[float, int, int]:
    """Takes a minute of programs that ask again and again; the fewest and the most of one."""
    ended = [0] * clients
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        while time.monotonic() < end:
            with suppress(OSError):
                ended[number] += app.wait(app.call("[S1] Hello there, my friend."))[0] == "complete"

    in_threads(clients, client)
    return 60 * sum(ended) / (seconds + time.monotonic() - end), min(ended), max(ended)


@attack(
    "takes a minute of 16 and 64 programs, against one",
    expected="0.9 and 0.75 of one's; all are served in turn",
)
def many_clients(app: App) -> tuple[bool, str]:
    takes_a_minute(app, 1, 3)
    found = {1: [], 16: [], 64: []}
    fair = True
    for _ in range(3):
        for clients, rates in found.items():
            rate, fewest, most = takes_a_minute(app, clients, 20)
            rates.append(rate)
            fair &= most - fewest <= 2
    alone, few, many = (sorted(rates)[1] for rates in found.values())
    said = f"{few / alone:.2f} and {many / alone:.2f} of {alone:.0f}{'' if fair else ', unfair'}"
    return few >= 0.9 * alone and many >= 0.75 * alone and fair, said


@attack(
    "1,100 half-open connections, 1,024 descriptors",
    expected="pages answer, the log stays small",
)
def half_open_connections(home: Path) -> tuple[bool, str]:
    app = App(home, descriptors=1024)
    opened: list[socket.socket] = []
    try:
        app.wait_until_up()
        for _ in range(1100):
            with suppress(OSError):
                opened.append(socket.create_connection((HOST, app.port), timeout=5))
                opened[-1].sendall(b"GET / HTTP/1.1\r\n")
        began = time.monotonic()
        try:
            status, _ = app.get("/gradio_api/app_id", timeout=20)
        except OSError as error:
            status = type(error).__name__
        took = time.monotonic() - began
        size = app.log.stat().st_size / 1e6
        return status == 200 and size < 1, f"{status} after {took:.1f} s, log {size:.1f} MB"
    finally:
        for one in opened:
            one.close()
        app.end()


@attack("Ctrl-C while three takes are made", expected="an orderly end")
def interrupt_during_takes(home: Path) -> tuple[bool, str]:
    app = App(home)
    app.wait_until_up()
    for _ in range(3):
        app.call("[S1] " + "Hello there, my good old friend. " * 25)
    time.sleep(0.5)
    code = app.end(signal.SIGINT)
    said = app.log.read_text()
    held = code in (0, 130) and "terminate called" not in said and "FATAL" not in said
    return held, f"exit code {code}"


QUICK = (
    unclosed_tag,
    tagged_turns,
    alternating_turns,
    refused_calls,
    refused_presses,
    abandoned_pages,
)
SLOW = (greedy_visitor, abandoned_calls, many_clients)
ALONE = (half_open_connections, interrupt_during_takes)
