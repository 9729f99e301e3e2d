"""The port of a cluster, which Ray Serve opens seconds after it was chosen."""

from __future__ import annotations

import socket

import pytest

from dia_demo.server.address import LOCAL, Address
from dia_demo.server.cluster.start import _reserved_port


@pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="ports cannot be shared here")
def test_nobody_else_gets_the_port_of_a_cluster():
    with _reserved_port(Address(ports=range(1))) as port:
        with pytest.raises(OSError, match="in use"):
            socket.create_server((LOCAL.host, port))
        with socket.create_server((LOCAL.host, port), reuse_port=True) as proxy:
            with socket.create_connection((LOCAL.host, port)):
                proxy.accept()[0].close()
