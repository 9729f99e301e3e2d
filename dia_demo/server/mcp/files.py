"""The files that tools make, at addresses that cannot be guessed."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from dia_demo.audio import FORMATS
from dia_demo.errors import RunError

ROUTE = "/mcp/files/{folder}/{name}"
_PREFIX, _RANDOM_BYTES = "mcp-", 20
_FOLDER = re.compile(rf"[0-9a-f]{{{2 * _RANDOM_BYTES}}}")
GONE = "This file is gone: temporary files are removed after a day, or when their space is used up."


class ToolFiles:
    """home: the folder of temporary files that the app hands out."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def new_folder(self) -> Path:
        """A folder for the files of one call. Raises RunError if it cannot be created."""
        folder = self._home / f"{_PREFIX}{secrets.token_hex(_RANDOM_BYTES)}"
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise RunError(
                f"The folder for takes is not writable: {error.strerror or error}. Free some space."
            ) from error
        return folder

    @staticmethod
    def url_of(path: Path, request: Request) -> str:
        """The address of a file in one of these folders, as the client of a request sees it."""
        base = request.base_url
        if forwarded := request.headers.get("x-forwarded-host"):
            base = base.replace(netloc=forwarded)
        folder = path.parent.name.removeprefix(_PREFIX)
        return f"{base}{ROUTE.format(folder=folder, name=path.name).removeprefix('/')}"

    async def answer(self, request: Request) -> Response:
        """The handler of ROUTE."""
        folder, name = request.path_params["folder"], request.path_params["name"]
        path = self._home / f"{_PREFIX}{folder}" / name
        if not _FOLDER.fullmatch(folder) or Path(name).name != name or not os.path.isfile(path):
            return PlainTextResponse(GONE, 404)
        kind = FORMATS.get(path.suffix)
        return FileResponse(path, media_type=kind.content_type if kind else None, filename=name)
