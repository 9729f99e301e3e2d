"""The rows of a run: what its requests become before they wait for a place."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Loading
from dia_demo.engine.row import Row
from dia_demo.services.take import Request
from dia_demo.text.script import expected_seconds


@dataclass(frozen=True)
class RowsOfRun:
    """notes: of each row, what the person should know. expected_seconds: of its audio at speed
    1."""

    rows: list[Row]
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
    prompts: dict[tuple[int, int], tuple[np.ndarray, tuple[str, ...], float | None]] = {}
    for index, request in enumerate(requests):
        prompt: np.ndarray | None = None
        prompt_notes: tuple[str, ...] = ()
        semitones: float | None = None
        if request.voice is not None:
            key = id(request.voice), request.params.max_tokens
            if key not in prompts:
                if request.voice.codes is None:
                    yield Loading("Reading the voice prompt", None, index)
                codes, how = request.prompt_codes(engine, prompt_seconds)
                prompts[key] = codes, how, engine.semitones_of(codes)
            prompt, prompt_notes, semitones = prompts[key]
        text, said = request.encode(), request.transcript_bytes()
        make_row, params, chosen = engine.info.family.row, request.params, request.voices
        run.rows.append(
            make_row(engine.config, text, params, prompt, cancel, said, semitones, chosen)
        )
        run.notes.append(engine.take_notes() + prompt_notes + request.notes)
        script = request.reading(request.script).text
        run.expected_seconds.append(
            expected_seconds(script, request.model.profile.seconds_per_character)
        )
    return run
