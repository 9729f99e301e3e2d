"""How many threads torch takes, where it matters: it is set for one thread at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """torch's operations inside take `count` threads, in the calling thread; None: as they are.

    torch keeps the number for each thread by itself, and a page's requests are carried on by one
    thread after another. After an operation torch's threads wait for the next by spinning, and
    hold up whatever else needs their core: small operations between the steps should have none.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
