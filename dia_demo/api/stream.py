"""The takes of the Python API while they are generated, and what fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from dia_demo.engine.events import AudioChunk, Cancelled, Event, Failed, Finished
from dia_demo.errors import RunError
from dia_demo.services.dialogue.single_take import with_words
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, Take


class BatchError(RunError):
    """Some takes of a batch could not be made. takes: those that were, None for each of the
    others."""

    def __init__(self, message: str, takes: list[Take | None]) -> None:
        super().__init__(message)
        self.takes = takes


class Stream(Iterator[AudioChunk]):
    """The chunks of a take, in order: `chunk.samples`, float32 [n], at `chunk.sample_rate` in Hz.

    With DIA_NOTICE the first one is the notice, as in the take's file. Raises RunError if the take
    fails. After the last chunk, `take` is the whole take. It is made
    as fast as the model can, however slowly it is read: `close` a stream that is not read to its
    end, or use it in a `with` block.
    """

    def __init__(self, synthesis: Synthesis, request: Request) -> None:
        self._synthesis, self._request = synthesis, request
        self._cancel = threading.Event()
        synthesis.validate(request)
        self._events = synthesis.notice.prepend_to(synthesis.stream(request, self._cancel))
        self._take: Take | None = None

    def __next__(self) -> AudioChunk:
        try:
            for event in self._events:
                if isinstance(event, AudioChunk):
                    return event
                self._take = take_of(self._synthesis, self._request, event) or self._take
        except BaseException:
            self.close()
            raise
        raise StopIteration

    def close(self) -> None:
        """Stop the take, and drop what is not read yet."""
        self._events.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def stop(self) -> None:
        """End the take early, from any thread: no chunk follows but those of what was generated."""
        self._cancel.set()

    @property
    def take(self) -> Take:
        """The take. Raises RunError before the last chunk, and if it was stopped before any
        speech."""
        if self._take is None:
            raise RunError("There is no take yet: read the stream to its end first.")
        return self._take


def take_of(synthesis: Synthesis, request: Request, event: Event) -> Take | None:
    """The take in a last event, None in another. Raises RunError for a failure."""
    match event:
        case Failed(message=message):
            raise RunError(message)
        case Finished(result=result) | Cancelled(result=result) if result is not None:
            return with_words(synthesis.take(request, result), result)
        case Cancelled():
            raise RunError("The take was stopped before there was any speech.")
    return None
