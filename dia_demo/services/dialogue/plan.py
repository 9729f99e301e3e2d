"""A dialogue before it is made: its chunks, and the request that each of them is."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cache

from dia_demo.audio import SPEEDS
from dia_demo.config import Range
from dia_demo.engine.family import ModelInfo
from dia_demo.errors import InputError
from dia_demo.services.take import Request, VoicePrompt
from dia_demo.services.voices.seeds import seeds_like
from dia_demo.text.dialogue.chunks import (
    LONGEST_SECONDS,
    Chunk,
    ChunkedScript,
    Size,
    split_script,
)
from dia_demo.text.dialogue.pauses import find_pauses, simplify_pauses
from dia_demo.text.formats.table import write_turns
from dia_demo.text.script import (
    MAX_DIALOGUE_CHARACTERS,
    parse_turns,
    to_bytes,
)

RETRIES = Range(0, 10, whole=True)
DEFAULT_RETRIES = 2
# The share of a take that the expected speech of a chunk may fill: takes differ in length.
_FILLED = 0.8
# Less than this is no speech worth a take.
_LEAST_SECONDS = 1.0
# Between the words of a prompt and those of a chunk, and its closing tag.
_JOINT_BYTES = 8
_FORMAT = 1
# Far more than a part has, and little to read.
MOST_PART_CHARACTERS = 2000


class Join(StrEnum):
    """Which voice prompt a chunk has: all the same one, or each the chunk before it."""

    STEADY = "steady"
    FLOWING = "flowing"


@dataclass(frozen=True)
class DialoguePlan:
    """A script of any length, to be made chunk by chunk.

    request: what a single take of it would be. retries: how often a chunk with a fault is made
    again. parts_of_take: into how many equal parts a take is divided, for its voice prompt, which
    may be one or two chunks, and for what is new; 1 if the seed fixes the voices, or the request's
    own voice prompt has all of them. first_attempts: of chunks that a person has made again, by
    index. has_other_words: some chunks do not have the words of the script any more.
    """

    request: Request
    script: ChunkedScript
    join: Join
    retries: int
    parts_of_take: int
    first_attempts: tuple[tuple[int, int], ...] = ()
    has_other_words: bool = False

    @property
    def info(self) -> ModelInfo:
        """The model."""
        return self.request.model

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return self.script.chunks

    @property
    def text(self) -> str:
        """The whole script: as it was written, or with the words that replaced some of it."""
        if not self.has_other_words:
            return self.request.script
        pauses = ("" if c.pause is None else f"(pause {c.pause:g}) " for c in self.chunks)
        return "\n".join(pause + c.script for pause, c in zip(pauses, self.chunks, strict=True))

    @property
    def needs_prompt(self) -> bool:
        """Whether chunks are the voice prompts of others."""
        return self.parts_of_take > 1

    def sources(self, chunk: Chunk) -> tuple[Chunk, ...]:
        """The chunks whose takes are the voice prompt of this one: steady, the first in which its
        speakers speak; flowing, the last before it. None for the first itself, and where a speaker
        is only in the request's own prompt."""
        if not self.needs_prompt:
            return ()
        if self.join is Join.STEADY:
            found = _covering_chunks(self.chunks)
            return tuple(
                other for other in found if other.index < chunk.index or chunk not in found
            )
        found = _covering_chunks(self.chunks[: chunk.index][::-1], chunk.speakers)
        covered = frozenset().union(*(other.speakers for other in found))
        if self.request.voice is not None and not covered >= chunk.speakers:
            return ()
        found = found or self.chunks[max(0, chunk.index - 1) : chunk.index]
        return tuple(sorted(found, key=lambda other: other.index))

    def seed_of(self, attempt: int) -> int:
        """The seed of an attempt at a chunk, from 0."""
        return seeds_like(self.info.config, self.request.params.seed, attempt + 1)[attempt]

    def first_attempt(self, chunk: Chunk) -> int:
        """The first attempt that counts: those before it were of other words, or not wanted."""
        return dict(self.first_attempts).get(chunk.index, 0)

    def remake_chunk(self, index: int, attempt: int, words: str | None = None) -> DialoguePlan:
        """The plan with one chunk made again from this attempt on, with other words if given.

        words: turns of [S1] and [S2]. Raises InputError for words that are none, that ask for a
        pause, or that are too long for one chunk.
        """
        chunks = list(self.chunks)
        if words is not None:
            chunks[index] = _replace_words(chunks[index], words, self.request, self.parts_of_take)
        firsts = dict(self.first_attempts) | {index: attempt}
        script = replace(self.script, chunks=tuple(chunks))
        return replace(
            self,
            script=script,
            first_attempts=tuple(sorted(firsts.items())),
            has_other_words=self.has_other_words or words is not None,
        )

    @property
    def key(self) -> str:
        """A hash of everything that the chunks depend on: the name of the folder to resume from."""
        request, voice = self.request, self.request.voice
        parts = {
            "format": _FORMAT,
            "script": request.script,
            "params": asdict(request.params),
            "model": request.model.name,
            "runtime": asdict(request.runtime),
            "speed": request.speed,
            "normalise": request.normalise,
            "pronunciations": request.pronunciations.text,
            "voice": None if voice is None else _voice_key(voice),
            "voices": request.voices,
            "join": self.join,
        }
        text = json.dumps(parts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def chunk_request(
        self, chunk: Chunk, attempt: int, prompt: VoicePrompt | None = None
    ) -> Request:
        """The request for one attempt at a chunk. prompt: a chunk made before it.

        A chunk that may become a prompt is not longer than its part of a take, so that there is
        room for the one after it.
        """
        params = replace(self.request.params, seed=self.seed_of(attempt))
        voice = prompt or self.request.voice
        frames = 0 if voice is None else None if voice.codes is None else len(voice.codes)
        if self.needs_prompt and frames is not None:
            most = params.max_tokens // self.parts_of_take + frames
            params = replace(params, max_tokens=min(params.max_tokens, most))
        return replace(self.request, script=self.script_of(chunk), params=params, voice=voice)

    def script_of(self, chunk: Chunk) -> str:
        """The words of a chunk's request."""
        return chunk.closed_script if self.info.needs_last_tag else chunk.script


def make_plan(
    request: Request,
    join: Join = Join.STEADY,
    retries: int = DEFAULT_RETRIES,
) -> DialoguePlan:
    """Split the script of a request.

    Raises InputError for a script without words, one that is too long, a pause that is too long,
    for settings out of their ranges, and for max tokens that leave no room for speech.
    """
    RETRIES.check("retries", retries)
    request.params.check(request.model.config)
    SPEEDS.check("speed", request.speed)
    if (length := len(request.script)) > MAX_DIALOGUE_CHARACTERS:
        raise InputError(
            f"The script has {length:,} characters; {MAX_DIALOGUE_CHARACTERS:,} are allowed, about "
            "an hour of speech: split it into several files."
        )
    script = script_in_turns(request)
    chains = join is Join.FLOWING or not _has_all_voices(script, request)
    for parts in (2, 3) if chains else (1,):
        chunked = _split(script, request, parts)
        plan = DialoguePlan(request, chunked, join, retries, parts)
        if max(len(plan.sources(chunk)) for chunk in plan.chunks) < parts:
            break
    return plan


def _split(script: str, request: Request, parts: int) -> ChunkedScript:
    """The chunks of a script, each no longer than a part of a take."""
    voice = request.voice
    prompted = 0.0 if voice is None else _prompt_seconds(voice, request)
    room = request.model.seconds_of(request.params.max_tokens) - prompted
    longest = min(LONGEST_SECONDS, _FILLED * room / parts)
    if longest < _LEAST_SECONDS:
        raise InputError(
            f"Max tokens {request.params.max_tokens} leave {max(0.0, room):.1f} s for speech: "
            "raise max tokens, or use a shorter voice prompt."
        )
    said = request.reading(voice.transcript).text if voice else ""
    most_bytes = (
        request.model.config.encoder.max_positions // parts - len(to_bytes(said)) - _JOINT_BYTES
    )
    return split_script(script, _measure(request), longest, most_bytes)


def _replace_words(chunk: Chunk, words: str, request: Request, parts_of_take: int) -> Chunk:
    """A chunk with other words, in the place that it has."""
    too_long = InputError(
        "These words are too long for one part, or have a pause: shorten them, or change the "
        "script and press Generate."
    )
    if len(words) > MOST_PART_CHARACTERS:
        raise too_long
    found = _split(script_in_turns(replace(request, script=words)), request, parts_of_take)
    if len(found.chunks) > 1 or found.pause or found.chunks[0].pause:
        raise too_long
    first = chunk.parts[0]
    parts = [replace(part, turn=part.turn + first.turn) for part in found.chunks[0].parts]
    parts[0] = replace(parts[0], before=first.before)
    return replace(chunk, parts=tuple(parts), seconds=found.chunks[0].seconds)


def needs_chunks(request: Request) -> bool:
    """Whether a script cannot be one take: it asks for pauses that the model does not make itself,
    has more bytes than the model reads, or takes longer to say than max tokens or a natural take
    allow."""
    script = request.script
    if find_pauses(script) and not request.model.family.makes_pauses:
        return True
    reading = request.reading(script).text
    transcript = request.voice.transcript if request.voice else ""
    if len(to_bytes(f"{transcript}\n{reading}")) > request.model.config.encoder.max_positions:
        return True
    seconds = request.model.expected_seconds(reading)
    one_take = request.model.seconds_of(request.params.max_tokens)
    natural = (
        request.model.profile.natural_seconds[1]
        if request.model.profile.natural_seconds
        else one_take
    )
    return seconds > LONGEST_SECONDS and seconds > min(one_take, natural)


def script_in_turns(request: Request) -> str:
    """The script as turns of [S1] and [S2], where its format is recognised and may be changed."""
    script = simplify_pauses(request.script)
    return write_turns(script) if request.model.profile.normalises or request.normalise else script


def _measure(request: Request):
    @cache  # Parts are measured when they are split, and again when they are packed.
    def measure(text: str) -> Size:
        reading = request.reading(text).text
        return Size(request.model.expected_seconds(reading), len(to_bytes(reading)))

    return measure


def _covering_chunks(
    chunks: Sequence[Chunk], speakers: frozenset[int] | None = None
) -> tuple[Chunk, ...]:
    """The first chunk in which all of these speakers speak (all there are without any given); else
    the first of each of them."""
    everybody = frozenset().union(*(chunk.speakers for chunk in chunks))
    wanted = everybody if speakers is None else speakers & everybody
    for chunk in chunks:
        if chunk.speakers >= wanted:
            return (chunk,) if wanted else ()
    firsts = (next(c for c in chunks if speaker in c.speakers) for speaker in sorted(wanted))
    return tuple(sorted(firsts, key=lambda chunk: chunk.index))


def _has_all_voices(script: str, request: Request) -> bool:
    """Whether every chunk has the same voices by itself: the model has voices by name, or all
    speakers of the script are in the voice prompt."""
    if request.model.config.voices is not None:
        return True
    if request.voice is None:
        return False
    said = {turn.speaker or 1 for turn in parse_turns(request.voice.transcript)}
    return said >= {turn.speaker or 1 for turn in parse_turns(script)}


def _prompt_seconds(voice: VoicePrompt, request: Request) -> float:
    """The length of a voice prompt. Raises InputError if its file cannot be used."""
    if voice.codes is not None:
        return len(voice.codes) / request.model.frames_per_second
    prompt = voice.read(request.model, request.params.max_tokens, math.inf)
    return len(prompt.samples) / request.model.sample_rate


def _voice_key(voice: VoicePrompt) -> Sequence[str]:
    """What a voice prompt is: its codes, or the bytes of its file, and its words."""
    if voice.codes is not None:
        content = voice.codes.tobytes()
    else:
        assert voice.audio is not None, "a prompt is audio or codes"
        content = voice.audio.read_bytes()
    return hashlib.sha256(content).hexdigest(), voice.transcript
