"""Requests by chance find what fails, and find nothing that fails in the routes for programs."""

from __future__ import annotations

import io
import logging
import threading
from contextlib import contextmanager

import pytest
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from dia_demo.config import RuntimeConfig
from dia_demo.server.speech.api import SpeechApi
from dia_demo.services.settings import Settings
from tests.helpers.sockets import ToneSpeaker, running_server, wait_until
from tools.fuzz_api.requests import fuzz_http
from tools.fuzz_api.sockets import fuzz_speech
from tools.fuzz_api.tally import Tally

log = logging.getLogger("uvicorn.error")


@contextmanager
def tally_of_log():
    """A tally that reads the log of a server, which must be running: uvicorn sets its log up."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    log.addHandler(handler)
    try:
        yield Tally(stream.getvalue)
    finally:
        log.removeHandler(handler)


@pytest.mark.slow
def test_no_request_makes_the_routes_for_programs_fail(tmp_path):
    speech = SpeechApi.with_speaker(
        ToneSpeaker(), Settings(RuntimeConfig("nano"), takes_folder=tmp_path)
    )
    with running_server(speech) as address, tally_of_log() as tally:
        fuzz_http(f"http://{address}", tally, 9)
        fuzz_speech(f"http://{address}", tally, 9)
    assert tally.faults == []
    assert {"POST /v1/audio/speech", "WS /v1/audio/speech/stream"} <= tally.routes.keys()
    assert tally.malformed > 40
    for label, route in tally.routes.items():
        assert route.requests == route.classes[2] + route.classes[4], label
    assert tally.routes["POST /v1/audio/speech"].classes[2] > 0
    assert tally.routes["POST /v1/audio/speech"].classes[4] > 5
    assert f"| all | {sum(route.requests for route in tally.routes.values())} |" in "".join(
        tally.lines()
    )


class Order(BaseModel):
    size: int | str = 1


def test_a_route_that_fails_is_found():
    application = FastAPI()

    @application.post("/orders")
    def orders(order: Order) -> float:
        return 1 / int(order.size)

    with serving(application) as address, tally_of_log() as tally:
        fuzz_http(f"http://{address}", tally, 90)
    route = tally.routes["POST /orders"]
    assert route.classes[5] > 0 and route.tracebacks > 0
    assert "POST /orders 500" in "\n".join(tally.lines())


@contextmanager
def serving(application):
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield "{}:{}".format(*server.servers[0].sockets[0].getsockname())
    finally:
        server.should_exit = True
        thread.join()
