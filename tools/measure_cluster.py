"""Measure what further engines are worth: the same work for each of them, each with its own cores.

    python -m tools.measure_cluster      # the embedded voice, 1 and 2 engines
    python -m tools.make_random_dia /tmp/dia --codec
    python -m tools.measure_cluster --model /tmp/dia --rows 4 --tokens 100

Every engine gets `--rows` takes at once, several times; the steps of all takes are counted over the
time of the whole. Needs requirements-serve.txt, and a machine that does nothing else. The last line
is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import AudioChunk, Failed, Finished
from dia_demo.errors import RunError
from dia_demo.server.address import Address
from dia_demo.server.cluster.start import local_cluster
from dia_demo.services.models import find_model
from dia_demo.services.remote.synthesis import open_synthesis
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request

SCRIPT = (
    "[S1] Good morning, and welcome to the programme. [S2] Thank you, I am glad to be here. "
    "[S1] Let us begin with the weather. [S2] It is going to rain all day."
)


@dataclass(frozen=True)
class Measured:
    """steps: of all takes together, in a second. first_audio_seconds: the median over the takes,
    from the request to the first samples at the client."""

    replicas: int
    takes: int
    seconds: float
    steps_per_second: float
    takes_per_minute: float
    first_audio_seconds: float


def one_take(synthesis: Synthesis, request: Request) -> tuple[int, float]:
    """Its steps, and the seconds until its first samples arrived."""
    began, first = time.monotonic(), 0.0
    for event in synthesis.stream(request, threading.Event()):
        if isinstance(event, AudioChunk) and not first:
            first = time.monotonic() - began
        if isinstance(event, Failed):
            raise RunError(event.message)
        if isinstance(event, Finished):
            return event.result.figures.steps, first
    raise RunError("A take did not end.")


def measure(replicas: int, options: argparse.Namespace, folder: Path) -> Measured:
    """Start a cluster of so many replicas, warm it up, and give each the same work."""
    os.environ |= {
        "DIA_MODEL": options.model,
        "DIA_PRECISION": options.precision,
        "DIA_TAKES": str(folder / "takes"),
        "DIA_KEPT": str(folder / "kept"),
        "DIA_ADDRESS_PLACES": "1024",
    }
    info = find_model(options.model)
    tokens = min(options.tokens, info.config.decoder.max_positions)
    params = replace(info.config.defaults, max_tokens=tokens)
    runtime = RuntimeConfig(model=options.model, precision=options.precision)
    together = replicas * options.rows
    with ExitStack() as stack:
        url = stack.enter_context(
            local_cluster(replicas, Address(ports=range(1)), cores=options.cores)
        )
        settings = Settings(
            runtime, engine=url, takes_folder=folder / "here", queue_size=1000, address_places=1000
        )
        synthesis = open_synthesis(settings)
        stack.callback(synthesis.close)
        pool = stack.enter_context(ThreadPoolExecutor(together))

        def work(rounds: int) -> list[tuple[int, float]]:
            requests = [
                Request(SCRIPT, replace(params, seed=seed), info, runtime)
                for seed in range(together * rounds)
            ]
            return list(pool.map(lambda request: one_take(synthesis, request), requests))

        work(1)
        began = time.monotonic()
        made = work(options.rounds)
        seconds = time.monotonic() - began
    steps, firsts = zip(*made, strict=True)
    return Measured(
        replicas,
        len(made),
        round(seconds, 3),
        round(sum(steps) / seconds, 1),
        round(60 * len(made) / seconds, 1),
        round(sorted(firsts)[len(firsts) // 2], 3),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="nano")
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cores", type=int, default=1, help="of each engine, pinned")
    parser.add_argument("--rows", type=int, default=8, help="takes at once of each engine")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=3072, help="max tokens of a take")
    options = parser.parse_args()
    results = []
    print(
        f"{'engines':>8} {'takes':>6} {'seconds':>8} {'steps/s':>8} {'takes/min':>10} {'first':>6}"
    )
    for replicas in options.replicas:
        with tempfile.TemporaryDirectory(prefix="dia-cluster-") as folder:
            found = measure(replicas, options, Path(folder))
        results.append(found)
        print(
            f"{found.replicas:>9} {found.takes:>9} {found.seconds:>9.1f} "
            f"{found.steps_per_second:>9.1f} {found.takes_per_minute:>9.1f} "
            f"{found.first_audio_seconds:>8.2f}s",
            flush=True,
        )
    ratio = results[-1].steps_per_second / results[0].steps_per_second
    print(
        f"{results[-1].replicas} engines make {ratio:.2f} times the steps of {results[0].replicas}."
    )
    print(json.dumps({"ratio": round(ratio, 3), "results": [asdict(each) for each in results]}))


if __name__ == "__main__":
    main()
