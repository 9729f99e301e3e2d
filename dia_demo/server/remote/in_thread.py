"""Events that a thread makes, read in an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import closing
from typing import TypeVar

from dia_demo.machine.background import Background

Item = TypeVar("Item")


async def iterate_in_thread(
    make: Callable[[], Generator[Item, None, None]], cancel: threading.Event
) -> AsyncGenerator[Item, None]:
    """The items of a generator, which runs in a thread of its own.

    A reader that leaves sets `cancel` and closes the generator: it ends within a step, without
    being waited for. Raises what the generator raises, RunError where no thread can be started.
    """
    loop = asyncio.get_running_loop()
    items: asyncio.Queue[tuple[Item] | BaseException | None] = asyncio.Queue()
    has_left = threading.Event()

    def put(item: tuple[Item] | BaseException | None) -> None:
        if not has_left.is_set():
            loop.call_soon_threadsafe(items.put_nowait, item)

    def run() -> None:
        try:
            with closing(make()) as generator:
                for item in generator:
                    if has_left.is_set():
                        return
                    put((item,))
            put(None)
        except BaseException as error:  # noqa: BLE001 - raised where the items are read
            put(error)

    Background("events", run, cancel).start()
    try:
        while (item := await items.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item[0]
    finally:
        has_left.set()
        cancel.set()
