"""The routes of SillyTavern's Dia extension, which keeps a voice in two steps: it uploads a sample,
and then asks for a voice that has it.

It sends neither the words of the sample nor a consent, and without the words Dia cannot continue a
voice (the embedded voice says nothing at all). So its samples are takes of this app, which contain
their words, or belong to voices that were kept before under the same name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from dia_demo.prompt.voice_file import VoiceFile
from dia_demo.server.errors import ApiError
from dia_demo.server.speech.voices import file_in, form_of, store_of, text_in, with_file
from dia_demo.services.settings import Settings
from dia_demo.services.voices.keep import keep_take, take_in

_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["prompt_id", "audio_file"],
    "properties": {
        "prompt_id": {"type": "string"},
        "audio_file": {"type": "string", "format": "binary"},
    },
}


class MappedVoice(BaseModel):
    """A voice as the extension asks for it. Its other fields have no meaning here."""

    voice_id: Annotated[str, Field(min_length=1, max_length=200)]
    audio_prompt: Annotated[str | None, Field(max_length=200)] = None


class SillyTavernRoutes:
    """The handlers of the routes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def add_to(self, router: APIRouter) -> None:
        """Add the routes to a router."""
        content = {"multipart/form-data": {"schema": _FORM}}
        body = {"requestBody": {"required": True, "content": content}}
        router.post("/v1/audio_prompts/upload", openapi_extra=body)(self.upload)
        router.get("/v1/voice_mappings")(self.mappings)
        router.post("/v1/voice_mappings")(self.add_mapping)
        router.delete("/v1/voice_mappings/{voice_id}")(self.remove_mapping)

    async def upload(self, request: Request) -> dict[str, Any]:
        """The sample of a voice that was kept before, or a take of this app."""
        store = store_of(request, self._settings)
        async with form_of(request) as form:
            name, sample = text_in(form, "prompt_id"), file_in(form, "audio_file")
            voice = await to_thread.run_sync(store.find, name)
            if voice is None:

                def keep(path: Path) -> VoiceFile:
                    if (contents := take_in(path)) is None:
                        raise ApiError(400, _advice(name))
                    return store.add(keep_take(contents, name))

                voice = await to_thread.run_sync(with_file, sample, self._settings, keep)
        message = f"The voice {voice.name} is kept."
        return {"message": message, "duration": voice.seconds, "sample_rate": voice.sample_rate}

    async def mappings(self, request: Request) -> list[dict[str, Any]]:
        """The voices that were kept."""
        store = store_of(request, self._settings)
        return [_mapping(voice) for voice in await to_thread.run_sync(store.list)]

    async def add_mapping(self, body: MappedVoice, request: Request) -> dict[str, Any]:
        """A voice that has a sample: both have the same name here."""
        store = store_of(request, self._settings)
        name = body.audio_prompt or body.voice_id
        if name.casefold() != body.voice_id.casefold():
            raise ApiError(400, f"voice_id and audio_prompt must be the same name, as {name!r}.")
        voice = await to_thread.run_sync(store.find, name)
        if voice is None:
            raise ApiError(404, f"There is no kept voice {name[:60]!r}: upload its sample first.")
        return {"message": f"The voice {voice.name} can be used.", "voice_config": _mapping(voice)}

    async def remove_mapping(self, voice_id: str) -> dict[str, Any]:
        """Nothing to remove: the voice stays until DELETE /v1/audio/voices."""
        return {"message": f"{voice_id} stays kept here: DELETE /v1/audio/voices/NAME removes it."}


def _mapping(voice: VoiceFile) -> dict[str, Any]:
    own = {"voice_id": voice.name, "audio_prompt": voice.name}
    return own | {"style": "natural", "primary_speaker": "S1"}


def _advice(name: str) -> str:
    return (
        "This recording comes without its words, and a voice can only be continued with them. "
        f"Keep it as {name[:60]!r} first, with its words and the consent of the person heard: on "
        "the page under “Keep a voice”, or with POST /v1/audio/voices. Then press the button again."
    )
