"""Engine: one loaded model and its codec; rows in, typed events out."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from dia_demo.accelerator.accelerator import Accelerator, default_verdicts
from dia_demo.accelerator.guard import check_waveform
from dia_demo.accelerator.remote import RemoteDia
from dia_demo.accelerator.selfcheck.verdicts import VerdictStore
from dia_demo.checkpoint_config import read_model_config
from dia_demo.codec.codec import Codec, open_codec
from dia_demo.codec.config import codec_format
from dia_demo.config import ModelConfig, RuntimeConfig
from dia_demo.engine import events
from dia_demo.engine.events import Event, Failed, Loading
from dia_demo.engine.loop import ROWS_AT_ONCE, run, run_to_end
from dia_demo.engine.memory import check_free
from dia_demo.engine.placement import Placement, place
from dia_demo.engine.row import Row
from dia_demo.engine.row_stream import Track
from dia_demo.errors import DiaDemoError, RunError
from dia_demo.hub import fetch_checkpoint
from dia_demo.model import checkpoint
from dia_demo.model.dia import Dia
from dia_demo.model.loading import LoadedModel, Stages, load_model
from dia_demo.model.threads import torch_threads
from dia_demo.task import Task

log = logging.getLogger(__name__)


class _AcceleratorFailed(RunError):
    """The device is at fault, not the request: it must not run again before it is checked."""


class Engine:
    """Built by `Engine.load`. One stream at a time: callers take turns (services/queue.py).

    With an accelerator the model lies in that device's own process, and `closed` is True once it
    has failed: then the engine is of no more use.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        model: Dia | RemoteDia,
        placement: Placement,
        accelerator: Accelerator | None = None,
        loaded: LoadedModel | None = None,
    ) -> None:
        self.name = name
        self.folder = folder
        self.model = model
        self.placement = placement
        self.accelerator = accelerator
        self.loaded = loaded
        self._untold = (loaded.note,) if loaded and loaded.note else ()
        self.closed = False
        self.format = codec_format(folder)
        self._codec: Codec | None = None

    @classmethod
    def load(
        cls, runtime: RuntimeConfig, accelerator: Accelerator | None = None
    ) -> Generator[Loading, None, Engine]:
        """Find, fetch where needed, and load; yields Loading events, returns the engine.

        Raises InputError where the model cannot be had, does not fit, or cannot run as asked: an
        accelerator without a passed self-check among them.
        """
        folder = checkpoint.local_folder(runtime.model)
        if folder is None:
            fetching = fetch_checkpoint(runtime.model)
            folder = yield from _as_loading(f"Fetching {runtime.model}", fetching)
        config = read_model_config(folder)
        if runtime.device != "cpu":
            accelerator = accelerator or Accelerator.named(
                runtime.device, VerdictStore(default_verdicts())
            )
            placement = accelerator.place(runtime, config, folder)
            loading = accelerator.load(placement, folder)
            what = f"Loading {runtime.model} on the {runtime.device.upper()}"
            model = yield from _as_loading(what, loading)
            return cls(runtime.model, folder, model, placement, accelerator)
        placement = place(runtime, config)
        check_free(config, placement.precision)
        loading = load_model(folder, placement.precision, placement.threads)
        loaded = yield from _as_stages(runtime.model, loading)
        log.info("%s", loaded.choice.reason)
        if loaded.note:
            log.warning("%s", loaded.note)
        return cls(runtime.model, folder, loaded.model, placement, loaded=loaded)

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    def untold(self) -> tuple[str, ...]:
        """What a person should know about the loading, once."""
        told, self._untold = self._untold, ()
        return told

    def open_codec(self) -> Iterator[Loading]:
        """Fetch the checkpoint's codec where needed, and load it; once is enough."""
        if self._codec is None:
            loading = open_codec(self.folder)
            threads = self.placement.threads
            self._codec = yield from _as_loading("Loading the codec", loading, threads)

    def load_codec(self) -> None:
        """`open_codec`, waiting for it."""
        list(self.open_codec())

    @property
    def codec(self) -> Codec:
        """The checkpoint's codec, loaded when first asked for."""
        self.load_codec()
        return self._codec

    def warm_up(self) -> None:
        """Run everything once on next to nothing: what is built at first use is then there."""
        with torch_threads(self.placement.threads):
            self.codec.decode(np.zeros((1, self.codec.num_codebooks), np.int64))
        params = replace(self.config.defaults, max_tokens=self.config.shortest_max_tokens)
        run_to_end(self.model, [Row(self.config, b"\x01 Hello.", params)])

    def stream(
        self, rows: Sequence[Row], expected_seconds: Sequence[float], with_audio: bool = True
    ) -> Iterator[Event]:
        """Run rows together; every row's events, each ended by Finished, Cancelled or Failed.

        More than ROWS_AT_ONCE wait for a place; a row's Started comes when it has one.

        expected_seconds: an estimate of each row's audio. Without audio no codec is loaded and
        results hold codes alone. Closing the iterator stops the rows.
        """
        codec = self.codec if with_audio else None
        tracks = {
            row: Track(self, index, row, seconds, codec)
            for index, (row, seconds) in enumerate(zip(rows, expected_seconds, strict=True))
        }
        for track in list(tracks.values())[:ROWS_AT_ONCE]:
            yield track.started()
        try:
            yield from self._advance(rows, tracks)
        except _AcceleratorFailed as error:
            said, device = self._give_up(str(error)), self.placement.device
            yield from (Failed(said, t.index, device) for t in tracks.values() if not t.ended)
        except DiaDemoError as error:
            yield from (Failed(str(error), t.index) for t in tracks.values() if not t.ended)
        except Exception as error:
            log.exception("a run broke off")
            said = f"The run broke off: {type(error).__name__}: {error}. The app works on."
            yield from (Failed(said, t.index) for t in tracks.values() if not t.ended)

    def _advance(self, rows: Sequence[Row], tracks: dict[Row, Track]) -> Iterator[Event]:
        steps = run(self.model, rows)
        try:
            while True:
                began = perf_counter()
                row = self._next(steps)
                took = perf_counter() - began
                for track in tracks.values():
                    track.token_seconds += took if track.began and not track.ended else 0.0
                if row is None:
                    return
                if not tracks[row].began:  # It waited for a place.
                    yield tracks[row].started()
                yield from tracks[row].after_step()
        finally:
            steps.close()

    def _next(self, steps: Iterator[Row]) -> Row | None:
        try:
            return next(steps, None)
        except DiaDemoError as error:
            if self.accelerator is None:
                raise
            raise _AcceleratorFailed(str(error)) from error

    def check_waveform(self, samples: np.ndarray) -> None:
        """What an accelerator made must look like speech before anyone hears it."""
        try:
            check_waveform(samples, self.format.sample_rate, self.accelerator.usual)
        except RunError as error:
            raise _AcceleratorFailed(str(error)) from error

    def _give_up(self, what: str) -> str:
        """End the device's process and forget that it was trusted; returns what to say."""
        log.error("%s failed: %s", self.placement.device, what)
        self.close()
        return self.accelerator.failed(self.folder, self.placement.precision, what)

    def close(self) -> None:
        """Give back what is not Python's to free: an accelerator's process."""
        if self.accelerator is not None and not self.closed:
            self.closed = True
            self.model.close()


def _as_loading(
    what: str, work: Generator[float, None, object], threads: int | None = None
) -> Generator:
    """Fractions as Loading events, at most one every REPORT_SECONDS; returns the work's result."""
    yield Loading(what, 0.0)
    reported, task = perf_counter(), Task(work)
    fractions = iter(task)
    while True:
        with torch_threads(threads):  # Not while another thread may go on with the generator.
            fraction = next(fractions, None)
        if fraction is None:
            return task.result
        if perf_counter() - reported >= events.REPORT_SECONDS:
            reported = perf_counter()
            yield Loading(what, fraction)


def _as_stages(name: str, work: Stages) -> Generator[Loading, None, LoadedModel]:
    """Stages of loading a model as Loading events; the first of each, then one now and then."""
    reported, last, task = 0.0, None, Task(work)
    for what, fraction in task:
        if what != last or perf_counter() - reported >= events.REPORT_SECONDS:
            reported, last = perf_counter(), what
            yield Loading(what.replace("Loading", f"Loading {name}"), fraction)
    return task.result
