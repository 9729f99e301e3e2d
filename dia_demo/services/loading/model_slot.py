"""The one model in memory: loading it, replacing it, and how long that takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from dia_demo.accelerator.accelerator import Accelerator
from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import Loading
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.model_loader import load_on_cpu
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.engine.scheduler import Turns
from dia_demo.engine.time_left import NOTHING, TimeLeft
from dia_demo.errors import InputError
from dia_demo.machine.system import collect_excluded
from dia_demo.services.models import fetch_with_progress
from dia_demo.services.monitoring.metrics import Metrics
from dia_demo.services.speed.machine_speed import MachineSpeed


class ModelSlot:
    """Holds at most one engine.

    accelerator: returns the Accelerator of a device. wait: for a calibration of a model that has
    begun, once no model is in memory. turns and places: of the engine's rows.
    loaded_at: when the last loading ended, in seconds of `time.monotonic`.
    """

    def __init__(
        self,
        accelerator: Callable[[str], Accelerator],
        wait: Callable[[ModelInfo, RuntimeConfig], Iterator[Loading]],
        speed: MachineSpeed,
        turns: Turns,
        places: int,
        metrics: Metrics,
    ) -> None:
        self._accelerator, self._wait, self._speed = accelerator, wait, speed
        self._turns, self._places, self._metrics = turns, places, metrics
        self._engine: Engine | None = None
        self._runtime: RuntimeConfig | None = None
        self.loaded_at = time.monotonic()

    @property
    def is_loaded(self) -> bool:
        """Whether a model is in memory."""
        return self._engine is not None

    @property
    def engine(self) -> Engine:
        """The loaded engine."""
        assert self._engine is not None
        return self._engine

    def close(self) -> None:
        """End what the engine runs; no run can begin afterwards."""
        if self._engine is not None:
            self._engine.close()

    def unload(self) -> None:
        """Free the model's memory."""
        if self._engine is None:
            return
        self._engine.close()
        self._metrics.add_unloading(self._engine.info.name)
        self._engine = self._runtime = None
        # The model of the start was excluded from garbage collection, and engines are in cycles.
        collect_excluded()

    def load(
        self, info: ModelInfo, runtime: RuntimeConfig, is_usual: bool = True
    ) -> Iterator[Loading]:
        """Load a model unless that is what is loaded; fetch what is missing of a hub model.

        is_usual: it takes as long as later loadings will, which then are expected to.
        """
        if self.has(runtime):
            return
        # Two models may not fit into memory together, so the old one is freed first.
        self.unload()
        with self._metrics.count_load(info.name):
            yield from self._load(info, runtime, is_usual)

    def _load(self, info: ModelInfo, runtime: RuntimeConfig, is_usual: bool) -> Iterator[Loading]:
        info = yield from fetch_with_progress(info)
        yield from self._wait(info, runtime)
        on_cpu = runtime.device == "cpu"
        loader = load_on_cpu if on_cpu else self._accelerator(runtime.device).load
        is_prepared, began = _is_prepared(info, runtime), time.monotonic()
        self._engine = yield from Engine.load(info, runtime, loader, self._turns, self._places)
        self._runtime, self.loaded_at = runtime, time.monotonic()
        if is_usual and is_prepared is not None:
            precision, seconds = self._engine.placement.precision, time.monotonic() - began
            self._speed.learn_load(info.name, precision, is_prepared, seconds)

    def has(self, runtime: RuntimeConfig) -> bool:
        """Whether the loaded model is what this runtime needs.

        It may be placed in another way by now: a container's cores come and go, and a benchmark may
        have found another precision to be faster.
        """
        if self._engine is None or self._runtime != runtime or self._engine.closed:
            return False
        if runtime.device != "cpu":
            return True
        now, then = place_on_cpu(runtime, self._engine.info), self._engine.placement
        return (now.precision, now.threads) == (then.precision, then.threads)

    def can_share(self, runtime: RuntimeConfig, with_audio: bool) -> bool:
        """Whether a run needs nothing but what is loaded, so that it may join those that run."""
        return self.has(runtime) and (self.engine.has_codec or not with_audio)

    def time_to_load(
        self, info: ModelInfo, runtime: RuntimeConfig, behind: RuntimeConfig | None = None
    ) -> TimeLeft | None:
        """How long it takes until a take with this runtime can begin; None if unknown.

        behind: the runtime of a run that ends before, which decides what is in memory then.
        """
        if self.has(runtime) if behind is None else behind == runtime:
            return NOTHING
        is_prepared = _is_prepared(info, runtime)
        if is_prepared is None:
            return None
        return self._speed.loading(info, place_on_cpu(runtime, info).precision, is_prepared)


def _is_prepared(info: ModelInfo, runtime: RuntimeConfig) -> bool | None:
    """Whether the weights are stored as they are used; None if they are not on this machine, have
    to be calibrated first, or are for another device."""
    if runtime.device != "cpu" or not info.has_weights:
        return None
    try:
        precision = place_on_cpu(runtime, info).precision
    except InputError:
        return None
    if info.config.prepared is not None or info.prepared_file(precision).is_file():
        return True
    return None if precision == "int4" else False
