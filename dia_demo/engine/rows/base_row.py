"""BaseRow: what the scheduler and the streams of events know of a row, of whatever family.

One take while it is generated: its parameters, generator and cancel flag.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Protocol
from weakref import WeakMethod

import numpy as np
import torch
from torch import Tensor

from dia_demo.config import GenerationParams, ModelConfig
from dia_demo.engine.events import FinishReason, SpokenWord
from dia_demo.engine.turns.voices import TurnVoices
from dia_demo.prompt.voice_traits import TraitsOfBoth


def nobody_listens(_: float) -> None:
    """The sound that is left to nobody."""


class Steps(Protocol):
    """Rows that advance together, in one step at a time."""

    def step(self) -> None: ...


class BaseRow(ABC):
    """One row of a batch, of any family.

    text: what the model reads, with a prompt's transcript. prompt_frames: how many frames of it are
    a voice prompt. cancel: set from any thread, at any time, to stop the row.
    Raises InputError where a parameter is out of range.
    """

    # The rows of one model, which advance together.
    make_batch: Callable[[Any, Sequence[Any]], Steps]

    def __init__(
        self,
        config: ModelConfig,
        text: bytes,
        params: GenerationParams,
        prompt_frames: int = 0,
        cancel: threading.Event | None = None,
    ) -> None:
        self.config = config
        # Whose row it is, for those who decide about turns.
        self.owner: object = None
        # How many seconds of sound a listener has left at a time, by perf_counter; None if nobody
        # listens while it is generated.
        self.sound_left: Callable[[float], float | None] = nobody_listens
        self.stepped_at = perf_counter()
        self.text = text
        self.params = params.check(config)
        self.cancel = cancel or threading.Event()
        # What the model keeps of it between steps, once it was read.
        self.cache: Any = None
        self.prompt_frames = prompt_frames
        self.turns: TurnVoices | None = None
        self.steps = 0
        self.finish_reason: FinishReason | None = None
        self.failure: str | None = None
        self._generator = torch.Generator().manual_seed(self.params.seed)
        self._is_abandoned = False

    @abstractmethod
    def read(self, model: Any) -> Any:
        """The row's cache after its text and its voice prompt, but for what the first step
        reads."""

    @property
    @abstractmethod
    def known_frames(self) -> int:
        """New frames all of whose channels are known."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether no step follows: every channel of the last frame is known, or it has failed."""

    @abstractmethod
    def codes(self, first: int = 0, last: int | None = None) -> np.ndarray:
        """New frames first..last as codes int16 [frames, C], delays undone, out-of-range codes 0.

        `last` defaults to the last known frame.
        """

    @property
    def words(self) -> Sequence[SpokenWord] | None:
        """The words begun so far, in order; None of a model that does not know when they are."""
        return None

    @property
    def voices(self) -> tuple[str | None, str | None] | None:
        """The names of the voices of S1 and S2; None for one that has the voice prompt's, or where
        the model has no voices by name."""
        return None

    @property
    def expected_voices(self) -> TraitsOfBoth:
        """See `Result`."""
        return None, None

    @property
    def surplus_turns(self) -> int | None:
        """See `Figures`."""
        return None

    def set_listener(self, sound_left: Callable[[float], float]) -> None:
        """Somebody listens: the method of an object says what `sound_left` does.

        The row does not keep the object alive. A stream holds its row: held by it as well, both
        would stay in memory, with all their audio, until a full collection.
        """
        reference = WeakMethod(sound_left)

        def call_while_alive(now: float) -> float | None:
            method = reference()
            return None if method is None else method(now)

        self.sound_left = call_while_alive

    def needs_text(self) -> bool:
        """Whether the next step has to wait for text that is still being written. Called between
        two steps."""
        return False

    @property
    def is_stopped(self) -> bool:
        """Whether the row is to leave at the next boundary between two steps."""
        return self._is_abandoned or self.cancel.is_set()

    def abandon(self) -> None:
        """Stop this row, from any thread: nobody waits for it."""
        self._is_abandoned = True

    def draw_uniforms(self, out: Tensor) -> None:
        """Write uniforms in [0, 1) for one frame to out [C], independent of all other rows."""
        out.uniform_(generator=self._generator)

    def fail(self, why: str) -> None:
        """End the row without a result; `failure` is the reason."""
        self.finish_reason, self.failure = FinishReason.FAILED, why

    def fail_not_finite(self) -> None:
        """End the row because its logits are not all finite."""
        self.fail(
            f"The decoder returned a non-finite number at step {self.steps + 1}. The take is "
            "dropped, because its audio would be noise. Try float32; if that fails too, the "
            "weights are damaged: fetch them again."
        )
