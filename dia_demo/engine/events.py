"""The events of a run: one stream of frozen dataclasses.

Every event has the index of its row (0 where there is only one). A row's stream is
`(Waiting | Loading)* Started (Progress | AudioChunk)* (Finished | Cancelled | Failed)`: exactly one
of the last three ends it. A row that is stopped, or fails, before it has a place is not started.
`left` is the time until the whole run is complete, None while it is not known; it is filled in by
the services (services/speed/run_estimate.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from dia_demo.engine.time_left import TimeLeft
from dia_demo.prompt.voice_traits import TraitsOfBoth

REPORT_SECONDS = 0.2  # The time between two events of work in progress.


class FinishReason(StrEnum):
    """Why a row ended: by itself, at max tokens, stopped, or by an error."""

    END = "end"
    MAX_TOKENS = "max_tokens"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True)
class Waiting:
    """The request is in the queue; `place` 1 is next."""

    place: int
    left: TimeLeft | None = None
    row: int = 0


@dataclass(frozen=True)
class Loading:
    """Something is fetched or loaded: `what`, of which `fraction` is done (None: unknown)."""

    what: str
    fraction: float | None
    row: int = 0
    left: TimeLeft | None = None

    @property
    def text(self) -> str:
        """In words: "Reading the weights, 40%"."""
        return self.what if self.fraction is None else f"{self.what}, {self.fraction:.0%}"


@dataclass(frozen=True)
class Started:
    """The row has a place in the batch. `expected_seconds` of audio is an estimate.

    `notes` tell the person how the voice prompt was changed, and other remarks. others: how many
    other rows have a place now.
    """

    seed: int
    model: str
    precision: str
    device: str
    sample_rate: int
    expected_seconds: float
    notes: tuple[str, ...] = ()
    row: int = 0
    left: TimeLeft | None = None
    others: int = 0


@dataclass(frozen=True)
class Progress:
    """Sent several times a second.

    step counts decoder steps of this row; audio_seconds is the audio of its tokens so far;
    realtime_factor is that audio over the wall time since the row started; expected_seconds of the
    whole take's audio is an estimate; others: how many other rows advance in the same steps now.
    words: those that began since the last report, of models that know them.
    """

    step: int
    audio_seconds: float
    wall_seconds: float
    realtime_factor: float
    expected_seconds: float
    row: int = 0
    left: TimeLeft | None = None
    others: int = 0
    words: tuple[SpokenWord, ...] = ()


@dataclass(frozen=True)
class AudioChunk:
    """Samples that are ready to play: float32 [n], starting `start_seconds` into the take."""

    samples: np.ndarray
    sample_rate: int
    start_seconds: float
    row: int = 0


@dataclass(frozen=True)
class Figures:
    """Measurements of one take. realtime_factor = audio_seconds / wall_seconds.

    audio_seconds is the length of the take's samples, at its speed, including the silence at its
    end, of which at most 0.18 s is added (engine/sound/take_audio.py); without a codec it is the
    length of the frames.
    wall_seconds runs from the row's start (model loaded, with a place) to its last sample;
    token_seconds and codec_seconds (with a change of speed) are the parts of it spent in each.
    expected_seconds is how long the script was estimated to take, whatever max_tokens allows.
    numerics: what decides how the take was rounded (machine/processor.py), and its kernels.
    surplus_turns: how many more turns it has than the script, negative if some at the end were
    never begun; None if the model does not mark its turns, or the take did not end by itself.
    shared_with: the most other takes that were generated at the same time, which makes each slower.
    """

    audio_seconds: float
    wall_seconds: float
    realtime_factor: float
    token_seconds: float
    codec_seconds: float
    first_audio_seconds: float | None
    steps: int
    finish_reason: FinishReason
    seed: int
    model: str
    precision: str
    device: str
    sample_rate: int
    peak_rss_bytes: int
    expected_seconds: float | None = None
    numerics: dict[str, str] = field(default_factory=dict)
    surplus_turns: int | None = None
    shared_with: int = 0


@dataclass(frozen=True)
class SpokenWord:
    """A word as the script has it, when it begins in the take in seconds, and its speaker, 1 or
    2."""

    word: str
    seconds: float
    speaker: int


@dataclass(frozen=True)
class Result:
    """What a row produced: codes int16 [frames, channels] with delays undone, and measurements.

    samples is float32 [n], or None without a codec. voices: the names of those of S1 and S2, where
    the model has names for them (see `Row.voices`). places: int32 [frames], for each frame of codes
    the byte of the row's text that was read for it (-1 in a pause that was made longer); None for a
    model that does not follow its text. expected_voices: how S1 and S2 should sound, None where it
    is not known. words: see `BaseRow.words`.
    """

    codes: np.ndarray
    samples: np.ndarray | None
    figures: Figures
    voices: tuple[str | None, str | None] | None = None
    places: np.ndarray | None = None
    expected_voices: TraitsOfBoth = (None, None)
    words: tuple[SpokenWord, ...] | None = None


@dataclass(frozen=True)
class Finished:
    """The row ended by itself or at max tokens: see `figures.finish_reason`."""

    result: Result
    row: int = 0


@dataclass(frozen=True)
class Cancelled:
    """The row was stopped; `result` is the take so far (None: before the first frame)."""

    result: Result | None
    row: int = 0


@dataclass(frozen=True)
class Failed:
    """The row ended without a usable take. `message` says what happened and what to do.

    device: an accelerator that was at fault, otherwise "cpu". The CPU can then make the same take.
    """

    message: str
    row: int = 0
    device: str = "cpu"


Event = Waiting | Loading | Started | Progress | AudioChunk | Finished | Cancelled | Failed
