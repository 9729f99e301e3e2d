"""The three tools: speak, dialogue, list_voices. Their descriptions are written for agents."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, TypeVar

import anyio
from anyio import from_thread, to_thread
from mcp.server.fastmcp import Context
from pydantic import Field
from starlette.requests import Request as HttpRequest

from dia_demo.audio import FORMAT_NAMES, SPEEDS
from dia_demo.config import SEED_LIMIT
from dia_demo.prompt.voice_file import LONGEST_NAME
from dia_demo.server.mcp.files import ToolFiles
from dia_demo.server.mcp.making import SpeechCall, SpeechMaker, owner_of
from dia_demo.server.mcp.results import ModelEntry, Spoken, VoiceEntry, VoiceList
from dia_demo.services.people import Caller
from dia_demo.services.programs.takes import Note
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS
from dia_demo.ui.page import threads

Made = TypeVar("Made")

CALLER = "dia_demo.caller"
SECONDS_BETWEEN_NOTES = 0.5
_LOWEST_HZ = 100.0  # Pitches are semitones above it.

Voice = Annotated[
    str,
    Field(
        description="A name from list_voices; blank for one that the seed chooses.",
        max_length=LONGEST_NAME,
    ),
]
Model = Annotated[str, Field(description="A name from list_voices; blank for the first one.")]
Speed = Annotated[
    float,
    Field(
        description="The tempo, without changing the pitch.",
        ge=SPEEDS.low,
        le=SPEEDS.high,
        allow_inf_nan=False,
    ),
]
Seed = Annotated[
    int | None,
    Field(description="null for a random one, which is returned.", ge=0, le=SEED_LIMIT),
]
Format = Annotated[
    str, Field(description="Format of the file.", json_schema_extra={"enum": list(FORMAT_NAMES)})
]
# Small files, which play everywhere.
USUAL_FORMAT = FORMAT_NAMES[2]


class Tools:
    """The tools over one `Synthesis`. files: where they leave what they make."""

    def __init__(self, synthesis: Synthesis, files: ToolFiles) -> None:
        self._synthesis, self._maker = synthesis, SpeechMaker(synthesis, files)
        self._threads = anyio.CapacityLimiter(threads(synthesis.settings))

    async def speak(
        self,
        context: Context,
        text: Annotated[
            str,
            Field(
                description="What one person says, in plain words with punctuation. Sounds such as "
                "(laughs) or (sighs) may stand between them.",
                examples=["Hello there! (laughs) It is good to see you."],
                max_length=MAX_SCRIPT_CHARACTERS,
            ),
        ],
        voice: Voice = "",
        model: Model = "",
        speed: Speed = 1.0,
        seed: Seed = None,
        format: Format = USUAL_FORMAT,
    ) -> Spoken:
        """Say a text in one voice, and return the address of an audio file.

        For one speaker; use `dialogue` for two. Most texts take a few seconds. Numbers, dates and
        abbreviations are read as a person reads them. The audio is computer-generated speech, and
        its file says so.
        """
        call = SpeechCall(text, (voice, ""), model, speed, seed, format)
        return await self._run(context, partial(self._maker.make, call))

    async def dialogue(
        self,
        context: Context,
        script: Annotated[
            str,
            Field(
                description="The turns of two speakers, each beginning with [S1] or [S2]. (pause "
                "1.5) is silence of that many seconds; sounds such as (laughs) are allowed. At "
                f"most {MAX_SCRIPT_CHARACTERS:,} characters, about 20 minutes of speech.",
                examples=[
                    "[S1] Did you hear the news? [S2] No. (pause 0.8) What happened? [S1] We won! "
                    "(laughs)"
                ],
                max_length=MAX_SCRIPT_CHARACTERS,
            ),
        ],
        voice_s1: Voice = "",
        voice_s2: Voice = "",
        model: Model = "",
        speed: Speed = 1.0,
        seed: Seed = None,
        format: Format = USUAL_FORMAT,
        subtitles: Annotated[bool, Field(description="Also write subtitles (SubRip).")] = False,
    ) -> Spoken:
        """Say a script of two speakers, of any length, and return the address of an audio file.

        Long scripts are made in parts, which are checked, made again if they are faulty, and
        joined. That may take minutes: progress is reported in seconds of audio.
        """
        voices = voice_s1, voice_s2
        call = SpeechCall(script, voices, model, speed, seed, format, subtitles, in_parts=True)
        return await self._run(context, partial(self._maker.make, call))

    async def list_voices(self, context: Context) -> VoiceList:
        """List the models and the voices by name that `speak` and `dialogue` accept."""
        owner = owner_of(http_request_of(context))
        return await to_thread.run_sync(self._list_voices, owner, limiter=self._threads)

    def _list_voices(self, owner: str) -> VoiceList:
        synthesis = self._synthesis
        kept = KeptVoices.for_person(synthesis.settings, owner).list()
        voices = [
            VoiceEntry(name=one.name, model=None, pitch_hz=None, speakers=len(one.speakers))
            for one in kept
        ]
        entries = []
        for info in synthesis.models.values():
            runtime = replace(synthesis.settings.runtime, model=info.name)
            pace = synthesis.speed.seconds_per_second(info, runtime)
            entries.append(ModelEntry(name=info.name, note=info.note, seconds_per_second=pace))
            for one in () if info.config.voices is None else info.config.voices.voices:
                pitch = round(_LOWEST_HZ * 2 ** (one.semitones / 12))
                voices.append(
                    VoiceEntry(name=one.name, model=info.name, pitch_hz=pitch, speakers=1)
                )
        return VoiceList(models=entries, voices=voices)

    async def _run(
        self, context: Context, work: Callable[[HttpRequest, Caller, Note], Made]
    ) -> Made:
        """Run `work` in a thread, with notes as progress; it stops when the client disconnects."""
        request = http_request_of(context)
        caller: Caller = request.scope[CALLER]
        told, most = 0.0, 0.0

        def note(done: float, expected: float) -> None:
            nonlocal told, most
            if time.monotonic() - told >= SECONDS_BETWEEN_NOTES and not caller.is_set():
                # A part that is made again does not count back.
                told, most = time.monotonic(), max(done, most)
                from_thread.run(context.report_progress, most, max(most, expected))

        try:
            # Not waited for when it is cancelled: it ends within a step.
            return await to_thread.run_sync(
                partial(work, request, caller, note), abandon_on_cancel=True, limiter=self._threads
            )
        finally:
            caller.set()


def http_request_of(context: Context) -> HttpRequest:
    """The request by which a tool is called."""
    request = context.request_context.request
    assert isinstance(request, HttpRequest), "tools are called over HTTP"
    return request
