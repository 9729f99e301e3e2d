"""The rows of a run: what its requests become before they wait for a place."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Loading
from dia_demo.engine.rows.base_row import BaseRow
from dia_demo.prompt.voice_traits import VoiceTraits
from dia_demo.services.take import Request
from dia_demo.services.voices.prompt_codes import PromptCodes, prompt_codes
from dia_demo.text.script import parse_turns


@dataclass(frozen=True)
class RowsOfRun:
    """notes: of each row, what the person should know. expected_seconds: of its audio at speed
    1."""

    rows: list[BaseRow]
    notes: list[tuple[str, ...]]
    expected_seconds: list[float]


def read_requests(
    requests: Sequence[Request],
    engine: Engine,
    prompt_seconds: float,
    cancel: threading.Event,
) -> Generator[Loading, None, RowsOfRun]:
    """The rows of requests with the same runtime, whose voice prompts are encoded.

    prompt_seconds: see `VoicePrompt.read`. cancel: stops all rows.
    """
    run = RowsOfRun([], [], [])
    # The prompt of several takes is encoded once per length that their max_tokens allows.
    prompts: dict[tuple[int, int], tuple[PromptCodes, VoiceTraits | None]] = {}
    for index, request in enumerate(requests):
        prompt: PromptCodes | None = None
        prompt_voice: VoiceTraits | None = None
        if request.voice is not None:
            key = id(request.voice), request.params.max_tokens
            if key not in prompts:
                if request.voice.codes is None:
                    yield Loading("Reading the voice prompt", None, index)
                read = prompt_codes(request, engine, prompt_seconds)
                prompts[key] = read, _traits(request, read.codes, engine)
            prompt, prompt_voice = prompts[key]
        text, said = request.encode(), request.transcript_bytes()
        make_row, params, chosen = engine.info.family.row, request.params, request.voices
        # Only rows of families that know what to do with them have such parameters.
        more: dict[str, Any] = {}
        if prompt is not None and prompt.words:
            more["prompt_words"] = prompt.words
        if request.more_text is not None:
            more["more_text"] = request.more_text
        run.rows.append(
            make_row(
                engine.config, text, params, None if prompt is None else prompt.codes, cancel, said,
                prompt_voice, chosen, **more,
            )
        )  # fmt: skip
        prompt_notes = () if prompt is None else prompt.notes
        run.notes.append(engine.take_notes() + prompt_notes + request.notes)
        script = request.reading(request.script).text
        run.expected_seconds.append(request.model.expected_seconds(script))
    return run


def _traits(request: Request, codes: np.ndarray, engine: Engine) -> VoiceTraits | None:
    """How a voice prompt sounds: voices by name depend on it, and takes are compared with it where
    somebody speaks alone in it."""
    assert request.voice is not None
    speakers = {turn.speaker or 1 for turn in parse_turns(request.voice.transcript)}
    is_compared = request.with_audio and len(speakers) == 1
    return engine.traits_of(codes) if engine.config.voices or is_compared else None
