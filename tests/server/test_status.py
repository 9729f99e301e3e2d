"""What the server says to whoever watches it."""

from __future__ import annotations

import pytest
from fastapi import Depends, FastAPI
from prometheus_client.parser import text_string_to_metric_families
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from dia_demo.server.address import LOCAL, Address
from dia_demo.server.status import RequestCounts, status_routes
from dia_demo.server.tokens import Access, require_token
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis

TOKEN = "first-token-0123456789"


def make_client(synthesis: Synthesis, address: Address = LOCAL) -> TestClient:
    counts = Middleware(RequestCounts, metrics=synthesis.metrics)
    application = FastAPI(middleware=[counts])
    application.state.access = Access(synthesis.settings, address)
    application.include_router(status_routes(synthesis))

    @application.get("/v1/voices/{name}", dependencies=[Depends(require_token)])
    def voice(name: str) -> str:
        return name

    @application.get("/config")
    def config() -> None: ...

    @application.post("/v1/broken")
    def broken() -> None:
        raise ZeroDivisionError

    return TestClient(application, raise_server_exceptions=False)


@pytest.fixture
def synthesis():
    return Synthesis(Settings())


def test_health_is_json(synthesis):
    """Clients take a plain "OK" as a sign of another server."""
    answer = make_client(synthesis).get("/health")
    assert answer.json() == {"status": "ok", "model": "nano"}


@pytest.mark.parametrize("path", ["/readyz", "/v1/test"])
def test_signs_of_other_servers_are_absent(synthesis, path):
    assert make_client(synthesis).get(path).status_code == 404


def test_the_app_is_ready_once_it_is_warm(synthesis, monkeypatch):
    client, is_warming = make_client(synthesis), True
    monkeypatch.setattr(Synthesis, "is_warming_up", property(lambda _: is_warming))
    answer = client.get("/ready")
    assert answer.status_code == 503 and answer.json() == {"ready": False}
    assert int(answer.headers["retry-after"]) > 0
    assert client.get("/health").status_code == 200, "it lives"
    is_warming = False
    assert client.get("/ready").json() == {"ready": True}


def requests(client: TestClient) -> dict[tuple[str, str, str], float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    (family,) = [one for one in families if one.name == "dia_http_requests"]
    return {
        (one.labels["route"], one.labels["method"], one.labels["status"]): one.value
        for one in family.samples
        if one.name.endswith("_total")
    }


def test_requests_count_by_their_route(synthesis):
    client = make_client(synthesis)
    for name in ("ann", "ben"):
        client.get(f"/v1/voices/{name}")
    client.get("/config")
    client.get("/v1/whatever-a-stranger-makes-up")
    client.request("BREW", "/v1/voices/ann")
    client.post("/v1/broken")
    assert requests(client) == {
        ("/v1/voices/{name}", "GET", "200"): 2,
        ("page", "GET", "200"): 1,
        ("page", "GET", "404"): 1,
        ("/v1/voices/{name}", "other", "405"): 1,
        ("/v1/broken", "POST", "500"): 1,
    }
    assert requests(client)["/metrics", "GET", "200"] == 1


def test_metrics_are_in_the_form_of_prometheus(synthesis):
    answer = make_client(synthesis).get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    names = {family.name for family in text_string_to_metric_families(answer.text)}
    assert {
        "dia_queue_length", "dia_rows", "dia_places", "dia_decoder_steps", "dia_takes",
        "dia_audio_seconds", "dia_wall_seconds", "dia_realtime_factor", "dia_memory_bytes",
        "process_open_fds", "process_cpu_seconds",
    } <= names  # fmt: skip


def test_metrics_need_a_token_where_takes_do_and_the_others_never():
    client = make_client(Synthesis(Settings(tokens=(TOKEN,))))
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).is_success
    assert client.get("/health").is_success and client.get("/ready").is_success
    assert make_client(Synthesis(Settings()), Address("0.0.0.0")).get("/metrics").status_code == 401
