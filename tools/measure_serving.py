"""Measure the routes for programs: first byte, overhead, waiting, throughput.

    python -m tools.measure_serving                    # the embedded voice
    python -m tools.make_random_dia /tmp/dia --codec
    python -m tools.measure_serving --model /tmp/dia   # waiting alone, at Dia-1.6B's size

Starts `python app.py` on a free port. Prints a table, and last one line of JSON. Measure on an idle
machine. Ratios compare figures of the same run:

- first byte: of a streamed short sentence, warm; overhead: its whole time less what the engine took
- waiting: the longest of four clients with single sentences, beside one that has a dialogue of 40
  parts made, as a ratio to the same without it
- throughput: takes a minute with 64 clients, as a ratio to one client
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, perf_counter, sleep

import httpx

from dia_demo.files import ROOT
from tools.app_process import HOST, START_SECONDS, app_environment, free_port

SENTENCE = "The bridge was closed until the end of spring."
LONG = "The river was high that year, and nobody crossed it before the end of spring. " * 2
REPEATS = 20
PEOPLE = 4
CLIENTS = 64
EMBEDDED = "nano"
# Random weights do not end a take: a sentence of theirs has so many tokens, 1.7 seconds.
RANDOM_TOKENS = 150


class Server:
    """The app in a process of its own, on all cores, as people start it."""

    def __init__(self, folder: Path, log: Path, model: str) -> None:
        port = free_port()
        environment = app_environment(folder, port) | {"DIA_MODEL": model}
        del environment["DIA_THREADS"]
        self.url = f"http://{HOST}:{port}"
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=out, stderr=out
            )
        self._wait()

    def _wait(self) -> None:
        latest = monotonic() + START_SECONDS
        while monotonic() < latest:
            try:
                if httpx.get(f"{self.url}/ready").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            sleep(0.2)
        raise TimeoutError("the app did not become ready")

    def close(self) -> None:
        """End the app."""
        self._process.terminate()
        self._process.wait(30)


def client_from(address: str, url: str) -> httpx.Client:
    """A client of the server with this address of its own."""
    transport = httpx.HTTPTransport(local_address=address)
    return httpx.Client(base_url=url, timeout=300, transport=transport)


def speak(client: httpx.Client, seed: int, **more: object) -> tuple[float, float]:
    """Seconds until the first byte of a sentence, and until the last."""
    began, first = perf_counter(), None
    body = {"input": SENTENCE, "seed": seed, "response_format": "wav"} | more
    with client.stream("POST", "/v1/audio/speech", json=body) as answer:
        answer.raise_for_status()
        for _ in answer.iter_raw():
            first = first or perf_counter() - began
    assert first is not None
    return first, perf_counter() - began


def measure_sentence(client: httpx.Client) -> dict[str, float]:
    """Medians of a short sentence, each with another seed."""
    firsts, overheads = [], []
    for seed in range(REPEATS):
        first, _ = speak(client, 1000 + seed)
        body = {"input": SENTENCE, "seed": 2000 + seed, "timestamps": True}
        began = perf_counter()
        figures = client.post("/v1/audio/speech", json=body).json()["figures"]
        overheads.append(perf_counter() - began - figures["wall_seconds"])
        firsts.append(first)
    return {
        "first_byte_seconds": statistics.median(firsts),
        "overhead_seconds": statistics.median(overheads),
    }


def longest_wait(people: Sequence[httpx.Client], seed: int, **more: object) -> float:
    """The longest wait of people who ask for a sentence each, one after another."""
    waits: list[float] = []

    def ask(number: int) -> None:
        waits.append(speak(people[number], seed + number, **more)[1])

    asking = [threading.Thread(target=ask, args=[number]) for number in range(len(people))]
    for thread in asking:
        thread.start()
        sleep(0.2)
    for thread in asking:
        thread.join()
    return max(waits)


def measure_waiting(
    people: Sequence[httpx.Client], greedy: httpx.Client, rounds: int, **more: object
) -> dict[str, float]:
    """Medians of `longest_wait` without and beside a client with a dialogue of 40 parts.

    more: fields of the sentences' requests.
    """
    longest_wait(people, 2900, **more)
    alone = [longest_wait(people, 3000 + 10 * number, **more) for number in range(rounds)]
    turns = " ".join(f"[S{1 + number % 2}] {LONG}" for number in range(40))
    body = {"input": turns, "seed": 1, "response_format": "wav"}
    is_enough = threading.Event()

    def ask() -> None:
        with greedy.stream("POST", "/v1/audio/speech", json=body, timeout=600) as answer:
            answer.raise_for_status()
            for _ in answer.iter_raw():
                if is_enough.is_set():
                    return  # Whoever leaves has nothing more made.

    asking = threading.Thread(target=ask)
    asking.start()
    sleep(0.5)
    beside: list[float] = []
    while len(beside) < rounds and asking.is_alive():
        waited = longest_wait(people, 4000 + 10 * len(beside), **more)
        if asking.is_alive():
            beside.append(waited)
    is_enough.set()
    asking.join()
    if not beside:
        raise RuntimeError("the long script was done before anybody could wait beside it")
    ratio = statistics.median(beside) / statistics.median(alone)
    return {"waiting_ratio": ratio, "wait_seconds": statistics.median(alone)}


def takes_a_minute(
    clients: int, seconds: float, ask: Callable[[int], object], first_seed: int
) -> float:
    """How many sentences so many clients get in a minute, each asking again at once. No seed is
    used twice: the app would send the answer that it has kept."""
    latest = monotonic() + seconds
    counts = [0] * clients

    def run(number: int) -> None:
        while monotonic() < latest:
            ask(first_seed + 100_000 * number + counts[number])
            counts[number] += 1

    began = monotonic()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(run, range(clients)))
    return 60 * sum(counts) / (monotonic() - began)


def measure_throughput(client: httpx.Client, seconds: float) -> dict[str, float]:
    """Takes a minute of one client and of many."""

    def ask(seed: int) -> None:
        speak(client, seed)

    one = takes_a_minute(1, seconds, ask, 1_000_000)
    many = takes_a_minute(CLIENTS, seconds, ask, 2_000_000)
    return {"takes_a_minute": one, "throughput_ratio": many / one}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each throughput")
    parser.add_argument(
        "--model", default=EMBEDDED, help="the folder of another model: measures waiting alone"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        server = Server(Path(temporary), Path(temporary) / "log", options.model)
        stack.callback(server.close)
        limits = httpx.Limits(max_connections=None)
        client = stack.enter_context(httpx.Client(base_url=server.url, timeout=300, limits=limits))
        # Each from an address of its own, as different people are.
        greedy, *people = (
            stack.enter_context(client_from(f"127.0.0.{number}", server.url))
            for number in range(2, 3 + PEOPLE)
        )
        if options.model == EMBEDDED:
            measured = measure_sentence(client)
            measured |= measure_waiting(people, greedy, rounds=10)
            measured |= measure_throughput(client, options.seconds)
        else:
            measured = measure_waiting(people, greedy, 3, max_tokens=RANDOM_TOKENS)
    for name, value in measured.items():
        print(f"{name:20} {value:10.3f}")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
