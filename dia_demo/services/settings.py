"""The app's settings, from environment variables, which docs/settings.md lists. Host and port are
in server/address.py.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from dia_demo.config import PRECISIONS, RuntimeConfig
from dia_demo.disclosure.notice import Notice
from dia_demo.engine.scheduler import PLACES
from dia_demo.errors import InputError
from dia_demo.families.resolve import known_models, local_folder
from dia_demo.files import is_own_folder
from dia_demo.machine.processor import check_override
from dia_demo.machine.variables import read_choice, read_text, read_variables, read_whole
from dia_demo.services.queue import ADDRESS_RUNS
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS
from dia_demo.untrusted import ParseBy


def default_takes() -> Path:
    """In the system's temporary folder, a per-user folder, suffixed with the UID.

    The folder of earlier versions had no number. Its owner, the first user of a machine, still uses
    it, and so do systems where every user has a temporary folder.
    """
    folder = Path(tempfile.gettempdir()) / "dia-demo-takes"
    if not hasattr(os, "getuid") or is_own_folder(folder):
        return folder
    return folder.with_name(f"{folder.name}-{os.getuid()}")


def kept_folder() -> Path:
    """The folder of kept files: DIA_KEPT, else one for the user's data."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return Path(os.environ.get("DIA_KEPT") or data / "dia-demo")


def _split_entries(text: str) -> list[tuple[int, str]]:
    """What spaces separate, numbered from 1."""
    return list(enumerate(text.split(), start=1))


def _parse_model(model: str) -> str:
    try:
        local_folder(model)
    except InputError as error:
        raise InputError(f"DIA_MODELS: {error}") from None
    return model


def _parse_login(entry: tuple[int, str]) -> tuple[str, str]:
    number, login = entry
    user, _, password = login.partition(":")
    if not (user and password):  # The message does not show what may be a password.
        raise InputError(
            "DIA_LOGIN lists logins as NAME:PASSWORD with spaces between them; entry "
            f"{number} has no name, colon or password."
        )
    return user, password


def _parse_token(entry: tuple[int, str]) -> str:
    number, token = entry
    if not re.fullmatch(r"[\x21-\x7e]{16,}", token):  # The message does not show it.
        raise InputError(
            "DIA_TOKENS lists tokens with spaces between them, each of at least 16 letters, "
            f"digits or signs of ASCII; entry {number} is shorter or has others. "
            "python -c 'import secrets; print(secrets.token_urlsafe())' makes one."
        )
    return token


def _parse_origin(origin: str) -> str:
    if not re.fullmatch("https?://[^/]+", origin):
        raise InputError(
            "DIA_ORIGINS must list websites separated by spaces, such as https://example.org, "
            f"without a path or a slash at the end, not {origin!r}."
        )
    return origin


def _parse_engine(text: str) -> str:
    url = text.rstrip("/")
    if url and not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", url):
        raise InputError(
            "DIA_ENGINE must be the address of a running server, such as http://10.0.0.5:7860, "
            f"not {url!r}."
        )
    return url


@dataclass(frozen=True)
class _Start:
    """What runs, which is reported first. DIA_CPU is only checked here."""

    cpu: Annotated[None, read_text("DIA_CPU", lambda cpu: check_override({"DIA_CPU": cpu}))] = None
    precision: Annotated[str, read_choice("DIA_PRECISION", PRECISIONS)] = RuntimeConfig.precision
    threads: Annotated[int | None, read_whole("DIA_THREADS", 1)] = RuntimeConfig.threads
    model: Annotated[str, read_text("DIA_MODEL")] = RuntimeConfig.model
    models: Annotated[
        tuple[Annotated[str, ParseBy(_parse_model)], ...], read_text("DIA_MODELS", str.split)
    ] = ()


