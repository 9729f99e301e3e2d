"""Coroutines in tests."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import wraps


def run_async(coroutine: Coroutine) -> object:
    """The coroutine's result, in a thread of its own: playwright's loop may run in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def async_test(test: Callable[..., Coroutine]) -> Callable[..., None]:
    """A test that is a coroutine, for pytest."""

    @wraps(test)
    def run(*given: object, **named: object) -> None:
        run_async(test(*given, **named))

    return run
