"""What makes takes in place of the engine of this process, and how a take survives its loss.

A take depends on nothing but its request. So one whose engine is lost is made again from its seed
by another, and its listener gets only what follows the last sample that was sent.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Protocol

import numpy as np

from dia_demo.engine.events import AudioChunk, Event, Loading, Progress, Started, Waiting
from dia_demo.errors import RunError
from dia_demo.services.take import Request

# A request that ends every engine it gets to must not end all of them.
MOST_LOSSES = 4

log = logging.getLogger(__name__)


class RemoteEngine(Protocol):
    """Makes takes elsewhere. Its methods may be called from any thread."""

    @property
    def is_warm(self) -> bool:
        """Whether it has a model loaded, as far as that is known here."""

    def stream(
        self, requests: Sequence[Request], cancel: threading.Event, in_int8_meanwhile: bool
    ) -> Generator[Event, None, None]:
        """The events of a run; see `Synthesis.stream_together`.

        Raises InputError for a request that is refused, RunError if no engine can be reached.
        """


class EngineLost(Exception):
    """The engine that made a take is gone, or cannot be reached any more."""


def continue_elsewhere(
    make: Callable[[], Generator[Event, None, None]], rows: int
) -> Generator[Event, None, None]:
    """The events of a run, made again from the start whenever its engine is lost.

    make: begins the run on some engine; raises EngineLost, also between two events. Raises RunError
    if engines are lost MOST_LOSSES times, or if another one makes other samples.
    """
    sent = [_Sent() for _ in range(rows)]
    for _ in range(MOST_LOSSES):
        for row in sent:
            row.position = 0
        try:
            with closing(make()) as events:
                for event in events:
                    new = sent[event.row].only_new(event)
                    if new is not None:
                        yield new
            return
        except EngineLost as error:
            log.warning("A take goes on with another engine: %s", error)
            lost = error
    raise RunError(f"The take was given up after {MOST_LOSSES} engines were lost with it: {lost}")


class _Sent:
    """What a listener has got of a row. position: samples that the current engine has made."""

    def __init__(self) -> None:
        self.position = self._length = 0
        self._samples: list[np.ndarray] = []
        self._has_started = self._has_ended = False
        self._step = -1

    def only_new(self, event: Event) -> Event | None:
        """The event as it follows those that were sent; None if it adds nothing to them."""
        match event:
            case Waiting() | Loading():
                return None if self._has_started else event
            case Started():
                is_new, self._has_started = not self._has_started, True
                return event if is_new else None
            case Progress(step=step):
                is_new, self._step = step > self._step, max(step, self._step)
                return event if is_new else None
            case AudioChunk():
                return self._only_new_samples(event)
        is_new, self._has_ended = not self._has_ended, True
        return event if is_new else None

    def _only_new_samples(self, event: AudioChunk) -> AudioChunk | None:
        samples = event.samples
        start, self.position = self.position, self.position + len(samples)
        known = self._length - start
        if known > 0:
            before = np.concatenate(self._samples)
            self._samples = [before]
            repeated = samples[:known]
            if not np.array_equal(before[start : start + len(repeated)], repeated):
                raise RunError(
                    "The engine that made this take was lost, and another one makes other samples, "
                    "so it cannot be continued. Engines that replace each other need the same "
                    "processor, version and precision. Generate it again."
                )
            samples = samples[known:]
        if not len(samples):
            return None
        begin = self._length
        self._samples.append(samples)
        self._length += len(samples)
        return replace(event, samples=samples, start_seconds=begin / event.sample_rate)
