"""Which page is running what, so that Stop and a closed tab reach the right run."""

from __future__ import annotations

import ipaddress
import re
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import gradio as gr

from dia_demo.services.queue import Caller, Visitor

# Where programs call that hold no session: gradio draws a new one for every call.
_CALLS = "/gradio_api/call/"
# The session of such a call, which is its event's name; a page draws a shorter one.
_CALL = re.compile(r"[0-9a-f]{32}")
REMEMBERED = 1000


class Sessions:
    """The cancel flags of every page's runs."""

    def __init__(self) -> None:
        self._flags: dict[str, set[Caller]] = defaultdict(set)
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def run(self, request: gr.Request) -> Iterator[Caller]:
        """A cancel flag for one run; leaving the block, in whatever way, sets it."""
        flag, session = Caller(visitor_of(request)), request.session_hash
        with self._lock:
            self._flags[session].add(flag)
            if session in self._gone:
                flag.set()
        try:
            yield flag
        finally:
            flag.set()
            with self._lock:
                self._flags[session].discard(flag)
                if not self._flags[session]:
                    del self._flags[session]

    def stop(self, session: str) -> None:
        """Ask every run of this page to stop."""
        with self._lock:
            flags = list(self._flags.get(session, ()))
        for flag in flags:
            flag.set()

    def hung_up(self, session: str) -> None:
        """Nobody listens to this session: a program's call may be given up before its run begins,
        and no other run ever has its session. A page's next press is another matter."""
        if _CALL.fullmatch(session):
            with self._lock:
                self._gone[session] = None
                while len(self._gone) > REMEMBERED:
                    self._gone.popitem(last=False)
        self.stop(session)


def visitor_of(request: gr.Request) -> Visitor:
    """Whose turn a request takes in the queue.

    The address is the one the server saw; behind a proxy on this machine, what that proxy says.
    """
    client, url = getattr(request, "client", None), getattr(request, "url", None)
    address = getattr(client, "host", None) or ""
    program = _CALLS in getattr(url, "path", "")
    return Visitor(_network(address), "" if program else request.session_hash or "")


def _network(address: str) -> str:
    """An IPv6 address without its last 64 bits, which one person may change at will."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False))
