"""A server with the engine's route, as another machine would be, in a thread of this process."""

import threading
import time
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from dia_demo.server.address import LOCAL, Address
from dia_demo.server.remote.route import engine_router
from dia_demo.server.tokens import Access


@contextmanager
def serve_engine(synthesis, settings=None):
    """The address of a server that makes takes with this service."""
    application = FastAPI()
    application.state.access = Access(settings or synthesis.settings, LOCAL)
    application.include_router(engine_router(synthesis))
    with serving_application(application) as url:
        yield url


@contextmanager
def serving_application(application: FastAPI):
    """The address of an application that a thread of this process serves."""
    server = uvicorn.Server(uvicorn.Config(application, log_level="error"))
    with Address(ports=range(1)).listen() as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def until(condition, seconds=20.0):
    """Wait for what another thread does; fails after so many seconds."""
    latest = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < latest, "it did not happen"
        time.sleep(0.01)
