"""The app's settings, from environment variables, which docs/settings.md lists. Host and port are
in server/address.py.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from dia_demo.config import PRECISIONS, RuntimeConfig
from dia_demo.disclosure.notice import Notice
from dia_demo.engine.scheduler import PLACES
from dia_demo.errors import InputError
from dia_demo.families.resolve import known_models, local_folder
from dia_demo.files import is_own_folder
from dia_demo.machine.processor import check_override
from dia_demo.machine.variables import Variables
from dia_demo.services.queue import ADDRESS_RUNS
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS

KEPT_GB = 4
TEMP_GB = 2
_ORIGIN = re.compile(r"https?://[^/]+")
_ENGINE = re.compile(r"https?://[^/?#\s]+(/[^?#\s]*)?")
_LOGIN = re.compile(r"[^:]+:.+")
_TOKEN = re.compile(r"[\x21-\x7e]{16,}")


def default_takes() -> Path:
    """In the system's temporary folder, a per-user folder, suffixed with the UID.

    The folder of earlier versions had no number. Its owner, the first user of a machine, still uses
    it, and so do systems where every user has a temporary folder.
    """
    folder = Path(tempfile.gettempdir()) / "dia-demo-takes"
    if not hasattr(os, "getuid") or is_own_folder(folder):
        return folder
    return folder.with_name(f"{folder.name}-{os.getuid()}")


def kept_folder(env: Mapping[str, str] = os.environ) -> Path:
    """The folder of kept files: DIA_KEPT, else one for the user's data."""
    if env.get("DIA_KEPT"):
        return Path(env["DIA_KEPT"])
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "dia-demo"


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
    queue_size: int = 64
    takes_folder: Path = field(default_factory=default_takes)
    temp_bytes: int = TEMP_GB * 10**9
    kept_folder: Path = field(default_factory=kept_folder)
    kept_bytes: int = KEPT_GB * 10**9
    shared_comparison: Path | None = None
    measure: bool = True
    origins: tuple[str, ...] = ()
    models: tuple[str, ...] = known_models()
    places: int = 2
    address_places: int = ADDRESS_RUNS
    at_once: int = PLACES
    script_characters: int = MAX_SCRIPT_CHARACTERS
    prompt_seconds: int = 60
    upload_mb: int = 100
    logins: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    tokens: tuple[str, ...] = field(default=(), repr=False)
    open_api: bool = False
    unload_minutes: int = 30
    notice: Notice = Notice.OFF
    engine: str = ""
    engine_token: str = field(default="", repr=False)

    @property
    def served_folder(self) -> Path:
        """What the page may hand out: a folder of our own, whatever else lies beside it."""
        return self.takes_folder / "dia-demo"

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Settings:
        """Raises InputError with a line for every variable that cannot be used, naming it."""
        read = _Variables(env)
        read.check(partial(check_override, env))
        precision = read.choice("DIA_PRECISION", RuntimeConfig.precision, PRECISIONS)
        threads = read.whole("DIA_THREADS", 0, 1) or None
        model = read.text("DIA_MODEL", RuntimeConfig.model)
        shared = env.get("DIA_COMPARE")
        settings = cls(
            runtime=RuntimeConfig(model=model, precision=precision, threads=threads),
            models=read.models("DIA_MODELS", cls.models),
            queue_size=read.whole("DIA_QUEUE", cls.queue_size, 0),
            places=read.whole("DIA_PLACES", cls.places, 1),
            address_places=read.whole("DIA_ADDRESS_PLACES", cls.address_places, 1),
            at_once=read.whole("DIA_AT_ONCE", cls.at_once, 1),
            script_characters=read.whole(
                "DIA_SCRIPT", cls.script_characters, 10, MAX_SCRIPT_CHARACTERS
            ),
            prompt_seconds=read.whole("DIA_PROMPT_SECONDS", cls.prompt_seconds, 1),
            upload_mb=read.whole("DIA_UPLOAD_MB", cls.upload_mb, 1),
            logins=read.logins("DIA_LOGIN"),
            tokens=read.tokens("DIA_TOKENS"),
            open_api=read.choice("DIA_OPEN_API", "off", ("on", "off")) == "on",
            unload_minutes=read.whole("DIA_UNLOAD_MINUTES", cls.unload_minutes, 0, 10_000),
            takes_folder=Path(read.text("DIA_TAKES", "") or default_takes()),
            temp_bytes=read.whole("DIA_TEMP_GB", TEMP_GB, 1) * 10**9,
            kept_folder=kept_folder(env),
            kept_bytes=read.whole("DIA_KEPT_GB", KEPT_GB, 1) * 10**9,
            shared_comparison=Path(shared) if shared else None,
            measure=read.choice("DIA_MEASURE", "on", ("on", "off")) == "on",
            origins=read.origins("DIA_ORIGINS"),
            engine=read.engine("DIA_ENGINE"),
            engine_token=read.text("DIA_ENGINE_TOKEN", ""),
            notice=read.notice("DIA_NOTICE"),
        )
        read.raise_mistakes()
        return settings


class _Variables(Variables):
    """Reads the variables that only the app and the command line have."""

    def models(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        models = tuple(self.text(name, "").split())
        for model in models:
            self.check(partial(_check_model, name, model))
        return models or default

    def origins(self, name: str) -> tuple[str, ...]:
        origins = tuple(self.text(name, "").split())
        for origin in origins:
            if not _ORIGIN.fullmatch(origin):
                self.mistakes.append(
                    f"{name} must list websites separated by spaces, such as https://example.org, "
                    f"without a path or a slash at the end, not {origin!r}."
                )
        return origins

    def notice(self, name: str) -> Notice:
        return Notice(self.choice(name, Notice.OFF, tuple(Notice)))

    def logins(self, name: str) -> tuple[tuple[str, str], ...]:
        logins = self.text(name, "").split()
        for number, login in enumerate(logins, start=1):
            if not _LOGIN.fullmatch(login):  # The message does not show what may be a password.
                self.mistakes.append(
                    f"{name} lists logins as NAME:PASSWORD with spaces between them; entry "
                    f"{number} has no name, colon or password."
                )
        return tuple((user, password) for user, _, password in (s.partition(":") for s in logins))

    def engine(self, name: str) -> str:
        url = self.text(name, "").rstrip("/")
        if url and not _ENGINE.fullmatch(url):
            self.mistakes.append(
                f"{name} must be the address of a running server, such as http://10.0.0.5:7860, "
                f"not {url!r}."
            )
        return url

    def tokens(self, name: str) -> tuple[str, ...]:
        tokens = tuple(self.text(name, "").split())
        for number, token in enumerate(tokens, start=1):
            if not _TOKEN.fullmatch(token):  # The message does not show it.
                self.mistakes.append(
                    f"{name} lists tokens with spaces between them, each of at least 16 letters, "
                    f"digits or signs of ASCII; entry {number} is shorter or has others. "
                    "python -c 'import secrets; print(secrets.token_urlsafe())' makes one."
                )
        return tokens


def read_notice(env: Mapping[str, str]) -> Notice:
    """DIA_NOTICE alone. Raises InputError for another value than those that are allowed."""
    read = _Variables(env)
    notice = read.notice("DIA_NOTICE")
    read.raise_mistakes()
    return notice


def _check_model(variable: str, model: str) -> None:
    """Raise InputError unless `model` is the name of a model or a folder."""
    try:
        local_folder(model)
    except InputError as error:
        raise InputError(f"{variable}: {error}") from None
