"""How `python app.py` is started beside others: a free port, offline, a folder of its own."""

from __future__ import annotations

import os
import socket
from pathlib import Path

HOST = "127.0.0.1"
START_SECONDS = 240


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def app_environment(folder: Path, port: int) -> dict[str, str]:
    """The environment of an app that writes below `folder` alone and fetches nothing."""
    return os.environ | {
        "GRADIO_SERVER_NAME": HOST,
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_TEMP_DIR": str(folder / "gradio"),
        "DIA_TAKES": str(folder / "takes"),
        "DIA_KEPT": str(folder / "kept"),
        "HF_HUB_OFFLINE": "1",
        "DIA_MODEL": "nano",
        "DIA_THREADS": "1",
    }
