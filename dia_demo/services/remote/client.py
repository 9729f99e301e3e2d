"""The engine of another machine, or of a cluster, over a WebSocket: DIA_ENGINE."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dia_demo.engine.events import Cancelled, Event, Failed, Finished
from dia_demo.errors import RunError
from dia_demo.services.people import Caller
from dia_demo.services.remote.engine import EngineLost, continue_elsewhere
from dia_demo.services.remote.plain import PlainRequest
from dia_demo.services.remote.wire import STOP, RunOrder, pack_order, unpack_event
from dia_demo.services.take import Request

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

ROUTE = "/v1/engine"
# How soon a stopped take is stopped there.
STOP_SECONDS = 0.1
CONNECT_SECONDS = 10.0
# For a server that is started again, or another one behind the same address. (A busy machine needed
# more than half a minute to start a gateway.)
RECONNECT_SECONDS, RETRY_SECONDS = 60.0, 0.5
# An engine sends an event several times a second.
SILENT_SECONDS = 60.0
# A result of ten minutes at 44.1 kHz.
LONGEST_MESSAGE = 200 * 2**20


@dataclass
class EngineClient:
    """See `RemoteEngine`. url: of a server that has the route of server/remote/route.py. token: one
    of that server's, if it has any.

    One that was reached is waited for when it is gone: the next part of a dialogue may be due just
    then. One that never was is not.
    """

    url: str
    token: str = field(default="", repr=False)
    _was_reached: bool = field(default=False, init=False, repr=False)

    is_warm = True  # It is not asked before there is a take to make.

    def stream(
        self, requests: Sequence[Request], cancel: threading.Event, in_int8_meanwhile: bool
    ) -> Generator[Event, None, None]:
        """See `RemoteEngine`. A lost connection is opened again, and the run goes on."""
        session = cancel.visitor.session if isinstance(cancel, Caller) else ""
        plain = [PlainRequest.from_request(request) for request in requests]
        order = pack_order(RunOrder(plain, session, in_int8_meanwhile))

        def make() -> Generator[Event, None, None]:
            patience = RECONNECT_SECONDS if self._was_reached else 0.0
            with self._connect_with_retries(patience, cancel) as connection:
                self._was_reached = True
                yield from _run(connection, order, len(plain), cancel)

        yield from continue_elsewhere(make, len(plain))

    @contextmanager
    def _connect_with_retries(
        self, seconds: float, cancel: threading.Event
    ) -> Iterator[ClientConnection]:
        """A connection; tries for so many seconds. Raises RunError if there is none."""
        latest = time.monotonic() + seconds
        with ExitStack() as stack:
            while True:
                try:
                    connection = stack.enter_context(self._connect())
                    break
                except RunError:
                    if time.monotonic() >= latest or cancel.wait(RETRY_SECONDS):
                        raise
            yield connection

    @contextmanager
    def _connect(self) -> Iterator[ClientConnection]:
        from websockets.exceptions import InvalidStatus, WebSocketException
        from websockets.sync.client import connect

        parts = urlsplit(self.url)
        scheme = "wss" if parts.scheme == "https" else "ws"
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with ExitStack() as stack:
            try:
                connecting = connect(
                    f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}{ROUTE}",
                    additional_headers=headers,
                    open_timeout=CONNECT_SECONDS,
                    max_size=LONGEST_MESSAGE,
                    proxy=None,
                )
                connection = stack.enter_context(connecting)
            except InvalidStatus as error:
                status = error.response.status_code
                raise RunError(
                    f"The engine at {self.url} refused the connection ({status}): check DIA_ENGINE "
                    "and DIA_ENGINE_TOKEN, and that it is a server of this program and version."
                ) from error
            except (OSError, WebSocketException) as error:
                raise RunError(
                    f"The engine at {self.url} cannot be reached ({error}). Start it, or correct "
                    "DIA_ENGINE."
                ) from error
            yield connection


def _run(
    connection: ClientConnection, order: str, rows: int, cancel: threading.Event
) -> Generator[Event, None, None]:
    """The events of the run that is ordered. Raises EngineLost if the connection is."""
    from websockets.exceptions import ConnectionClosed

    try:
        connection.send(order)
        yield from _events(connection, rows, cancel)
    except (ConnectionClosed, OSError) as error:
        raise EngineLost(f"the connection was lost ({error})") from error


def _events(
    connection: ClientConnection, rows: int, cancel: threading.Event
) -> Generator[Event, None, None]:
    """The events of a run of so many rows, which `cancel` stops."""
    silent, is_stopped = 0.0, False
    while rows:
        if cancel.is_set() and not is_stopped:
            is_stopped = True
            connection.send(STOP)
        message = None
        with suppress(TimeoutError):
            message = connection.recv(STOP_SECONDS)
        silent = 0.0 if message is not None else silent + STOP_SECONDS
        if silent >= SILENT_SECONDS:
            raise EngineLost(f"it sent nothing for {SILENT_SECONDS:.0f} s")
        if message is not None:
            event = unpack_event(str(message))
            rows -= isinstance(event, Finished | Cancelled | Failed)
            yield event
