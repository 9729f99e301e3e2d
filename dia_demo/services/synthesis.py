"""A request from script to finished take: checks, queue, model, rows, events."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial

from dia_demo import audio
from dia_demo.accelerator.accelerator import Accelerator, default_verdicts
from dia_demo.accelerator.selfcheck.verdicts import VerdictStore
from dia_demo.accelerator.status import place_on_device
from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.engine.events import (
    Cancelled,
    Event,
    Finished,
    Loading,
    Progress,
    Result,
    Started,
    Waiting,
)
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.placement import place_on_cpu
from dia_demo.engine.row import check_prompt
from dia_demo.engine.rows.base_row import BaseRow
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import DiaDemoError, InputError
from dia_demo.kernels.precompile import Precompilation
from dia_demo.machine.system import exclude_from_collection
from dia_demo.services.calibration.background import BackgroundCalibration
from dia_demo.services.downloads.downloads import PROGRAM, Downloads
from dia_demo.services.judging.single_take import voice_remark
from dia_demo.services.loading.idle import IdleUnload
from dia_demo.services.loading.model_slot import ModelSlot
from dia_demo.services.loading.notice import NoticeSound
from dia_demo.services.loading.rows import read_requests
from dia_demo.services.loading.warm_up import WarmUp
from dia_demo.services.models import Models
from dia_demo.services.monitoring.metrics import Metrics
from dia_demo.services.queue import Queue, Ticket
from dia_demo.services.settings import Settings
from dia_demo.services.shutdown import Shutdown
from dia_demo.services.speed.background import BackgroundMeasurement
from dia_demo.services.speed.machine_speed import MachineSpeed
from dia_demo.services.speed.run_estimate import RunEstimate
from dia_demo.services.take import Request, Take, check_together, drop_silent_result, sound_of

log = logging.getLogger(__name__)


class Synthesis:
    """Generates takes for the page and the command line. Holds at most one engine.

    accelerators: returns the Accelerator for a device's name; by default the real ones.
    """

    can_continue_text = True  # See Request.more_text.

    def __init__(
        self, settings: Settings, accelerators: Callable[[str], Accelerator] | None = None
    ) -> None:
        self.settings = settings
        self.models = Models(settings.models, settings.runtime.model)
        self.accelerator = accelerators or partial(
            Accelerator.for_device, store=VerdictStore(default_verdicts())
        )
        self._queue = Queue(
            settings.queue_size, settings.places, settings.at_once, settings.address_places
        )
        self.metrics = Metrics(self._queue)
        self._warming = WarmUp(self._warm)
        self._precompilation: Precompilation | None = None
        self._compiles = False
        self._shutdown = Shutdown()
        self.downloads = Downloads(self.models)
        self.notice = NoticeSound(settings.notice, self.models)
        self.speed = MachineSpeed(settings.runtime.threads)
        self._measurement = BackgroundMeasurement(self.speed, self._queue.busy)
        self.calibration = BackgroundCalibration(self._queue.busy, settings.runtime.threads)
        self.speed.beside = lambda: self._queue.rows
        self._model = ModelSlot(
            self.accelerator,
            lambda info, runtime: self.calibration.wait(info, runtime),
            self.speed,
            self._queue,
            settings.at_once,
            self.metrics,
        )
        self._idle = IdleUnload(self._queue, self._model, 60 * settings.unload_minutes)

    def close(self) -> None:
        """End all runs and the warm-up, and wait for them. No request is accepted afterwards."""
        self.downloads.close()
        self.calibration.close()
        self._shutdown.begin(self._warming.background)
        self._model.close()
        self._measurement.close()

    def run_in_background(self, work: Callable[[], None], cancel: threading.Event) -> None:
        """Run `work` in a thread of its own; `close` sets `cancel` and waits for the thread."""
        self._shutdown.start(work, cancel)

    def warm_up(self, precompilation: Precompilation | None = None) -> None:
        """Load the model the app starts with in the background, so that the first take begins
        immediately, if it and its codec are in a folder; download a hub model's missing files.
        Then measure this machine, unless that was done before."""
        runtime, loading = self.settings.runtime, None
        with suppress(InputError):  # The warm-up and the first take say what is wrong.
            info = self.models[runtime.model]
            loading = self._model.time_to_load(info, runtime)
            if not info.is_local:
                self.downloads.start(info.name, PROGRAM)
        self._precompilation = precompilation
        self._compiles = precompilation is not None and precompilation.is_needed
        self._warming.start(loading, self._compiles)
        self._measurement.start(after=self._warming.background)

    def load(self) -> Generator[Loading, None, None]:
        """Load the model the settings name, so that a take begins immediately; download what is
        missing of a hub model. Raises InputError if it cannot run as the settings say."""
        runtime = self.settings.runtime
        info = self.models[runtime.model]
        self._place(info, runtime)
        yield from self._shutdown.steps(self._load(info, runtime, with_audio=True))

    def unload_if_idle(self) -> None:
        """Free the model's memory if nobody has used it for the time of the settings."""
        if not self.is_warming_up:
            self._idle.check()

    @property
    def is_warming_up(self) -> bool:
        """Whether the warm-up is not done yet."""
        return self._warming.is_running

    def _warm(self) -> Iterator[Loading]:
        if self._precompilation is not None:
            for done, count in self._precompilation.progress():
                yield Loading(f"Compiling kernels {done + 1} of {count}", done / count)
        try:
            info = self.models[self.settings.runtime.model]
            if not info.is_local or info.folder is None or not (info.folder / "codec").is_dir():
                return
            runtime, _ = self.calibration.current_runtime(info, self.settings.runtime)
            for event in self._model.load(info, runtime, is_usual=not self._compiles):
                yield event
                if self._shutdown.has_begun:
                    return
            yield Loading("Trying the voice", None)
            self._model.engine.warm_up()
        except DiaDemoError as error:
            log.warning("The start model could not be loaded yet: %s", error)
        finally:
            exclude_from_collection()

    def stream(
        self, request: Request, cancel: threading.Event, in_int8_meanwhile: bool = False
    ) -> Generator[Event, None, None]:
        """The request's events; the last one is Finished, Cancelled or Failed (engine/events.py).
        Cancelled has no result if nothing could be heard yet.

        in_int8_meanwhile: if its weights have to be calibrated first, do that in the background and
        make this take in int8. Raises InputError for an invalid request, before the row starts.
        Setting `cancel` stops the row within one step, and so does closing the iterator.
        """
        yield from self.stream_together([request], cancel, in_int8_meanwhile)

    def stream_together(
        self,
        requests: Sequence[Request],
        cancel: threading.Event,
        in_int8_meanwhile: bool = False,
    ) -> Generator[Event, None, None]:
        """Several requests with the same runtime as the rows of one run, with one queue ticket.

        Runs with the same runtime share the places of the engine. Every event has the index of its
        row; each row ends as in `stream`, and `cancel` stops all.
        """
        first = self.validate_together(requests)
        runtime, note = first.runtime, ""
        if in_int8_meanwhile:  # What cannot be made begins no calibration.
            runtime, note = self.calibration.current_runtime(first.model, runtime)
            requests = [replace(request, runtime=runtime) for request in requests]
        estimate = self._estimate(requests)
        may_share = partial(self._model.can_share, runtime, first.with_audio)
        with self._queue.enter(cancel) as ticket:
            ticket.runtime = runtime
            for waiting in self._queue.wait(ticket, cancel, may_share):
                self._shutdown.check()
                estimate.expect_loading(self.loading(first.model, runtime, self._queue.first))
                yield estimate.note(waiting)
            estimate.expect_loading(self.loading(first.model, runtime))
            for event in self._load_and_run(requests, ticket, cancel):
                event = estimate.note(event)
                if isinstance(event, Loading | Started | Progress):
                    ticket.left, ticket.next_end = event.left, estimate.next_end
                if note and isinstance(event, Started):
                    event = replace(event, notes=(*event.notes, note))
                yield event

    def _load_and_run(
        self, requests: Sequence[Request], ticket: Ticket, cancel: threading.Event
    ) -> Generator[Event, None, None]:
        if not ticket.is_open:  # Otherwise it shares an engine.
            first = requests[0]
            loads = self._load(first.model, first.runtime, first.with_audio)
            with closing(self._shutdown.steps(loads)) as loading:
                while not cancel.is_set() and (event := next(loading, None)) is not None:
                    yield event
        if cancel.is_set():
            yield from (Cancelled(None, row) for row in range(len(requests)))
            return
        self._shutdown.check()
        engine = self._model.engine
        self._queue.open(ticket, engine.places)
        yield from self._run(engine, requests, ticket, cancel)

    def _estimate(self, requests: Sequence[Request]) -> RunEstimate:
        """The time left of a run of these requests."""
        takes = [self.speed.expect_take(request) for request in requests]
        return RunEstimate(takes, places=self._queue.places)

    def loading(
        self, info: ModelInfo, runtime: RuntimeConfig, behind: Ticket | None = None
    ) -> TimeLeft | None:
        """How long a take has to wait for its model; None if that is not known. behind: the run
        before it, which waits for the warm-up."""
        if behind is not None:
            return self._model.time_to_load(info, runtime, behind.runtime)
        if self._warming.is_running and runtime == self.settings.runtime:
            return self._warming.left
        loading = self._model.time_to_load(info, runtime)
        return None if loading is None else self._warming.left + loading

    def time_to_begin(self, info: ModelInfo, runtime: RuntimeConfig) -> TimeLeft | None:
        """How long a take would wait for its model and its place; None if unknown."""
        loading = self.loading(info, runtime)
        shares = self._model.can_share(runtime, with_audio=True)
        place = self._queue.time_to_place(shares)
        return None if loading is None or place is None else loading + place

    def take(self, request: Request, result: Result) -> Take:
        """The take of a Finished or Cancelled event's result.

        Raises RunError if it contains no audio or only silence.
        """
        samples, rate = sound_of(request, result), result.figures.sample_rate
        health = audio.health(samples, rate)
        codes, figures, voices = result.codes, result.figures, result.voices
        notes, fps = request.notes, request.model.frames_per_second
        made = samples, rate, codes, figures, request, health, notes, voices, fps
        notice, remark = self.notice.samples(rate), voice_remark(request, result)
        return Take(*made, voice_remark=remark, notice=notice, spoken=result.words)

    def validate(self, request: Request) -> None:
        """Raise InputError for whatever can be rejected without loading the model."""
        info = request.model
        self.check_length(request.script)
        params = request.params.check(info.config)
        request.encode()
        audio.SPEEDS.check("speed", request.speed)
        self._place(info, request.runtime)
        request.check_voices()
        if request.voice is None:
            return
        if request.voice.codes is not None:
            check_prompt(request.voice.codes, info.config, params.max_tokens)
        else:
            request.voice.read(info, params.max_tokens, self.settings.prompt_seconds)

    def validate_together(self, requests: Sequence[Request]) -> Request:
        """`validate` the requests of one run; returns the first."""
        for request in requests:
            self.validate(request)
        check_together(requests)
        return requests[0]

    def check_length(self, script: str) -> None:
        """Raise InputError for a script that is longer than this app allows."""
        if (length := len(script)) > (limit := self.settings.script_characters):
            raise InputError(f"The script has {length:,} characters; {limit:,} are allowed here.")

    def _place(self, info: ModelInfo, runtime: RuntimeConfig) -> None:
        """Raise InputError if the model cannot run as requested. The self-check of a device needs
        the checkpoint, so a model that is not downloaded yet is checked when it is loaded."""
        if runtime.device == "cpu":
            place_on_cpu(runtime, info)
            return
        accelerator = self.accelerator(runtime.device)
        place_on_device(runtime, accelerator.status())
        if info.folder is not None:
            accelerator.place(info, runtime)

    @contextmanager
    def reserve_machine(self, cancel: threading.Event) -> Iterator[Iterator[Waiting]]:
        """Reserve the machine for something other than a take. Consume the iterator to wait in the
        queue; after that no model is in memory and nothing else runs until the block ends."""
        with self._queue.enter(cancel) as ticket:
            yield self._wait_alone(ticket, cancel)

    def _wait_alone(self, ticket: Ticket, cancel: threading.Event) -> Iterator[Waiting]:
        yield from self._queue.wait(ticket, cancel)
        for _ in self._warming.wait():
            if cancel.is_set():
                break
        if not cancel.is_set():
            self.calibration.stop()
            self._model.unload()

    def _load(
        self, info: ModelInfo, runtime: RuntimeConfig, with_audio: bool
    ) -> Generator[Loading, None, None]:
        yield from self._warming.wait()
        yield from self._model.load(info, runtime)
        if with_audio:
            yield from self._model.engine.open_codec()

    def _run(
        self, engine: Engine, requests: Sequence[Request], ticket: Ticket, cancel: threading.Event
    ) -> Generator[Event, None, None]:
        reading = read_requests(requests, engine, self.settings.prompt_seconds, cancel)
        run = yield from self._shutdown.steps(reading)
        for row in run.rows:
            row.owner = ticket
        speeds = [request.speed for request in requests]
        with_audio = requests[0].with_audio
        with self._shutdown.step():
            submitted = engine.submit(run.rows, run.expected_seconds, with_audio, speeds)
        with closing(submitted) as stream, self.metrics.rows(len(requests)) as counts:
            for event in self._queue.events(ticket, stream):
                counts.note(event)
                self._shutdown.check()
                if isinstance(event, Started):
                    event = replace(event, notes=run.notes[event.row])
                if isinstance(event, Finished | Cancelled) and event.result is not None:
                    self._learn(engine, requests[event.row], run.rows[event.row], event.result)
                yield drop_silent_result(event)

    def _learn(self, engine: Engine, request: Request, row: BaseRow, result: Result) -> None:
        """Update this machine's speed with a take that was generated alone."""
        is_alone = not result.figures.shared_with and request.more_text is None
        if is_alone and request.voice is None and request.runtime.device == "cpu":
            made = request.model, result.figures, engine.placement.threads
            self.speed.learn_take(*made, len(row.text), request.speed)
