"""A client at an address of its own: asks by any route, and leaves in the middle if it is to."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import soundfile
import websockets

from tools.soak.jobs import Job

PATIENCE_SECONDS = 300.0
# Where a client leaves whose answer comes in one piece.
WHOLE_SECONDS = 1.0


class Problem(Exception):
    """An answer is not what the route promises."""


class Refused(Exception):
    """The server asks the client to come again after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"refused for {seconds} s")
        self.seconds = seconds


class Left(Exception):
    """The client has left before the answer was complete. path: where its answer goes on, from
    `body`, which it has."""

    def __init__(self, path: str = "", body: bytes = b"") -> None:
        super().__init__("left")
        self.path, self.body = path, body


class Client:
    """number: of its address, 127.0.1.number."""

    def __init__(self, url: str, number: int = 1) -> None:
        self._url, self._address = url, f"127.0.1.{number}"
        transport = httpx.AsyncHTTPTransport(local_address=self._address)
        self._http = httpx.AsyncClient(
            base_url=url, transport=transport, timeout=PATIENCE_SECONDS, trust_env=False
        )
        self._asked = 0

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def ask(self, job: Job, leave_after: int | None = None) -> bytes:
        """The sound of an answer. leave_after: bytes, or fewer, after which it leaves.

        Raises Problem for a wrong answer, Refused where there is no place, and Left.
        """
        self._asked += 1
        route: Callable[[Job, int | None], Awaitable[bytes]] = getattr(self, job.route)
        return await route(job, leave_after)

    async def resume(self, left: Left) -> bytes:
        """The sound of an answer that was left, with what was there of it."""
        path = f"{left.path}?resume_from={len(left.body)}"
        async with self._http.stream("GET", path) as answer:
            _check(answer, await answer.aread() if answer.is_error else b"")
            return left.body + b"".join([data async for data in answer.aiter_raw()])

    # -- routes ----------------------------------------------------------------------------------

    async def speech(self, job: Job, leave_after: int | None) -> bytes:
        """Audio while it is made."""
        return await self._stream("/v1/audio/speech", job.body, leave_after)

    async def dialogue(self, job: Job, leave_after: int | None) -> bytes:
        """The same of turns."""
        return await self._stream("/v1/dialogue", job.body, leave_after)

    async def events(self, job: Job, leave_after: int | None) -> bytes:
        """Server-sent events: deltas, then one that says it is done."""
        body = job.body | {"stream_format": "sse"}
        try:
            found = await self._stream("/v1/audio/speech", body, leave_after)
        except Left:  # It would go on as audio, without events.
            raise Left from None
        lines = [line for line in found.decode().splitlines() if line]
        events = [json.loads(line.removeprefix("data: ")) for line in lines]
        kinds = [event["type"].rpartition(".")[2] for event in events]
        if kinds.index("done") != len(kinds) - 1 or set(kinds[:-1]) != {"delta"}:
            raise Problem(f"events in the wrong order or number: {kinds[-3:]}")
        return b"".join(base64.b64decode(event["audio"]) for event in events[:-1])

    async def captions(self, job: Job, leave_after: int | None) -> bytes:
        """JSON with audio and words."""
        answer = await self._whole("/dev/captioned_speech", job.body, leave_after)
        if not answer["timestamps"]:
            raise Problem("no words")
        return base64.b64decode(answer["audio"])

    async def batch(self, job: Job, leave_after: int | None) -> bytes:
        """JSON with the results of several texts."""
        answer = await self._whole("/v1/audio/speech/batch", job.body, leave_after)
        results = answer["results"]
        if [result["index"] for result in results] != list(range(len(job.body["items"]))):
            raise Problem("a text of a batch has no result, or two")
        if failed := [result for result in results if result["status"] != "success"]:
            raise Problem(failed[0]["error"])
        return b"".join(base64.b64decode(result["audio_data"]) for result in results)

    async def page(self, job: Job, leave_after: int | None) -> bytes:
        """The page's endpoint for programs: the samples of its file."""
        call = "/gradio_api/call"
        answer = await self._http.post(f"{call}/v2/generate", json=job.body)
        _check(answer, answer.content)
        events = await self._stream_from(
            self._http.stream("GET", f"{call}/generate/{answer.json()['event_id']}"), leave_after
        )
        kinds = [line for line in events.decode().splitlines() if line.startswith("event:")]
        if kinds.count("event: complete") != 1:
            raise Problem(f"no end, or more than one: {kinds[-3:]}")
        last = json.loads(events.decode().rpartition("data: ")[2])
        file = await self._http.get(last[0]["url"])
        _check(file, file.content)
        samples, _ = soundfile.read(io.BytesIO(file.content), dtype="int16")
        return samples.tobytes()

    async def sentences(self, job: Job, leave_after: int | None) -> bytes:
        """The WebSocket: text in pieces, sentences of audio."""
        url = self._url.replace("http", "ws", 1) + "/v1/audio/speech/stream"
        text, sound, starts, ends = job.body["input"], b"", 0, 0
        config = {key: value for key, value in job.body.items() if key != "input"}
        async with websockets.connect(
            url, proxy=None, local_addr=(self._address, 0), max_size=None
        ) as socket:
            await socket.send(json.dumps({"type": "session.config"} | config))
            for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
                await socket.send(json.dumps({"type": "input.text", "text": piece}))
            await socket.send(json.dumps({"type": "input.done"}))
            while True:
                message = await asyncio.wait_for(socket.recv(), PATIENCE_SECONDS)
                if isinstance(message, bytes):
                    sound += message
                    if leave_after is not None:
                        raise Left
                    continue
                kind = json.loads(message)["type"]
                if kind == "error":
                    raise Problem(message)
                starts, ends = starts + (kind == "audio.start"), ends + (kind == "audio.done")
                if kind == "session.done":
                    break
        if not starts == ends == len(re.findall("[.?]", text)):
            raise Problem(f"{starts} sentences began and {ends} ended")
        return sound

    # --------------------------------------------------------------------------------------------

    async def _stream(self, path: str, body: dict[str, Any], leave_after: int | None) -> bytes:
        # Without the key, a repeated request gets the answer that is still there.
        headers = {"idempotency-key": f"{self._address} {self._asked}"}
        request = self._http.stream("POST", path, json=body, headers=headers)
        return await self._stream_from(request, leave_after)

    async def _stream_from(self, request: Any, leave_after: int | None) -> bytes:
        found = b""
        async with request as answer:
            if answer.is_error:
                _check(answer, await answer.aread())
            async for data in _pieces(answer):
                found += data
                if leave_after is not None and len(found) >= leave_after:
                    raise Left(answer.headers.get("x-answer", ""), found)
        return found

    async def _whole(self, path: str, body: dict[str, Any], leave_after: int | None) -> Any:
        headers = {"idempotency-key": f"{self._address} {self._asked}"}
        request = self._http.post(path, json=body, headers=headers)
        try:
            answer = await asyncio.wait_for(request, WHOLE_SECONDS if leave_after else None)
        except TimeoutError:
            raise Left from None
        _check(answer, answer.content)
        return answer.json()


async def _pieces(answer: httpx.Response) -> AsyncIterator[bytes]:
    async for data in answer.aiter_raw():
        yield data


def _check(answer: httpx.Response, body: bytes) -> None:
    if answer.status_code == 429:
        raise Refused(float(answer.headers["retry-after"]))
    if answer.is_error:
        raise Problem(f"{answer.status_code}: {body[:200].decode(errors='replace')}")
