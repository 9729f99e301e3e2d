"""Fetching the model that the app was started with, while the embedded voice speaks."""

from __future__ import annotations

import threading
from collections.abc import Generator

from dia_demo.codec.files import find_codec
from dia_demo.errors import InputError
from dia_demo.hub import fetch_checkpoint
from dia_demo.services.models import ModelRef


class BackgroundFetch:
    """Fetches a hub model and its codec in a thread of its own, once.

    progress: the fraction fetched, None before and after. problem: why it could not be fetched.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self.progress: float | None = None
        self.problem = ""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="fetch model", daemon=True)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Fetch what is missing of a hub model; nothing for the embedded voice and folders."""
        if ModelRef.resolve(self.model).local is None:
            self.progress = 0.0
            self._thread.start()

    def close(self) -> None:
        """Stop reporting; a download in progress ends with the program and goes on at the next."""
        self._closed.set()

    def join(self, seconds: float | None = None) -> None:
        """Wait for the end of the thread, if there is one."""
        if self.is_running:
            self._thread.join(seconds)

    def _work(self) -> None:
        try:
            for fraction in _fetch(self.model):
                self.progress = fraction
                if self._closed.is_set():
                    return
        except InputError as error:
            self.problem = str(error)
        finally:
            self.progress = None


def _fetch(model: str) -> Generator[float, None, None]:
    folder = yield from fetch_checkpoint(model)
    for _ in find_codec(folder):
        yield 1.0
