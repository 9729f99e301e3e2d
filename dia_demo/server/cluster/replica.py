"""A replica of the engine: a process of a cluster with a model, its scheduler and its places."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, aclosing
from dataclasses import replace

from ray import serve

from dia_demo.engine.engine import PROMPTS_KEPT
from dia_demo.engine.events import Event, Failed
from dia_demo.errors import DiaDemoError, RunError
from dia_demo.machine.system import prepare_to_serve
from dia_demo.server.remote.in_thread import iterate_in_thread
from dia_demo.services.folders import temporary_folder
from dia_demo.services.people import Caller, Visitor
from dia_demo.services.remote.plain import PlainRequest, requests_here
from dia_demo.services.remote.wire import pack_error
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request

# Runs that were stopped, for their rows that have not arrived yet.
STOPS_KEPT = 1000


class EngineReplica:
    """Makes the rows of other processes' runs. cores: how many of its machine's it may use, chosen
    by its rank among the replicas there; None for all."""

    def __init__(self, cores: int | None = None) -> None:
        if cores is not None:
            use_cores(serve.get_replica_context().rank.local_rank, cores)
        prepare_to_serve()
        self._rows: dict[str, list[Caller]] = {}
        self._stopped: deque[str] = deque(maxlen=STOPS_KEPT)
        self._open = ExitStack()
        settings = Settings.from_env()
        # Whoever asks has admitted the run already.
        settings = replace(
            settings,
            takes_folder=self._open.enter_context(temporary_folder(settings.takes_folder)),
            queue_size=10**6,
            address_places=10**6,
        )
        self._synthesis = Synthesis(settings)
        self._open.callback(self._synthesis.close)
        self._warm_up()

    def __del__(self) -> None:
        self._open.close()

    def _warm_up(self) -> None:
        """Load the model, and make the shortest take: a replica is ready when its first take
        begins at once. Raises InputError or RunError if that is impossible."""
        for _ in self._synthesis.load():
            pass
        runtime = self._synthesis.settings.runtime
        info = self._synthesis.models[runtime.model]
        tokens = info.config.shortest_max_tokens
        params = replace(info.config.defaults, max_tokens=tokens)
        for event in self._synthesis.stream(
            Request("[S1] Hello.", params, info, runtime), threading.Event()
        ):
            if isinstance(event, Failed):
                raise RunError(event.message)

    async def answer(self) -> None:
        """Nothing: a replica that answers has been loaded."""

    async def rows(
        self, request: PlainRequest, run: str, visitor: Visitor, in_int8_meanwhile: bool
    ) -> AsyncGenerator[Event | str, None]:
        """The events of one row of a run; instead of those that are missing, an error as
        `pack_error` writes it. A reader that leaves stops the row within a step."""
        if key := serve.get_multiplexed_model_id():
            await self.note_voice(key)
        cancel = Caller(visitor)
        self._rows.setdefault(run, []).append(cancel)
        if run in self._stopped:
            cancel.set()

        def make() -> Generator[Event, None, None]:
            synthesis = self._synthesis
            with requests_here([request], synthesis.models, synthesis.settings) as requests:
                yield from synthesis.stream(requests[0], cancel, in_int8_meanwhile)

        try:
            async with aclosing(iterate_in_thread(make, cancel)) as events:
                async for event in events:
                    yield event
        except DiaDemoError as error:
            yield pack_error(error)
        finally:
            self._rows[run].remove(cancel)
            if not self._rows[run]:
                del self._rows[run]

    async def stop(self, run: str) -> None:
        """Stop the rows of a run, also those that arrive later; each still sends its last event."""
        self._stopped.append(run)
        for cancel in self._rows.get(run, ()):
            cancel.set()

    @serve.multiplexed(max_num_models_per_replica=PROMPTS_KEPT)
    async def note_voice(self, key: str) -> str:
        """Let the router know that this replica has read a voice: the next take with it is sent
        here if there is a place."""
        return key


def use_cores(rank: int, count: int) -> None:
    """Use `count` cores of those granted to this process, other ones than replicas of other ranks
    as far as there are enough. Systems that cannot pin a process ignore it."""
    if not hasattr(os, "sched_setaffinity"):
        return
    granted = sorted(os.sched_getaffinity(0))
    shares = max(1, len(granted) // count)
    first = rank % shares * count
    os.sched_setaffinity(0, granted[first : first + count])
