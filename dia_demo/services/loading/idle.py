"""Unloading of a model that nobody uses, so that its memory is free for other programs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from dia_demo.errors import BusyError
from dia_demo.machine.system import release_free_memory
from dia_demo.services.loading.model_slot import ModelSlot
from dia_demo.services.queue import Queue

log = logging.getLogger(__name__)


class IdleUnload:
    """Frees the model after so many seconds without a run; 0: never.

    The embedded voice stays: it takes little memory. The next run loads the model again.
    """

    def __init__(
        self,
        queue: Queue,
        model: ModelSlot,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue, self._model, self._seconds, self._clock = queue, model, seconds, clock

    def check(self) -> None:
        """Unload the model if it has been idle for long enough."""
        model = self._model
        if not self._seconds or self._queue.busy.is_set() or not model.is_loaded:
            return
        used_at = max(self._queue.left_at, model.loaded_at)
        if self._clock() - used_at < self._seconds or model.engine.info.is_embedded:
            return
        with suppress(BusyError), self._queue.enter() as ticket:
            # Whoever came meanwhile uses the model.
            if next(self._queue.wait(ticket, threading.Event()), None) is None:
                name = model.engine.info.name
                model.unload()
                release_free_memory()
                log.info("%s was unloaded, because nobody has used it for a while.", name)
