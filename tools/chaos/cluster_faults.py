"""kill -9 of processes of a cluster while it makes takes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil

from dia_demo.errors import InputError
from dia_demo.server.address import Address
from dia_demo.server.cluster.start import local_cluster
from tools.chaos.program import LONG, TURNS, kill, speech, whole
from tools.chaos.scenario import NotHere, Scenario, check


def with_cluster(folder: Path, replicas: int, use: Callable[[str], str]) -> str:
    """What `use` returns, given the address of a cluster."""
    os.environ |= {
        "DIA_TAKES": str(folder / "takes"),
        "DIA_KEPT": str(folder / "kept"),
        "DIA_ADDRESS_PLACES": "1000",
    }
    try:
        import ray  # noqa: F401
    except ImportError:
        raise NotHere("Ray is not installed: requirements-serve.txt") from None
    try:
        with local_cluster(replicas, Address(ports=range(1)), cores=1) as url:
            return use(url)
    except InputError as error:
        raise NotHere(str(error)) from error


def processes(deployment: str) -> list[psutil.Process]:
    """Those of a deployment of this program's cluster."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if f":{deployment}" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:  # It has just ended.
            continue
    return found


def killed_replica(folder: Path, short: bool) -> str:
    replicas, streams = (2, 10) if short else (3, 30)
    return with_cluster(folder, replicas, lambda url: kill_one_of(replicas, url, streams))


def kill_one_of(replicas: int, url: str, streams: int) -> str:
    """Kill one of a cluster's replicas once a third of the streams has begun; none may differ."""

    def read(seed: int, begin: Callable[[], object]) -> bytes:
        blocks = speech(url, TURNS, seed=seed)
        got = next(blocks)
        begin()
        return got + b"".join(blocks)

    begun = threading.Semaphore(0)
    with ThreadPoolExecutor(streams) as pool:
        expected = list(pool.map(lambda seed: read(seed, bool), range(streams)))
        reading = [pool.submit(read, seed, begun.release) for seed in range(streams)]
        for _ in range(streams // 3):
            check(begun.acquire(timeout=300), "the streams do not begin")
        # The fewest that any replica has.
        done = sum(stream.done() for stream in reading)
        check(done < streams // replicas, f"{done} of {streams} streams are complete already")
        kill(processes("EngineReplica")[0].pid)
        lost = sum(stream.exception() is not None for stream in reading)
    check(not lost, f"{lost} of {streams} streams are lost")
    differing = sum(
        stream.result() != before for stream, before in zip(reading, expected, strict=True)
    )
    check(not differing, f"{differing} of {streams} streams differ")
    return f"{streams} streams of {replicas} replicas: 0 lost, 0 bytes differ"


def killed_gateway(folder: Path, short: bool) -> str:
    def use(url: str) -> str:
        expected = whole(url, LONG)
        blocks = speech(url, LONG)
        got = next(blocks)
        kill(processes("Gateway")[0].pid)
        try:
            got += b"".join(blocks)
        except httpx.HTTPError:
            pass
        for attempt in range(60):
            try:
                rest = whole(url, LONG, len(got)) if len(got) < len(expected) else b""
                break
            except httpx.HTTPError:
                check(attempt < 59, "the gateway does not come back")
                threading.Event().wait(0.5)
        check(got + rest == expected, "the answer that goes on is another one")
        return f"cut after {len(got):,} bytes; a new gateway sends exactly the rest"

    return with_cluster(folder, 1, use)


SCENARIOS = [
    Scenario("kill -9 of a replica", "takes of many", "no listener can tell", killed_replica),
    Scenario("kill -9 of the gateway", "a take", "the same request goes on", killed_gateway),
]
