"""HTTP requests by chance: from the OpenAPI description, and bodies that no description has."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import requests
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import openapi
from schemathesis.generation import GenerationMode

from dia_demo.server.encoders import STREAM_FORMATS, open_encoder
from tools.fuzz_api.tally import Tally

# Until the first byte of an answer, or the next one.
HANG_SECONDS = 120
READ_BYTES = 2**16

_TYPES = (
    "application/json", "application/json; charset=utf-16", "text/plain", "", "multipart/form-data",
    "application/x-www-form-urlencoded", "audio/wav", "multipart/form-data; boundary=x", "a/b/c",
)  # fmt: skip
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=40)
    | st.sampled_from([10**400, -1, 2**63, 1e308, float("nan"), "\ud800", "[S3]", "(", "\x00", ""])
)
JSON = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
# Long and deep texts, and what is no JSON.
_RAW = st.binary(max_size=300) | st.sampled_from(
    [b"", b"{", b"[" * 50_000, b'{"input": "' + b"x" * 100_000, b'{"input": 1e999}', b"\xff\xfe{}"]
)


def sounds() -> list[bytes]:
    """A second of noise in every format that has a header."""
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, 24000).astype(np.float32)
    encoders = [open_encoder(name, 24000, "") for name in STREAM_FORMATS if name != "pcm"]
    return [encoder.add(noise) + encoder.finish() for encoder in encoders]


def _damage(sound: bytes, kept: float, changes: dict[float, bytes]) -> bytes:
    """The beginning of a sound, with other bytes at some places, most of them in its header."""
    damaged = bytearray(sound[: round(kept * len(sound))])
    for place, data in changes.items():
        start = round(place**4 * len(damaged))
        damaged[start : start + len(data)] = data
    return bytes(damaged)


_PART = st.floats(0, 1)
_DAMAGED = st.builds(
    _damage,
    st.sampled_from(sounds()),
    st.just(1.0) | _PART,
    st.dictionaries(_PART, st.binary(min_size=1, max_size=8), max_size=6),
)
# How a file is described, and what goes with one.
_BINARY = {"type": "string", "format": "binary"}.items()
_NAME = "By chance"
_FORM = {
    "name": _NAME, "prompt_id": _NAME, "consent": "true", "ref_text": "Hello.", "model": "nano",
}  # fmt: skip


def fuzz_http(url: str, tally: Tally, examples: int) -> None:
    """Send about `examples` requests to every operation of the server at `url`, twice as many of
    them malformed as well-formed."""
    description = requests.get(f"{url}/openapi.json", timeout=HANG_SECONDS).json()
    for found in openapi.from_dict(description).get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:
            cases = operation.as_strategy(generation_mode=mode)
            run_examples(cases, _case_sender(url, tally, mode), examples // 3)
        if operation.method == "post":
            _fuzz_bodies(url, tally, operation, examples // 3)
            _fuzz_files(url, tally, operation, examples // 3)


def _case_sender(url: str, tally: Tally, mode: GenerationMode) -> Callable[[Any], None]:
    def send(case: Any) -> None:
        given_to = case.as_transport_kwargs(base_url=url)
        _send(tally, case.operation.label, mode is GenerationMode.NEGATIVE, given_to)

    return send


def run_examples(strategy: st.SearchStrategy, act: Callable[[Any], None], examples: int) -> None:
    """Do something with so many examples, the same ones every time."""
    options: dict[str, Any] = {
        "max_examples": max(1, examples),
        "database": None,
        "deadline": None,
        "derandomize": True,
        "phases": [Phase.generate],
        "suppress_health_check": list(HealthCheck),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hypothesis, on strategies with few examples
        try:
            settings(**options)(given(strategy)(act))()
        except Unsatisfiable:  # An operation without parameters cannot be asked wrongly.
            pass


def _fuzz_bodies(url: str, tally: Tally, operation: Any, examples: int) -> None:
    """Bodies that are no JSON, and JSON with one field that may be anything."""
    address = f"{url}{operation.path}"
    fields = _fields_of(operation)
    body = st.builds(
        lambda field, value: json.dumps(_PLAIN | {field: value}).encode(),
        st.sampled_from(fields),
        JSON,
    )

    def send_body(content: tuple[str, bytes]) -> None:
        kind, data = content
        headers = {"Content-Type": kind} if kind else {}
        _send(tally, operation.label, True, dict(url=address, data=data, headers=headers))

    def send_json(data: bytes) -> None:
        send_body(("application/json", data))

    run_examples(st.tuples(st.sampled_from(_TYPES), _RAW), send_body, examples // 3)
    run_examples(body, send_json, examples - examples // 3)


# What is accepted by the routes, and is soon generated.
_PLAIN = {
    "input": "Hi.", "turns": [{"text": "Hi."}], "items": [{"input": "Hi."}], "max_tokens": 40,
}  # fmt: skip


def _fields_of(operation: Any) -> list[str]:
    """The fields of an operation's body, and one that it does not have."""
    return sorted({"unknown", *_PLAIN, *_properties(operation)})


def _properties(operation: Any) -> dict[str, Any]:
    """The schemas of the fields of an operation's body."""
    properties: dict[str, Any] = {}
    for body in operation.body:
        schema = body.definition.get("schema", {})
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        schemas = operation.schema.raw_schema.get("components", {}).get("schemas", {})
        properties |= schemas.get(name, schema).get("properties", {})
    return properties


def _fuzz_files(url: str, tally: Tally, operation: Any, examples: int) -> None:
    """Uploads of damaged sounds, where an operation takes files."""
    properties = _properties(operation)
    files = [name for name, schema in properties.items() if _BINARY <= schema.items()]
    if not files:
        return
    form = {name: value for name, value in _FORM.items() if name in properties}

    def send_sound(sound: bytes) -> None:
        content = {name: ("sound", sound) for name in files}
        request = {"url": f"{url}{operation.path}", "files": content, "data": form}
        _send(tally, operation.label, True, request)

    run_examples(_DAMAGED, send_sound, examples)


def _send(tally: Tally, label: str, is_malformed: bool, given_to: dict[str, Any]) -> None:
    """Send a request, and read the beginning of its answer, as a client that leaves early."""
    given_to = {"method": "POST"} | given_to
    how = str({name: given_to.get(name) for name in ("method", "url", "params", "json", "data")})
    try:
        with requests.request(**given_to, timeout=HANG_SECONDS, stream=True) as answer:
            text = next(answer.iter_content(READ_BYTES), b"").decode(errors="replace")
            tally.add(label, is_malformed, answer.status_code, text, how)
    except requests.Timeout:
        tally.add(label, is_malformed, None, "", how)
    except (requests.exceptions.InvalidHeader, requests.exceptions.InvalidURL, UnicodeError):
        pass  # It cannot be sent by this client.
    except requests.RequestException as error:
        tally.add(label, is_malformed, 599, repr(error), how)
