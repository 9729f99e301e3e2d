"""The service whose takes another process makes: the settings say which (DIA_ENGINE).

Scripts are read and checked here, and so are voices; a finished take is saved and judged here. What
needs the model itself is done by the engine.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Generator, Sequence
from contextlib import closing

from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Event, Finished, Loading
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.time_left import NOTHING, TimeLeft
from dia_demo.errors import InputError
from dia_demo.kernels.precompile import Precompilation
from dia_demo.services.queue import Ticket
from dia_demo.services.remote.client import EngineClient
from dia_demo.services.remote.engine import RemoteEngine
from dia_demo.services.settings import Settings
from dia_demo.services.speed.machine_speed import MachineSpeed
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request, drop_silent_result


def open_synthesis(settings: Settings) -> Synthesis:
    """The service with the engine of this process, or with the one that the settings name."""
    if not settings.engine:
        return Synthesis(settings)
    return RemoteSynthesis(settings, EngineClient(settings.engine, settings.engine_token))


class RemoteSynthesis(Synthesis):
    """See `Synthesis`. It loads no model, and its queue only limits how many runs a visitor has:
    who waits for whom is decided by the engine."""

    can_continue_text = False  # The engine gets whole requests.

    def __init__(self, settings: Settings, engine: RemoteEngine) -> None:
        super().__init__(settings)
        self._engine = engine
        # Measured with the takes of that engine alone.
        name = hashlib.sha256(settings.engine.encode()).hexdigest()[:8]
        self.speed = MachineSpeed(settings.runtime.threads, f"speed-{name}.json")
        self.speed.keeps = True

    @property
    def is_warming_up(self) -> bool:
        """Whether no engine has a model loaded yet."""
        return not self._engine.is_warm

    def warm_up(self, precompilation: Precompilation | None = None) -> None:
        """Nothing: the engine does it."""

    def load(self) -> Generator[Loading, None, None]:
        """Nothing: the engine loads a model when a take needs it."""
        yield from ()

    def stream_together(
        self,
        requests: Sequence[Request],
        cancel: threading.Event,
        in_int8_meanwhile: bool = False,
    ) -> Generator[Event, None, None]:
        """See `Synthesis`. Raises RunError where the engine cannot be reached."""
        self.validate_together(requests)
        with (
            self._queue.enter(cancel),
            closing(self._engine.stream(requests, cancel, in_int8_meanwhile)) as events,
            self.metrics.rows(len(requests)) as counts,
        ):
            for event in events:
                counts.note(event)
                self._shutdown.check()
                if isinstance(event, Finished):
                    self._learn_from(requests[event.row], event)
                yield drop_silent_result(event)

    def loading(
        self, info: ModelInfo, runtime: RuntimeConfig, behind: Ticket | None = None
    ) -> TimeLeft | None:
        """What is loaded there is not known here; usually it is the model."""
        return NOTHING

    def _place(self, info: ModelInfo, runtime: RuntimeConfig) -> None:
        if runtime.device != "cpu":
            raise InputError(
                f"The takes are made by the engine at {self.settings.engine}, so {runtime.device} "
                "of this machine is not used: choose the CPU."
            )

    def _learn_from(self, request: Request, event: Finished) -> None:
        """Update the engine's speed with a take that was generated alone."""
        if event.result.figures.shared_with or request.voice is not None:
            return
        text = request.reading(request.script).text.encode()
        threads = request.runtime.threads or 0
        self.speed.learn_take(
            request.model, event.result.figures, threads, len(text), request.speed
        )