@dataclass(frozen=True)
class Settings:
    """runtime: what the page starts with; a person can change it for each take.

    models: those that visitors may choose, beside that of `runtime`. queue_size: takes that may
    wait; places: of one visitor, the running one included; address_places: of one address or token;
    at_once: takes that are generated together. logins: names and passwords, none for a page that is
    open to everybody. tokens: those that programs may have; open_api: without tokens, programs that
    are not on this machine need none. origins: other websites whose pages may use the app. notice:
    before all speech. engine: the address of the server whose engine makes the takes, ""
    for this process; engine_token: one of that server's tokens.
    unload_minutes: after which an idle model is unloaded; 0: never.
    """

    runtime: RuntimeConfig = RuntimeConfig()
    queue_size: Annotated[int, read_whole("DIA_QUEUE", 0)] = 64
    takes_folder: Annotated[Path, read_text("DIA_TAKES")] = field(default_factory=default_takes)
    models: tuple[str, ...] = known_models()
    places: Annotated[int, read_whole("DIA_PLACES", 1)] = 2
    address_places: Annotated[int, read_whole("DIA_ADDRESS_PLACES", 1)] = ADDRESS_RUNS
    at_once: Annotated[int, read_whole("DIA_AT_ONCE", 1)] = PLACES
    script_characters: Annotated[int, read_whole("DIA_SCRIPT", 10, MAX_SCRIPT_CHARACTERS)] = (
        MAX_SCRIPT_CHARACTERS
    )
    prompt_seconds: Annotated[int, read_whole("DIA_PROMPT_SECONDS", 1)] = 60
    upload_mb: Annotated[int, read_whole("DIA_UPLOAD_MB", 1)] = 100
    logins: Annotated[
        tuple[Annotated[tuple[str, str], ParseBy(_parse_login)], ...],
        read_text("DIA_LOGIN", _split_entries),
    ] = field(default=(), repr=False)
    tokens: Annotated[
        tuple[Annotated[str, ParseBy(_parse_token)], ...], read_text("DIA_TOKENS", _split_entries)
    ] = field(default=(), repr=False)
    open_api: Annotated[bool, read_choice("DIA_OPEN_API", ("on", "off"))] = False
    unload_minutes: Annotated[int, read_whole("DIA_UNLOAD_MINUTES", 0, 10_000)] = 30
    temp_bytes: Annotated[int, read_whole("DIA_TEMP_GB", 1, unit=10**9)] = 2 * 10**9
    kept_folder: Annotated[Path, read_text("DIA_KEPT")] = field(default_factory=kept_folder)
    kept_bytes: Annotated[int, read_whole("DIA_KEPT_GB", 1, unit=10**9)] = 4 * 10**9
    shared_comparison: Annotated[Path | None, read_text("DIA_COMPARE")] = None
    measure: Annotated[bool, read_choice("DIA_MEASURE", ("on", "off"))] = True
    origins: Annotated[
        tuple[Annotated[str, ParseBy(_parse_origin)], ...], read_text("DIA_ORIGINS", str.split)
    ] = ()
    engine: Annotated[str, read_text("DIA_ENGINE", _parse_engine)] = ""
    engine_token: Annotated[str, read_text("DIA_ENGINE_TOKEN")] = field(default="", repr=False)
    notice: Annotated[Notice, read_choice("DIA_NOTICE", tuple(Notice))] = Notice.OFF

    @property
    def served_folder(self) -> Path:
        """What the page may hand out: a folder of our own, whatever else lies beside it."""
        return self.takes_folder / "dia-demo"

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Settings:
        """An empty variable is not set. Raises InputError with a line for every mistake."""
        start, settings = read_variables({k: v for k, v in env.items() if v}, _Start, cls)
        runtime = RuntimeConfig(start.model, start.precision, threads=start.threads)
        return replace(settings, runtime=runtime, models=start.models or cls.models)


def read_notice(env: Mapping[str, str]) -> Notice:
    """DIA_NOTICE alone. Raises InputError for another value than those that are allowed."""
    (settings,) = read_variables({"DIA_NOTICE": env.get("DIA_NOTICE") or Notice.OFF}, Settings)
    return settings.notice
