"""What the tools return, described for agents."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field


class Spoken(BaseModel):
    """Speech in a file, and its figures."""

    url: Annotated[str, Field(description="Where to fetch the audio file, within a day.")]
    subtitles_url: Annotated[
        str | None, Field(description="Where to fetch the subtitles, null without any.")
    ]
    seconds: Annotated[float, Field(description="Length of the audio.")]
    took_seconds: Annotated[float, Field(description="How long it took to make.")]
    seed: Annotated[
        int, Field(description="The same seed with the same arguments gives the same speech.")
    ]
    model: str
    voices: Annotated[
        list[str | None],
        Field(description="Of those who speak, by name; null where a voice has none."),
    ]
    parts: Annotated[int, Field(description="Of how many parts the audio was joined.")]
    remarks: Annotated[
        list[str],
        Field(description="What is odd about the speech; make it again if that matters."),
    ]


class VoiceEntry(BaseModel):
    """A voice."""

    name: str
    model: Annotated[
        str | None, Field(description="The only model that has it; null for a kept voice.")
    ]
    pitch_hz: Annotated[
        int | None, Field(description="Median pitch: about 120 is low, 200 is high.")
    ]
    speakers: Annotated[
        int, Field(description="2: a voice for both speakers, to be given as the first one.")
    ]


class ModelEntry(BaseModel):
    """A model. The first one is used where none is named."""

    name: str
    note: Annotated[str, Field(description="What it is.")]
    seconds_per_second: Annotated[
        float | None,
        Field(description="Expected wait for a second of audio on this machine, null if unknown."),
    ]


class VoiceList(BaseModel):
    """The models and voices that may be named."""

    models: list[ModelEntry]
    voices: list[VoiceEntry]
