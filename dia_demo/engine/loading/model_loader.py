"""Loading a model for an engine: what a loader returns, the CPU's loader, progress as events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

import numpy as np

from dia_demo.config import RuntimeConfig
from dia_demo.engine import events
from dia_demo.engine.decoder_model import DecoderModel
from dia_demo.engine.events import Loading
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import check_free
from dia_demo.engine.loading.placement import Placement, place_on_cpu
from dia_demo.model.loading import LoadedModel, Stages, run_stage
from dia_demo.task import Task

log = logging.getLogger(__name__)

Result = TypeVar("Result")


def nothing_to_close() -> None:
    """The memory of a model on the CPU is freed with its last reference."""


@dataclass(frozen=True)
class PlacedModel:
    """A model that is ready to run, and how it runs here.

    loaded: what the CPU's loader chose, None on another device. check_take(samples, sample_rate)
    raises DeviceFailed for a finished waveform that must not be returned; None: every take is
    returned. close frees what outlives the last reference to the model, such as a process.
    """

    model: DecoderModel
    placement: Placement
    loaded: LoadedModel | None = None
    check_take: Callable[[np.ndarray, int], None] | None = None
    close: Callable[[], None] = nothing_to_close


# Loads a model from its folder. Raises InputError where it cannot run as the runtime says.
ModelLoader = Callable[[ModelInfo, RuntimeConfig], Generator[Loading, None, PlacedModel]]


def load_on_cpu(info: ModelInfo, runtime: RuntimeConfig) -> Generator[Loading, None, PlacedModel]:
    """The ModelLoader of the CPU. Raises InputError where the model does not fit into memory."""
    placement = place_on_cpu(runtime, info)
    check_free(info, placement.precision)
    loading = info.family.load(info, placement.precision, placement.threads)
    loaded = yield from _stage_events(loading, info.name)
    log.info("%s", loaded.choice.reason)
    if loaded.note:
        log.warning("%s", loaded.note)
    return PlacedModel(loaded.model, placement, loaded)


def loading_events(
    what: str, work: Generator[float, None, Result], threads: int | None = None
) -> Generator[Loading, None, Result]:
    """Fractions as Loading events, at most one every REPORT_SECONDS; returns the work's result."""
    return (yield from _stage_events(run_stage(what, work, threads)))


def _stage_events(work: Stages[Result], name: str = "") -> Generator[Loading, None, Result]:
    """Stages as Loading events: the start of each, then one every REPORT_SECONDS.

    name: what is loaded, where the stages do not say so.
    """
    reported, last, task = 0.0, None, Task(work)
    for what, fraction in task:
        if what != last or perf_counter() - reported >= events.REPORT_SECONDS:
            reported, last = perf_counter(), what
            yield Loading(what.replace("Loading", f"Loading {name}") if name else what, fraction)
    return task.result
