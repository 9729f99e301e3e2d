"""Voices that programs keep: uploads with the consent of whoever is heard, and their removal.

The routes have the shape of vLLM-Omni's and OpenAI's. With a token a voice belongs to whoever has
that token; without, on this machine, it is shared with the page and the command line.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from fastapi import APIRouter, Request
from starlette.datastructures import FormData, UploadFile

from dia_demo.errors import printable
from dia_demo.prompt.voice_file import VoiceFile, checked_name
from dia_demo.server.errors import ApiError
from dia_demo.server.speech.routes import asker_of
from dia_demo.server.tokens import access_of
from dia_demo.services.scratch import work_folder
from dia_demo.services.settings import Settings
from dia_demo.services.speech.catalogue import Catalogue
from dia_demo.services.voices.keep import keep_recording, keep_take, take_in
from dia_demo.services.voices.kept import KeptVoices

# Of a form, beside the recording. A file in a further field is refused.
MOST_FIELDS, FIELD_BYTES = 20, 2**16
# Uploads beside the one that is encoded.
MOST_WAITING = 4
RETRY_SECONDS = 5.0
REFUSALS = ("", "false", "no", "off", "0", "none", "null")
AGREEMENTS = ("true", "yes", "on", "1")
DEFAULT_MODEL = "tts-1"
LONGEST_NOTE = 200
NOT_HERE = (
    "Voices can be kept here only with a token, or from the machine itself: without, everybody "
    "would have them. Whoever runs the server can set DIA_TOKENS."
)
_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["audio_sample", "consent", "name"],
    "properties": {
        "audio_sample": {
            "type": "string",
            "format": "binary",
            "description": "A recording of one voice, 5 to 10 s are best, or a take of this app.",
        },
        "consent": {
            "type": "string",
            "description": "true if the person heard has agreed, or a note about it, which is "
            "stored with the voice.",
        },
        "name": {"type": "string", "description": "Under which the voice is asked for."},
        "ref_text": {
            "type": "string",
            "description": "Exactly what is said in it; a take of this app contains it.",
        },
        "model": {"type": "string", "description": "Which will speak in it."},
    },
}


class VoiceRoutes:
    """The handlers of the routes. One upload is decoded and encoded at a time."""

    def __init__(self, catalogue: Catalogue, settings: Settings) -> None:
        self._catalogue, self._settings = catalogue, settings
        self._encoding, self._uploads = anyio.CapacityLimiter(1), 0

    def add_to(self, router: APIRouter) -> None:
        """Add the routes to a router."""
        content = {"multipart/form-data": {"schema": _FORM}}
        body = {"requestBody": {"required": True, "content": content}}
        router.post("/v1/audio/voices", openapi_extra=body)(self.upload)
        router.delete("/v1/audio/voices/{name}")(self.remove)

    async def upload(self, request: Request) -> dict[str, Any]:
        """Keep a voice from a recording, with the consent of the person heard."""
        store = store_of(request, self._settings)
        with self._place():
            return await self._keep(request, store)

    async def _keep(self, request: Request, store: KeptVoices) -> dict[str, Any]:
        async with form_of(request) as form:
            sample, name = file_in(form, "audio_sample"), text_in(form, "name")
            words, consent = text_in(form, "ref_text"), text_in(form, "consent")
            model = self._catalogue.find_model(text_in(form, "model") or DEFAULT_MODEL)
            checked_name(name)

            def keep(path: Path) -> VoiceFile:
                if (contents := take_in(path)) is not None:
                    return store.add(keep_take(contents, name, transcript=words))
                has_consent = consent.casefold() not in REFUSALS
                _check_recording(has_consent, words)
                voice = keep_recording(path, name, words, model, has_consent=has_consent)
                return store.add(_with_note(voice, consent))

            voice = await to_thread.run_sync(
                with_file, sample, self._settings, keep, limiter=self._encoding
            )
            return {"success": True, "voice": _for_vllm(voice, sample), **_for_openai(voice)}

    async def remove(self, name: str, request: Request) -> dict[str, Any]:
        """Remove a voice that was kept."""
        store = store_of(request, self._settings)
        if await to_thread.run_sync(store.find, name) is None:
            raise ApiError(404, f"There is no kept voice {name[:60]!r}.", param="name")
        await to_thread.run_sync(store.remove, name)
        return {"success": True, "deleted": True, "id": name, "message": f"{name} was removed."}

    @contextmanager
    def _place(self) -> Iterator[None]:
        """A place among the uploads that wait. Raises ApiError if there is none."""
        if self._uploads > MOST_WAITING:
            message = "Other voices are being kept: send yours again in a few seconds."
            raise ApiError(429, message, code="busy", retry_seconds=RETRY_SECONDS)
        self._uploads += 1
        try:
            yield
        finally:
            self._uploads -= 1


def store_of(request: Request, settings: Settings) -> KeptVoices:
    """Where whoever sends a request keeps voices. Raises ApiError where everybody would have
    them."""
    if owner := asker_of(request).owner:
        return KeptVoices.for_person(settings, owner)
    if access_of(request).is_public or not _is_this_machine(request):
        raise ApiError(403, NOT_HERE)
    return KeptVoices.for_user(settings)


@asynccontextmanager
async def form_of(request: Request) -> AsyncIterator[FormData]:
    """A form with one file, within limits. It is read only now: whoever may not send it was refused
    before."""
    limits = {"max_files": 1, "max_fields": MOST_FIELDS, "max_part_size": FIELD_BYTES}
    async with request.form(**limits) as form:
        yield form


def file_in(form: FormData, field: str) -> UploadFile:
    """A file of a form. Raises ApiError if it is missing or empty."""
    file = form.get(field)
    if not isinstance(file, UploadFile) or not file.size:
        message = f"{field} is missing: send a form (multipart/form-data) with an audio file in it."
        raise ApiError(400, message, param=field)
    return file


def text_in(form: FormData, field: str) -> str:
    """A text of a form; "" if it is missing."""
    value = form.get(field)
    return value.strip() if isinstance(value, str) else ""


def with_file(
    upload: UploadFile, settings: Settings, keep: Callable[[Path], VoiceFile]
) -> VoiceFile:
    """Keep a voice from an upload, as a file whose name is not the client's."""
    with work_folder(settings.takes_folder, "voice-") as folder:
        path = folder / "recording"
        with open(path, "wb") as file:
            shutil.copyfileobj(upload.file, file)
        return keep(path)


