"""The messages of a connection to an engine: JSON text, arrays in base64.

The first message of a client is a RunOrder; "stop" may follow. The engine answers with the events
of the run, or with an error, and closes the connection.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from dia_demo.engine.events import Event
from dia_demo.errors import BusyError, DiaDemoError, InputError, RunError
from dia_demo.services.remote.plain import PlainRequest
from dia_demo.untrusted import parse_as

STOP = "stop"
MOST_ROWS = 64
_EVENTS = {kind.__name__: kind for kind in get_args(Event)}


@dataclass(frozen=True)
class RunOrder:
    """What a client asks for: the rows of one run. session: whose it is, so that the takes of
    visitors of one page wait in turn. in_int8_meanwhile: see `Synthesis.stream`."""

    requests: list[PlainRequest]
    session: str = ""
    in_int8_meanwhile: bool = False


def pack_order(order: RunOrder) -> str:
    """The first message of a client."""
    return _to_json(order)


def unpack_order(text: str) -> RunOrder:
    """Raises InputError for what no client of this version sends."""
    try:
        order = parse_as(RunOrder, json.loads(text))
    except (ValueError, RecursionError) as error:
        raise InputError(f"This is no order for an engine: {error}") from None
    if not 1 <= len(order.requests) <= MOST_ROWS:
        raise InputError(f"An order for an engine has from 1 to {MOST_ROWS} requests.")
    return order


def pack_event(event: Event) -> str:
    """An event as a message."""
    return _to_json({"event": type(event).__name__, "fields": event})


def pack_error(error: DiaDemoError) -> str:
    """An error, in place of further events."""
    kind = "input" if isinstance(error, InputError) else "run"
    seconds = error.retry_seconds if isinstance(error, BusyError) else None
    return json.dumps({"error": kind, "message": str(error), "retry_seconds": seconds})


def unpack_event(text: str) -> Event:
    """The event in a message. Raises the error if it has one, RunError for another message."""
    try:
        raw = json.loads(text)
        if "error" in raw:
            raise _error(raw)
        return _build(_EVENTS[raw["event"]], raw["fields"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunError(
            "The engine's answer could not be read; both programs must have the same version: "
            f"{type(error).__name__}: {error}"
        ) from error


def _error(raw: Mapping[str, Any]) -> DiaDemoError:
    message, seconds = str(raw["message"]), raw["retry_seconds"]
    if seconds is not None:
        return BusyError(message, int(seconds))
    return InputError(message) if raw["error"] == "input" else RunError(message)


def _to_json(value: object) -> str:
    return json.dumps(value, default=_plain)


def _plain(value: object) -> object:
    """A value that JSON does not have, as those that it has."""
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
        return {"dtype": value.dtype.str, "shape": value.shape, "data": data}
    if isinstance(value, np.generic):
        return value.item()
    assert is_dataclass(value), f"{type(value)} is part of no event"
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _build(kind: Any, raw: Any) -> Any:
    """What `_plain` made of a value of this type."""
    if get_origin(kind) in (Union, UnionType):
        return None if raw is None else _build(get_args(kind)[0], raw)
    if kind is np.ndarray:
        flat = np.frombuffer(base64.b64decode(raw["data"], validate=True), np.dtype(raw["dtype"]))
        return flat.reshape(raw["shape"])
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: _build(hints[name], value) for name, value in raw.items()})
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        if kinds[-1] is Ellipsis:
            kinds = kinds[:1] * len(raw)
        return tuple(_build(each, value) for each, value in zip(kinds, raw, strict=True))
    return kind(raw) if isinstance(kind, type) and issubclass(kind, Enum) else raw


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)
