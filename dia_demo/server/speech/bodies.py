"""The bodies of requests. Fields that are not listed are ignored, as OpenAI's server does."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from dia_demo.audio import STORED_SUFFIX
from dia_demo.config import PRECISIONS, SEED_LIMIT
from dia_demo.server.encoders import DEFAULT_FORMAT, STREAM_FORMATS

# OpenAI's own range of speeds.
Speed = Annotated[float, Field(ge=0.25, le=4.0, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Format: TypeAlias = Literal[tuple(STREAM_FORMATS)]  # type: ignore[valid-type]
MOST_TURNS, MOST_ITEMS = 1000, 32
LONGEST_PAUSE = 30.0


class VoiceName(BaseModel):
    """A voice as an object."""

    id: Annotated[str, Field(max_length=200)]


Voice = Annotated[str, Field(max_length=200)] | VoiceName


class TakeBody(BaseModel):
    """What all kinds of speech have in common."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())

    model: Annotated[str, Field(description="One of /v1/models.", max_length=500)] = "tts-1"
    response_format: Annotated[
        Format, Field(description="pcm is 24 kHz, 16 bits, mono, little endian.")
    ] = DEFAULT_FORMAT
    speed: Annotated[Speed, Field(description="Changes the tempo, not the pitch.")] = 1.0
    seed: Annotated[
        int | None,
        Field(
            ge=0,
            le=SEED_LIMIT,
            description="The same seed gives the same bytes on machines with the same fingerprint. "
            "Random if left out; the answer's header x-seed says which one it was.",
        ),
    ] = None
    temperature: Number | None = None
    cfg_scale: Number | None = None
    top_p: Number | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    precision: Annotated[str, Field(description=f"One of {', '.join(PRECISIONS)}.")] = ""
    normalise: Annotated[StrictBool, Field(description="Write out numbers and signs as words.")] = (
        False
    )
    pronunciations: Annotated[
        str, Field(description="Lines of: word = how to say it.", max_length=40_000)
    ] = ""
    resume_from: Annotated[
        int,
        Field(ge=0, description="Leave out so many bytes: a cut answer goes on, given its seed."),
    ] = 0

    @property
    def params(self) -> dict[str, float]:
        """The sampling parameters that were given."""
        names = ("temperature", "cfg_scale", "top_p", "top_k", "max_tokens")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class SpeechBody(TakeBody):
    """OpenAI's request for speech."""

    input: Annotated[str, Field(description="Plain words, or a script with [S1] and [S2].")]
    voice: Annotated[
        Voice | list[Voice] | None,
        Field(description="One of /v1/audio/voices, or two of them for S1 and S2."),
    ] = None
    instructions: Any = None
    stream_format: Literal["audio", "sse"] = "audio"
    timestamps: Annotated[
        StrictBool, Field(description="Answer with JSON: the audio and the times of its words.")
    ] = False
    preview: Annotated[
        StrictBool,
        Field(
            description="Answer at once in the embedded voice. The header x-full-answer is the "
            "path of the same words by the model, which is made meanwhile."
        ),
    ] = False


class TurnBody(BaseModel):
    """One turn of a dialogue."""

    text: Annotated[str, Field(min_length=1)]
    voice: Voice | None = None


class DialogueBody(TakeBody):
    """A dialogue of any length, turn by turn."""

    turns: Annotated[list[TurnBody], Field(min_length=1, max_length=MOST_TURNS)]
    pause_between_turns: Annotated[
        float | None,
        Field(ge=0, le=LONGEST_PAUSE, description="Seconds; natural pauses if left out."),
    ] = None
    stream_format: Literal["audio", "sse"] = "audio"
    timestamps: StrictBool = False


class BatchItem(TakeBody):
    """One text of a batch."""

    input: str
    voice: Voice | list[Voice] | None = None


class BatchBody(BaseModel):
    """Several texts that are made together. Fields beside `items` are the items' defaults."""

    model_config = ConfigDict(extra="allow")

    items: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_ITEMS)]


class SessionConfig(TakeBody):
    """What all sentences of a WebSocket session have in common."""

    response_format: Format = STORED_SUFFIX.removeprefix(".")
    voice: Voice | list[Voice] | None = None
    stream_audio: Annotated[
        StrictBool, Field(description="Several binary messages a sentence, while it is made.")
    ] = False
