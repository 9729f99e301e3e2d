"""A cluster on this machine: `dia serve --ray --replicas N`."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dia_demo.errors import InputError
from dia_demo.files import ROOT
from dia_demo.machine.system import granted_cores
from dia_demo.server.address import Address

APPLICATION = "dia"
# For events between processes; sound is small.
STORE_BYTES = 256 * 2**20
# For takes in progress when the program ends.
END_SECONDS = 3.0
# Nothing is sent to Ray's makers, and a voice that a full replica has read is not waited for.
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_SERVE_MULTIPLEXED_MODEL_ID_MATCHING_TIMEOUT_S": "0.1",
    "RAY_DEDUP_LOGS": "0",
}
NO_RAY = (
    "Ray Serve is not installed here: pip install -r requirements.txt -c constraints.txt, and then "
    "pip install -r requirements-serve.txt."
)


def serve_cluster(replicas: int, address: Address) -> None:
    """Serve the routes for programs with so many replicas on this machine, until Ctrl-C or SIGTERM.
    Raises InputError if Ray is not installed or there are too few cores."""
    with local_cluster(replicas, address) as url:
        # Only now: Ray has handlers of its own, which end the process at once.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        sys.stdout.write(f"{replicas} replicas of the engine at {url}. Press Ctrl+C to quit.\n")
        sys.stdout.flush()
        threading.Event().wait()


@contextmanager
def local_cluster(replicas: int, address: Address, cores: int | None = None) -> Iterator[str]:
    """A cluster of this machine's processes while the block runs; yields its address.

    cores: of each replica; its share of this machine's if left out.
    """
    most = granted_cores()
    share = most // replicas if 1 <= replicas <= most else 0
    if cores is None and not share:
        raise InputError(
            f"--replicas must be from 1 to {most}, the cores of this machine, not {replicas}."
        )
    # Processes of the cluster import this package from wherever this one did.
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # Ray's own ports want a token, as it starts; without this one it would keep one in a file.
    token = secrets.token_hex(32)
    os.environ |= SETTINGS | {"RAY_AUTH_TOKEN": token} | os.environ | {"PYTHONPATH": path}
    try:
        import ray
        from ray import serve
    except ImportError as error:
        raise InputError(NO_RAY) from error
    from dia_demo.server.cluster.deployment import ClusterOptions, build

    folder = Path(tempfile.mkdtemp(prefix="dia-ray-"))
    try:
        with _reserved_port(address) as port:
            ray.init(
                address="local",
                num_cpus=replicas * (cores or share),
                include_dashboard=False,
                log_to_driver=False,
                object_store_memory=STORE_BYTES,
                _temp_dir=str(folder),
                _node_ip_address="127.0.0.1",
            )
            http = {"host": address.host, "port": port}
            serve.start(proxy_location="HeadOnly", http_options=http)
            options = ClusterOptions(
                replicas=replicas,
                cores=cores or share,
                host=address.host,
                end_seconds=END_SECONDS,
            )
            serve.run(build(options), name=APPLICATION)
            yield f"http://{address.host}:{port}"
    finally:
        with suppress(Exception):
            serve.shutdown()
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _reserved_port(address: Address) -> Iterator[int]:
    """The first free port of an address, which no other program gets while the block runs.

    Ray Serve opens the port itself, seconds later, beside this socket that only holds it.
    """
    with address.listen() as listening:
        family, place = listening.family, listening.getsockname()
    with socket.socket(family) as holding:
        if hasattr(socket, "SO_REUSEPORT"):  # Not on Windows.
            holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holding.bind(place)
        yield place[1]
