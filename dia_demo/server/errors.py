"""Errors: one sentence, in the shape that the client reads.

Programs on the routes of OpenAI's shape get {"error": {"message", "type", "param", "code"}},
SillyTavern's extension {"detail"}; everybody else gets plain text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Scope

from dia_demo.errors import BusyError, DiaDemoError, InputError, printable

PROGRAM_PATHS = ("/v1/", "/dev/")
# Of other servers, whose clients read {"detail"}.
DETAIL_PATHS = ("/v1/audio_prompts", "/v1/voice_mappings")
# OpenAI's names of what went wrong, by status.
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_SHOWN_CHARACTERS = 60


class ApiError(HTTPException):
    """An answer with a status other than 200. param: the field that is wrong; code: a name for
    programs; retry_seconds: after which the same request may succeed; headers: further ones."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        own = dict(headers or {})
        if retry_seconds is not None:
            own["Retry-After"] = str(max(1, math.ceil(retry_seconds)))
        super().__init__(status, message, own or None)
        self.param, self.code = param, code


def is_program_path(scope: Scope) -> bool:
    """Whether a request is for a route of OpenAI's shape."""
    path: str = scope["path"].removeprefix(scope.get("root_path", ""))
    return path.startswith(PROGRAM_PATHS) and not path.startswith(DETAIL_PATHS)


def error_body(
    message: str, status: int, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    shown = printable(message)
    return {"error": {"message": shown, "type": kind, "param": param, "code": code}}


def error_response(error: HTTPException | DiaDemoError) -> JSONResponse:
    """An error as an answer: 400 for what the client can change, 429 where it has to wait, 500 for
    what failed here."""
    if isinstance(error, DiaDemoError):
        error = api_error(error)
    param, code = getattr(error, "param", None), getattr(error, "code", None)
    body = error_body(str(error.detail), error.status_code, param, code)
    return JSONResponse(body, error.status_code, headers=error.headers)


def api_error(error: DiaDemoError) -> ApiError:
    """An error of the services with its status."""
    if isinstance(error, BusyError):
        return ApiError(429, str(error), code="busy", retry_seconds=error.retry_seconds)
    return ApiError(400 if isinstance(error, InputError) else 500, str(error))


def refusal(
    scope: Scope, message: str, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """The answer to a request that does not reach its route."""
    if is_program_path(scope):
        return JSONResponse(error_body(message, status), status, headers=headers)
    return PlainTextResponse(message, status, headers=headers)


def add_error_handlers(application: FastAPI) -> None:
    """Let the routes of an application raise HTTPException and DiaDemoError."""

    async def answer_http_error(request: Request, error: Any) -> Response:
        if not is_program_path(request.scope):
            return await http_exception_handler(request, error)
        return error_response(error)

    async def answer_app_error(request: Request, error: Any) -> Response:
        return await answer_http_error(request, api_error(error))

    async def answer_invalid(request: Request, error: Any) -> Response:
        return await answer_http_error(request, first_mistake(error))

    application.add_exception_handler(HTTPException, answer_http_error)
    application.add_exception_handler(DiaDemoError, answer_app_error)
    application.add_exception_handler(RequestValidationError, answer_invalid)


def first_mistake(error: RequestValidationError | ValidationError) -> ApiError:
    """The first thing that is wrong with a body, in a sentence."""
    first: Any = error.errors()[0]
    if first["type"] == "json_invalid":
        return ApiError(400, "The body is not valid JSON.")
    param = ".".join(str(part) for part in first["loc"] if part != "body") or None
    name = param or "The body"
    if first["type"] == "missing":
        return ApiError(400, f"{name} is missing.", param=param)
    given = repr(first.get("input"))
    if len(given) > _SHOWN_CHARACTERS:
        given = f"{given[:_SHOWN_CHARACTERS]}…"
    return ApiError(400, f"{name}: {first['msg']}, not {given}.", param=param)
