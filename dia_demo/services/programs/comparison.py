"""A comparison for a program: made under the quota of all comparisons, and removed after the call.

The program keeps the archive, so nothing of it stays here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

from dia_demo.errors import RunError
from dia_demo.services.listening.comparison import Comparison
from dia_demo.services.listening.plan.plan import ComparisonPlan
from dia_demo.services.listening.render import RenderEnded
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.people import passing_key
from dia_demo.services.take import VoicePrompt


@contextmanager
def made_comparison(
    store: ComparisonStore,
    plan: ComparisonPlan,
    voice: VoicePrompt | None,
    cancel: threading.Event,
) -> Iterator[tuple[Comparison, RenderEnded]]:
    """The comparison of a plan and how its run ended; removed with the block.

    Raises InputError for what cannot be made and where the quota has no room, RunError if the run
    was stopped or no pair could be made.
    """
    with passing_key(store.home) as key:
        identity = store.create(key, plan, voice)
        try:
            ended = _run(store, key, identity, cancel)
            yield store.get(key, identity), ended
        finally:
            store.delete(key, identity)


def _run(store: ComparisonStore, key: str, identity: str, cancel: threading.Event) -> RenderEnded:
    with closing(store.run(key, identity, cancel)) as events:
        for event in events:
            if isinstance(event, RenderEnded):
                break
        else:
            raise AssertionError("a run ended without its last event")
    made = f"{event.pairs_made} of {event.pairs} pairs"
    if event.stopped:
        raise RunError(f"The run was stopped after {made}. Send the request again.")
    if not event.pairs_made:
        raise RunError(event.failures[0] if event.failures else f"The run ended with {made}.")
    return event
