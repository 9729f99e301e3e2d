"""What a run says while it runs: one stream of frozen, typed events.

Every event names the row it belongs to (0 where there is only one). A row's stream is
`Waiting* Loading* Started (Progress | AudioChunk)* (Finished | Cancelled | Failed)`; the last
three end it, and exactly one of them comes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

REPORT_SECONDS = 0.2  # How often what lasts is spoken of.


@dataclass(frozen=True)
class Waiting:
    """The request stands in the queue; `place` 1 is next. `seconds` is an estimate, or None."""

    place: int
    seconds: float | None = None
    row: int = 0


@dataclass(frozen=True)
class Loading:
    """The model is being fetched or read; `fraction` of it is there."""

    what: str
    fraction: float
    row: int = 0


@dataclass(frozen=True)
class Started:
    """The row has a place in the batch. `expected_seconds` of audio is an estimate.

    `notes` say in plain words what was done to the voice prompt and what is worth knowing.
    """

    seed: int
    model: str
    precision: str
    device: str
    sample_rate: int
    expected_seconds: float
    notes: tuple[str, ...] = ()
    row: int = 0


@dataclass(frozen=True)
class Progress:
    """Sent several times a second.

    step counts decoder steps of this row; audio_seconds is the audio its tokens make so far;
    realtime_factor is that audio over the wall time since the row started; expected_seconds
    (of audio in all) and seconds_left (of wall time) are estimates.
    """

    step: int
    audio_seconds: float
    wall_seconds: float
    realtime_factor: float
    expected_seconds: float
    seconds_left: float
    row: int = 0


@dataclass(frozen=True)
class AudioChunk:
    """Samples ready to be heard: float32 [n], starting `start_seconds` into the take."""

    samples: np.ndarray
    sample_rate: int
    start_seconds: float
    row: int = 0


@dataclass(frozen=True)
class Figures:
    """What was measured on one take. realtime_factor = audio_seconds / wall_seconds.

    audio_seconds is the length of the take's samples before any change of speed, the silence at
    its end included, of which at most 0.18 s is filled in (engine/take_audio.py); where no codec
    was asked for it is the length of the frames.
    wall_seconds runs from the row's start (model loaded, place taken) to its last sample;
    token_seconds and codec_seconds are the parts of it spent in each.
    """

    audio_seconds: float
    wall_seconds: float
    realtime_factor: float
    token_seconds: float
    codec_seconds: float
    first_audio_seconds: float | None
    steps: int
    finish_reason: str
    seed: int
    model: str
    precision: str
    device: str
    sample_rate: int
    peak_rss_bytes: int


@dataclass(frozen=True)
class Result:
    """A row's outcome: codes int16 [frames, channels] with delays undone, and what was measured.

    samples is float32 [n], or None where no codec was asked for.
    """

    codes: np.ndarray
    samples: np.ndarray | None
    figures: Figures


@dataclass(frozen=True)
class Finished:
    """The row ended by itself ("end") or was cut ("max_tokens"), as its figures say."""

    result: Result
    row: int = 0


@dataclass(frozen=True)
class Cancelled:
    """The row was stopped; `result` keeps what was made so far (None: before the first frame)."""

    result: Result | None
    row: int = 0


@dataclass(frozen=True)
class Failed:
    """The row ended without a usable take. `message` says what happened and what to do.

    device: an accelerator that was at fault; then the CPU can make the same take.
    """

    message: str
    row: int = 0
    device: str = "cpu"


Event = Waiting | Loading | Started | Progress | AudioChunk | Finished | Cancelled | Failed
