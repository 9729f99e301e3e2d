"""The app's settings, from environment variables.

DIA_MODEL, DIA_PRECISION, DIA_THREADS, DIA_QUEUE (people who may wait), DIA_TAKES (folder of
temporary files: uploads and downloads), DIA_TEMP_GB (their limit),
DIA_KEPT (folder of comparisons and earlier takes, which outlive the app and are never served as
files), DIA_KEPT_GB (its limit), DIA_COMPARE (folder of one comparison that the page
offers to everybody who opens it), DIA_MEASURE (off hides the Machine tab, whose benchmark makes
all other runs wait), DIA_ORIGINS (other websites whose pages may use this app), DIA_CPU (for
contributors: the class of processor to behave like, see processor.py). Host and port are gradio's
own GRADIO_SERVER_NAME and GRADIO_SERVER_PORT.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dia_demo.config import PRECISIONS, Range, RuntimeConfig
from dia_demo.errors import InputError
from dia_demo.processor import check_override

QUEUE_SIZE = 64
KEPT_GB = 4
TEMP_GB = 2


def _default_takes() -> Path:
    return Path(tempfile.gettempdir()) / "dia-demo-takes"


def _default_kept() -> Path:
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "dia-demo"


@dataclass(frozen=True)
class Settings:
    """runtime: what the page starts with; a person can change it for each take."""

    runtime: RuntimeConfig = RuntimeConfig()
    queue_size: int = QUEUE_SIZE
    takes_folder: Path = field(default_factory=_default_takes)
    temp_bytes: int = TEMP_GB * 10**9
    kept_folder: Path = field(default_factory=_default_kept)
    kept_bytes: int = KEPT_GB * 10**9
    shared_comparison: Path | None = None
    measure: bool = True
    origins: tuple[str, ...] = ()

    @property
    def served_folder(self) -> Path:
        """The folder whose files the page may download; nothing else is in it."""
        return self.takes_folder / "dia-demo"

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Settings:
        """Read the variables. Raises InputError, which names the variable, for an invalid value."""
        check_override(env)
        threads = _whole(env, "DIA_THREADS", 0, 1) or None
        precision = env.get("DIA_PRECISION") or RuntimeConfig.precision
        if precision not in PRECISIONS:
            allowed = ", ".join(PRECISIONS)
            raise InputError(f"DIA_PRECISION must be one of {allowed}, not {precision!r}.")
        model = env.get("DIA_MODEL") or RuntimeConfig.model
        runtime = RuntimeConfig(model=model, precision=precision, threads=threads)
        takes, kept, shared = (env.get(f"DIA_{name}") for name in ("TAKES", "KEPT", "COMPARE"))
        return cls(
            runtime=runtime,
            queue_size=_whole(env, "DIA_QUEUE", QUEUE_SIZE, 0),
            takes_folder=Path(takes) if takes else _default_takes(),
            temp_bytes=_whole(env, "DIA_TEMP_GB", TEMP_GB, 1) * 10**9,
            kept_folder=Path(kept) if kept else _default_kept(),
            kept_bytes=_whole(env, "DIA_KEPT_GB", KEPT_GB, 1) * 10**9,
            shared_comparison=Path(shared) if shared else None,
            measure=_switch(env, "DIA_MEASURE", True),
            origins=_origins(env, "DIA_ORIGINS"),
        )


def _switch(env: Mapping[str, str], name: str, default: bool) -> bool:
    text = env.get(name)
    if text and text not in ("on", "off"):
        raise InputError(f"{name} must be on or off, not {text!r}.")
    return text == "on" if text else default


def _origins(env: Mapping[str, str], name: str) -> tuple[str, ...]:
    origins = tuple((env.get(name) or "").split())
    for origin in origins:
        if not re.fullmatch(r"https?://[^/]+", origin):
            raise InputError(
                f"{name} must list websites separated by spaces, such as https://example.org, "
                f"without a path or a slash at the end, not {origin!r}."
            )
    return origins


def _whole(env: Mapping[str, str], name: str, default: int, low: int) -> int:
    text = env.get(name)
    if not text:
        return default
    allowed = Range(low, 1024, whole=True)
    try:
        value = int(text)
    except ValueError:
        raise InputError(
            f"{name} must be a whole number from {low} to {allowed.high}, not {text!r}."
        ) from None
    allowed.check(name, value)
    return value
