"""Where the page is served: GRADIO_SERVER_NAME, GRADIO_SERVER_PORT and GRADIO_NUM_PORTS.

gradio reads these variables too, when it is imported, and ends with a traceback if a number is
none. So app.py checks them before, and this module imports no gradio.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from dia_demo.errors import InputError, RunError
from dia_demo.machine.variables import read_text, read_variables, read_whole

HOST, PORT, PORTS = "127.0.0.1", 7860, 100
HIGHEST_PORT = 65535


@dataclass(frozen=True)
class _Variables:
    host: Annotated[str, read_text("GRADIO_SERVER_NAME")] = HOST
    port: Annotated[int, read_whole("GRADIO_SERVER_PORT", 0, HIGHEST_PORT)] = PORT
    ports: Annotated[int, read_whole("GRADIO_NUM_PORTS", 1, HIGHEST_PORT)] = PORTS


@dataclass(frozen=True)
class Address:
    """host: a name or number of this machine. ports: of which the first free one is used."""

    host: str = HOST
    ports: range = range(PORT, PORT + PORTS)

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Address:
        """Raises InputError with a line for every variable that cannot be used, naming it."""
        (read,) = read_variables(env, _Variables)
        end = min(read.port + read.ports, HIGHEST_PORT + 1)
        return cls((read.host or HOST).strip("[]"), range(read.port, end))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        if self.host.lower() == "localhost":
            return True
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return False

    def listen(self) -> socket.socket:
        """A socket at the first free port.

        Raises InputError if the host is not this machine, RunError if no port can be used.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        for port in self.ports:
            try:
                made = socket.create_server((self.host, port), family=family, backlog=2048)
            except (OSError, UnicodeError) as error:
                if not _is_taken(error):
                    raise InputError(
                        "GRADIO_SERVER_NAME must be an address of this machine, such as 127.0.0.1 "
                        "(for this machine alone) or 0.0.0.0 (for its networks as well), not "
                        f"{self.host!r}."
                    ) from None
            else:
                # Only for sockets that name their protocol, asyncio switches Nagle's algorithm off,
                # with which the end of a short answer waits 40 ms.
                return socket.socket(
                    made.family, made.type, socket.IPPROTO_TCP, fileno=made.detach()
                )
        raise RunError(
            f"No port from {self.ports.start} to {self.ports.stop - 1} of {self.host} is free, or "
            "this user may not use them. Choose another from 1024 to 65535 in GRADIO_SERVER_PORT."
        )


LOCAL = Address()


def _is_taken(error: Exception) -> bool:
    """Whether another port may do."""
    return isinstance(error, PermissionError) or getattr(error, "errno", 0) == errno.EADDRINUSE
