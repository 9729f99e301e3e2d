"""A text that is still being written, read in a thread of its own while it is spoken."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dia_demo.errors import InputError
from dia_demo.machine.background import Background
from dia_demo.text.dialogue.incoming import IncomingText, Sentence

# After so long without text, what has come is spoken, and the speech ends.
STOPPED_SECONDS = 60.0
STOPPED = (
    f"No text came for {STOPPED_SECONDS:.0f} s, so the speech ends here. All that had come was "
    "spoken."
)
# How soon a stop is noticed while no text comes.
_CANCEL_SECONDS = 0.1


@dataclass(frozen=True)
class TextStopped:
    """No text came for too long; `message` says so."""

    message: str = STOPPED


def read_sentences(
    pieces: Iterable[str], is_stopped: Callable[[], bool], by_words: bool = False
) -> Iterator[Sentence | TextStopped]:
    """The sentences of a text as they become complete; nothing of it is lost if it stops.

    is_stopped: whether nobody wants them any more. by_words: see `IncomingText`. Raises InputError
    if a piece is not text, and whatever `pieces` raises.
    """
    arrived: queue.SimpleQueue[str | BaseException | None] = queue.SimpleQueue()

    def read() -> None:
        try:
            for piece in pieces:
                if is_stopped():
                    return
                arrived.put(piece)
        except BaseException as error:
            arrived.put(error)
        else:
            arrived.put(None)

    Background("text", read).start()
    text, latest = IncomingText(by_words), time.monotonic() + STOPPED_SECONDS
    while not is_stopped():
        try:
            piece = arrived.get(timeout=_CANCEL_SECONDS)
        except queue.Empty:
            if time.monotonic() < latest:
                continue
            yield from text.finish()
            yield TextStopped()
            return
        if isinstance(piece, BaseException):
            yield from text.finish()
            raise piece
        if piece is None:
            yield from text.finish()
            return
        if not isinstance(piece, str):
            raise InputError(f"A piece of text must be text, not {piece!r}.")
        yield from text.add(piece)
        latest = time.monotonic() + STOPPED_SECONDS