def _is_this_machine(request: Request) -> bool:
    with suppress(ValueError):
        return request.client is not None and ip_address(request.client.host).is_loopback
    return False


def _check_recording(has_consent: bool, words: str) -> None:
    if not has_consent:
        message = (
            "consent is missing: keep a voice only if the person heard has agreed, and send true, "
            "or a note about it, which is stored with the voice."
        )
        raise ApiError(400, message, param="consent")
    if not words:
        message = "ref_text is missing: send exactly what is said in the recording."
        raise ApiError(400, message, param="ref_text")


def _with_note(voice: VoiceFile, consent: str) -> VoiceFile:
    """With what the client says about the consent, if that is more than yes."""
    if consent.casefold() in AGREEMENTS:
        return voice
    note = printable(consent[:LONGEST_NOTE])
    return replace(voice, consent=f"{voice.consent} Their note: {note}")


def _for_vllm(voice: VoiceFile, sample: UploadFile) -> dict[str, Any]:
    return {
        "name": voice.name,
        "consent": voice.consent,
        "created_at": int(time.time()),
        "mime_type": sample.content_type,
        "file_size": sample.size,
        "ref_text": voice.transcript,
        "seconds": round(voice.seconds, 2),
    }


def _for_openai(voice: VoiceFile) -> dict[str, Any]:
    own = {"id": voice.name, "name": voice.name, "created_at": int(time.time())}
    return own | {"object": "audio.voice", "type": "audio_sample"}
