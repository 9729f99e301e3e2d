"""Messages by chance to the WebSockets: text as it comes, and the engine for other servers."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tools.fuzz_api.requests import HANG_SECONDS, JSON, run_examples
from tools.fuzz_api.tally import Tally

SPEECH, ENGINE = "/v1/audio/speech/stream", "/v1/engine"
# Ends of a session that a client may cause: normal, too large, refused, too many.
_ORDERLY = (1000, 1009, 1008, 1013)
_TYPES = ("session.config", "input.text", "input.done", "session.close", "unknown")
_FIELDS = ("voice", "seed", "speed", "response_format", "stream_audio", "text", "temperature")
_OBJECTS = st.builds(
    lambda kind, fields: json.dumps({"type": kind} | fields),
    st.sampled_from(_TYPES) | JSON,
    st.dictionaries(st.sampled_from(_FIELDS), JSON, max_size=2),
)
_CONFIG = st.just(json.dumps({"type": "session.config", "max_tokens": 40}))
_WORDS = st.sampled_from(
    [json.dumps({"type": "input.text", "text": text}) for text in ("Hi. ", "[S2")]
)
_MESSAGES = st.lists(
    _OBJECTS
    | _CONFIG
    | _WORDS
    | st.text(max_size=40)
    | st.binary(max_size=40)
    | JSON.map(json.dumps),
    min_size=1,
    max_size=8,
)


_REQUEST: dict[str, Any] = {
    "script": "[S1] Hi.", "model": "nano", "params": {"max_tokens": 40},
}  # fmt: skip
_REQUEST_FIELDS = (
    *_REQUEST, "precision", "voice", "speed", "with_audio", "normalise", "pronunciations", "voices",
)  # fmt: skip
_ORDERS = (
    st.text(max_size=40)
    | st.binary(max_size=40)
    | JSON.map(json.dumps)
    | st.builds(
        lambda request, order: json.dumps({"requests": [_REQUEST | request]} | order),
        st.dictionaries(st.sampled_from(_REQUEST_FIELDS), JSON, max_size=1),
        st.dictionaries(st.sampled_from(("requests", "session", "other")), JSON, max_size=1),
    )
)


def fuzz_speech(url: str, tally: Tally, examples: int) -> None:
    """Open about `examples` sessions of text as it comes at the server at `url`."""
    end = json.dumps({"type": "session.close"})
    run_examples(_MESSAGES, lambda messages: _run(url, SPEECH, tally, [*messages, end]), examples)


def fuzz_engine(url: str, tally: Tally, examples: int) -> None:
    """Send about `examples` orders to the engine at `url`."""
    run_examples(_ORDERS, lambda order: _run(url, ENGINE, tally, [order]), examples)


def _run(url: str, path: str, tally: Tally, messages: list[Any]) -> None:
    status, last = _session(url.replace("http", "ws", 1) + path, messages)
    tally.add(f"WS {path}", True, status, last, str(messages))


def _session(address: str, messages: list[Any]) -> tuple[int | None, str]:
    """How a session ended, as a status of HTTP, and its last message."""
    last = ""
    try:
        with connect(address, proxy=None, max_size=None) as socket:
            for message in messages:
                socket.send(message)
            while True:
                received = socket.recv(timeout=HANG_SECONDS)
                last = received if isinstance(received, str) else last
    except ConnectionClosed as closed:
        code = 1006 if closed.rcvd is None else closed.rcvd.code
        is_error = '"type": "error"' in last or '"error": ' in last
        return (400 if is_error else 200) if code in _ORDERLY else 500, last or str(closed)
    except TimeoutError:
        return None, last
