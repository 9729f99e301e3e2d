"""The engine of a cluster, over replicas that answer late."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

pytest.importorskip("ray", reason="pip install -r requirements-serve.txt")

from fastapi import FastAPI  # noqa: E402
from fastapi.testclient import TestClient  # noqa: E402
from ray.exceptions import RayError  # noqa: E402

from dia_demo.engine.events import Cancelled, Event, Progress  # noqa: E402
from dia_demo.server.cluster import engine  # noqa: E402
from dia_demo.server.cluster.engine import ClusterEngine  # noqa: E402
from dia_demo.server.status import status_routes  # noqa: E402
from dia_demo.services.models import find_model  # noqa: E402
from dia_demo.services.remote.synthesis import RemoteSynthesis  # noqa: E402
from dia_demo.services.settings import Settings  # noqa: E402
from dia_demo.services.take import Request  # noqa: E402
from tests.helpers.engines import until  # noqa: E402


class LateReplica:
    """Stands for a handle of replicas, for its answers, and for a row that goes on until it is
    stopped. It hears of that after everybody has stopped waiting for the answer."""

    def __init__(self) -> None:
        self.rows = self.answer = self
        self._stopped = threading.Event()

    def options(self, **_: object) -> LateReplica:
        return self

    def remote(self, *_: object) -> LateReplica:
        return self

    def __iter__(self) -> Iterator[Event]:
        yield Progress(1, 0.1, 0.1, 1.0, 5.0)
        assert self._stopped.wait(10)
        yield Cancelled(None, 0)

    def result(self) -> None:
        """It has been loaded."""

    def cancel(self) -> None:
        """It has ended by then."""

    def broadcast(self, name: str, _: str) -> LateReplica:
        assert name == "stop"
        return self

    def results(self, timeout_s: float) -> list:
        threading.Timer(0.2, self._stopped.set).start()
        raise TimeoutError(f"no answer within {timeout_s} s")


def test_stop_waits_for_a_replica_that_answers_late():
    info = find_model("nano")
    request = Request("[S1] Hello.", info.config.defaults, info)
    cancel, events = threading.Event(), []
    for event in ClusterEngine(LateReplica()).stream([request], cancel, False):
        events.append(event)
        cancel.set()
    assert isinstance(events[-1], Cancelled)


def test_a_cluster_is_ready_once_a_replica_has_been_loaded(tmp_path, monkeypatch):
    """The first one that is asked dies while it loads."""
    loaded, asked = threading.Event(), []

    class Replica(LateReplica):
        def result(self) -> None:
            asked.append(self)
            if len(asked) == 1:
                raise RayError("it died")
            assert loaded.wait(10)

    monkeypatch.setattr(engine, "RETRY_SECONDS", 0.0)
    settings = Settings(engine="cluster", takes_folder=tmp_path)
    synthesis = RemoteSynthesis(settings, ClusterEngine(Replica()))
    with TestClient(FastAPI(routes=status_routes(synthesis).routes)) as client:
        until(lambda: len(asked) == 2, 10)
        assert client.get("/ready").status_code == 503
        loaded.set()
        until(lambda: client.get("/ready").status_code == 200, 10)
    synthesis.close()
