"""The engine of a cluster: each row of a run goes to a replica where a place is free, and to one
that has read its voice if there is one. A row whose replica dies goes on at another."""

from __future__ import annotations

import logging
import queue
import threading
import time
import uuid
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ray.exceptions import RayError
from ray.serve.exceptions import (
    DeploymentUnavailableError,
    RayServeException,
    RequestCancelledError,
)
from ray.serve.handle import DeploymentHandle

from dia_demo.engine.events import Cancelled, Event, Failed, Finished, Waiting
from dia_demo.errors import DiaDemoError, RunError
from dia_demo.machine.background import Background
from dia_demo.services.people import Caller, Visitor
from dia_demo.services.queue import POSITION_SECONDS
from dia_demo.services.remote.engine import EngineLost, continue_elsewhere
from dia_demo.services.remote.plain import PlainRequest
from dia_demo.services.remote.wire import unpack_event
from dia_demo.services.take import Request

STOP_SECONDS = 0.1
# After which replicas that do not start are asked again.
RETRY_SECONDS = 1.0

log = logging.getLogger(__name__)


class ClusterEngine:
    """See `RemoteEngine`. replicas: a handle of the deployment of `EngineReplica`."""

    def __init__(self, replicas: DeploymentHandle) -> None:
        self._replicas = replicas
        # Rows that no replica has begun, in order of arrival.
        self._line: list[_RowOfRun] = []
        self._is_warm = threading.Event()
        Background("warm up", self._wait_until_warm).start()

    @property
    def is_warm(self) -> bool:
        """Whether a replica has been loaded."""
        return self._is_warm.is_set()

    def _wait_until_warm(self) -> None:
        while not self.is_warm:
            try:
                self._replicas.answer.remote().result()
                self._is_warm.set()
            except (RayError, RayServeException, DeploymentUnavailableError) as error:
                log.warning("no replica of the cluster has started yet: %s", type(error).__name__)
                time.sleep(RETRY_SECONDS)

    def stream(
        self, requests: Sequence[Request], cancel: threading.Event, in_int8_meanwhile: bool
    ) -> Generator[Event, None, None]:
        """See `RemoteEngine`."""
        visitor = cancel.visitor if isinstance(cancel, Caller) else Visitor()
        # A session's limit of runs is that of who asks, and here each row is a run.
        visitor = Visitor(f"{visitor.address} {visitor.session}".strip(), token=visitor.token)
        run = uuid.uuid4().hex
        rows = [
            _RowOfRun(
                self._replicas,
                index,
                (PlainRequest.from_request(request), run, visitor, in_int8_meanwhile),
            )
            for index, request in enumerate(requests)
        ]
        messages: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        self._line += rows
        try:
            for row in rows:
                Background("row", partial(row.run, messages.put)).start()
            yield from self._events(rows, run, messages, cancel)
        finally:
            for row in rows:
                row.close()
                self._leave_line(row)

    def _events(
        self,
        rows: Sequence[_RowOfRun],
        run: str,
        messages: queue.SimpleQueue[Event | BaseException],
        cancel: threading.Event,
    ) -> Iterator[Event]:
        left, waited, is_stopped = len(rows), 0.0, False
        while left:
            if cancel.is_set() and not is_stopped:
                is_stopped = True
                self._stop(rows, run)
            message = None
            with suppress(queue.Empty):
                message = messages.get(timeout=STOP_SECONDS)
            if isinstance(message, BaseException):
                raise message
            if message is None:
                waited += STOP_SECONDS
                if waited >= POSITION_SECONDS:
                    waited = 0.0
                    yield from self._positions(rows)
                continue
            self._leave_line(rows[message.row])
            left -= isinstance(message, Finished | Cancelled | Failed)
            yield message

    def _stop(self, rows: Sequence[_RowOfRun], run: str) -> None:
        """Let the rows that have begun end with what they have."""
        for row in rows:
            if not row.has_begun:
                row.close()
        # A replica that does not answer in time hears of it all the same.
        with suppress(RayError, RayServeException, DeploymentUnavailableError, TimeoutError):
            self._replicas.broadcast("stop", run).results(timeout_s=STOP_SECONDS)

    def _positions(self, rows: Sequence[_RowOfRun]) -> Iterator[Waiting]:
        line = list(self._line)
        for row in rows:
            if row in line:
                yield Waiting(line.index(row) + 1, row=row.index)

    def _leave_line(self, row: _RowOfRun) -> None:
        with suppress(ValueError):
            self._line.remove(row)


class _RowOfRun:
    """One row, wherever it is made. call: the arguments of `EngineReplica.rows`."""

    def __init__(self, replicas: DeploymentHandle, index: int, call: tuple[Any, ...]) -> None:
        self.index, self._call = index, call
        # Without a voice, any replica will do.
        key = call[0].voice_key
        self._handle = replicas.options(stream=True, multiplexed_model_id=key)
        self._response: Any = None
        self._lock = threading.Lock()
        self._is_closed = False
        self.has_begun = False

    def run(self, put) -> None:
        """Give its events to `put`, or the error that ends it."""
        try:
            with closing(continue_elsewhere(self._make, 1)) as events:
                for event in events:
                    self.has_begun = True
                    put(replace(event, row=self.index))
        except RequestCancelledError:
            put(Cancelled(None, self.index))
        except DiaDemoError as error:
            put(error)
        except BaseException as error:  # noqa: BLE001 - raised where the events are read
            log.error("a row of a cluster failed", exc_info=error)
            put(RunError(f"The cluster failed: {type(error).__name__}. Its log says why."))

    def close(self) -> None:
        """Leave: a row that has begun stops within a step."""
        with self._lock:
            self._is_closed = True
            if self._response is not None:
                self._response.cancel()

    def _make(self) -> Generator[Event, None, None]:
        with self._lock:
            if self._is_closed:
                raise RequestCancelledError("it was closed before it began")
            response: Any = self._handle.rows.remote(*self._call)
            self._response = response
        try:
            for item in response:
                yield unpack_event(item) if isinstance(item, str) else item
        except RequestCancelledError:
            raise
        except (RayError, DeploymentUnavailableError) as error:
            raise EngineLost(f"{type(error).__name__}") from error
        finally:
            response.cancel()
