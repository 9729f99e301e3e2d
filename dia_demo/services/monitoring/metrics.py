"""What /metrics says: counts of takes, models and requests, in Prometheus' form.

Each `Synthesis` has its own, so that several may be in one process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from dia_demo.engine.events import (
    Cancelled,
    Event,
    Failed,
    Figures,
    Finished,
    FinishReason,
    Progress,
)
from dia_demo.machine.system import resident_bytes
from dia_demo.services.queue import Queue

REALTIME_FACTORS = (0.1, 0.2, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 50)
FIRST_AUDIO_SECONDS = (0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60)


class Metrics:
    """The metrics of one app. queue: whose lengths are read when somebody asks."""

    def __init__(self, queue: Queue) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        for name, what, read in (
            ("dia_queue_length", "Runs that wait for a place.", lambda: queue.waiting),
            ("dia_rows", "Rows that have a place, and advance together.", lambda: queue.rows),
            ("dia_places", "Places of the loaded model.", lambda: queue.places),
            ("dia_memory_bytes", "Resident memory of the app's process.", resident_bytes),
        ):
            Gauge(name, what, registry=registry).set_function(read)

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(name, what, labels, registry=registry)

        self._steps = counter("dia_decoder_steps", "Decoder steps of all rows.")
        self._takes = counter("dia_takes", "Takes, by how they ended.", "ended")
        self._audio = counter("dia_audio_seconds", "Seconds of audio of the takes that ended.")
        self._wall = counter("dia_wall_seconds", "Seconds in which they were generated.")
        self._factor = Histogram(
            "dia_realtime_factor",
            "Seconds of audio in a second, of each take.",
            buckets=REALTIME_FACTORS,
            registry=registry,
        )
        self._first_audio = Histogram(
            "dia_first_audio_seconds",
            "Seconds from a take's place to its first sound.",
            buckets=FIRST_AUDIO_SECONDS,
            registry=registry,
        )
        self._loads = counter("dia_model_loads", "Loadings of a model.", "model", "result")
        self._unloads = counter("dia_model_unloads", "Models whose memory was freed.", "model")
        self._requests = counter(
            "dia_http_requests", "Answered requests.", "route", "method", "status"
        )
        for reason in FinishReason:  # A rate needs the value before the first.
            self._takes.labels(reason)

    @contextmanager
    def rows(self, count: int) -> Iterator[RowCounts]:
        """Counts the rows of a run. Those that have not ended at the end of the block were
        cancelled, or have failed if it raises."""
        counts = RowCounts(self, count)
        try:
            yield counts
        except Exception:
            counts.end_all(FinishReason.FAILED)
            raise
        finally:
            counts.end_all(FinishReason.CANCELLED)

    def add_steps(self, steps: int) -> None:
        """Rows have advanced by so many steps together."""
        self._steps.inc(max(0, steps))

    def add_take(self, ended: FinishReason, figures: Figures | None = None) -> None:
        """A take has ended; with figures, if anything was generated."""
        self._takes.labels(ended).inc()
        if figures is None:
            return
        self._audio.inc(figures.audio_seconds)
        self._wall.inc(figures.wall_seconds)
        if ended in (FinishReason.END, FinishReason.MAX_TOKENS):
            self._factor.observe(figures.realtime_factor)
            if figures.first_audio_seconds is not None:
                self._first_audio.observe(figures.first_audio_seconds)

    @contextmanager
    def count_load(self, model: str) -> Iterator[None]:
        """Counts a loading by whether the block raises."""
        try:
            yield
        except Exception:
            self._loads.labels(model, "failed").inc()
            raise
        self._loads.labels(model, "loaded").inc()

    def add_unloading(self, model: str) -> None:
        """A model's memory was freed."""
        self._unloads.labels(model).inc()

    def add_request(self, route: str, method: str, status: int) -> None:
        """A request was answered. route: without what differs from request to request."""
        self._requests.labels(route, method, status).inc()


class RowCounts:
    """Counts what the events of a run's rows say."""

    def __init__(self, metrics: Metrics, count: int) -> None:
        self._metrics = metrics
        # The last step that is counted, of those that have not ended.
        self._steps = dict.fromkeys(range(count), 0)

    def note(self, event: Event) -> None:
        """An event of one of the rows."""
        if isinstance(event, Progress):
            self._advance(event.row, event.step)
        elif isinstance(event, Failed):
            self._end(event.row, FinishReason.FAILED)
        elif isinstance(event, Finished | Cancelled):
            if event.result is None:
                self._end(event.row, FinishReason.CANCELLED)
            else:
                figures = event.result.figures
                self._advance(event.row, figures.steps)
                self._end(event.row, figures.finish_reason, figures)

    def end_all(self, reason: FinishReason) -> None:
        """The rows that have not ended end now."""
        for row in list(self._steps):
            self._end(row, reason)

    def _advance(self, row: int, step: int) -> None:
        if row in self._steps:
            self._metrics.add_steps(step - self._steps[row])
            self._steps[row] = step

    def _end(self, row: int, reason: FinishReason, figures: Figures | None = None) -> None:
        if self._steps.pop(row, None) is not None:
            self._metrics.add_take(reason, figures)
