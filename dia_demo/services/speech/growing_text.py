"""A text that is spoken in one take while it comes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator
from contextlib import closing

from dia_demo.services.speech.incoming import IncomingEvent, SentenceBegun
from dia_demo.services.speech.job import SpeechJob
from dia_demo.services.speech.speaker import Speaker
from dia_demo.text.script import has_words


class GrowingText:
    """The text of one take. has_words: some have come."""

    def __init__(self) -> None:
        self.has_words = False
        self._pieces: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        # Each is changed by one thread.
        self._added = self._handed_on = 0
        self._is_over = False

    @property
    def waiting(self) -> int:
        """How many characters the model has not been given yet."""
        return 0 if self._is_over else max(0, self._added - self._handed_on)

    def add(self, piece: str) -> None:
        """What follows."""
        self.has_words = self.has_words or has_words(piece)
        self._added += len(piece)
        self._pieces.put(piece)

    def finish(self) -> None:
        """No more text comes."""
        self._pieces.put(None)

    def stream(
        self, speaker: Speaker, job: SpeechJob, cancel: threading.Event
    ) -> Generator[IncomingEvent, None, None]:
        """The speech of it, made once; see `Speaker.stream_incoming`."""
        pieces = iter(self._pieces.get, None)
        try:
            with closing(speaker.stream_incoming(job, pieces, cancel)) as events:
                for event in events:
                    if isinstance(event, SentenceBegun):
                        self._handed_on += len(event.sentence.text)
                    yield event
        finally:
            self._is_over = True
