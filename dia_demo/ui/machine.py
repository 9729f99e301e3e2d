"""The Machine tab: the benchmark on request, with progress and Stop, and what it means."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import gradio as gr

from dia_demo.engine.events import Waiting
from dia_demo.engine.memory import fitting, gb, needed_bytes
from dia_demo.services.bench.plan import MEASURED, RANDOM_SIZES, Plan
from dia_demo.services.bench.report import Report
from dia_demo.services.bench.runner import Measuring, bench
from dia_demo.services.bench.worker import Stopped
from dia_demo.services.models import DIA_NAME
from dia_demo.services.synthesis import Synthesis
from dia_demo.system import memory_bytes
from dia_demo.task import Task
from dia_demo.ui import html, machine_html
from dia_demo.ui.runs import when_over
from dia_demo.ui.sessions import Sessions
from dia_demo.ui.status import Status, duration, explain, status_of

CHOSEN, FULL_SIZE = "chosen", "dia-1.6b"
# A large model takes a fifth of a second a step: fewer of them tell as much.
FULL_SIZE_STEPS = 24
SECONDS_BETWEEN_UPDATES = 0.25
IDLE = Status("idle", "Ready", "Nothing else runs meanwhile, so takes wait until it is over.", 0.0)
BEGUN = Status("loading", "Measuring", "Getting ready.", 0.0, "Measuring")


@dataclass(frozen=True)
class Panel:
    """The components that take part in events."""

    what: gr.Radio
    measure: gr.Button
    stop: gr.Button
    status: gr.HTML
    report: gr.HTML


def lay_out() -> Panel:
    """The tab's components."""
    with gr.Column(elem_id="machine", elem_classes="card"):
        gr.HTML(machine_html.intro(), js_on_load=None)
        what = gr.Radio(
            [
                ("The model chosen under Generate", CHOSEN),
                ("Dia-1.6B at full size, with random weights", FULL_SIZE),
            ],
            value=CHOSEN,
            label="Measure",
            info=full_size_info(),
            elem_id="machine-what",
        )
        measure = gr.Button("Measure", variant="primary", elem_id="machine-measure")
        with gr.Row(elem_id="machine-status-row"):
            status = gr.HTML(html.status_card(IDLE), elem_id="machine-status", js_on_load=None)
            stop = gr.Button(
                "Stop measuring", elem_id="machine-stop", interactive=False, min_width=180, scale=0
            )
        report = gr.HTML(machine_html.nothing_yet(), elem_id="machine-report-area", js_on_load=None)
    return Panel(what, measure, stop, status, report)


def full_size_info() -> str:
    """What the second choice means here: its time, or why it cannot be."""
    speed = "Speed does not depend on the values of the weights, so nothing is fetched for Dia-1.6B"
    room, config = memory_bytes(), RANDOM_SIZES[FULL_SIZE]
    if fitting(config, room):
        return f"{speed}; it takes several minutes. The embedded voice takes about one."
    least = min(needed_bytes(config, precision) for precision in MEASURED)
    return f"{speed}. Here it cannot be measured: it needs {gb(least)}, and there are {gb(room)}."


class MachineHandlers:
    """What happens when a benchmark is run or stopped."""

    def __init__(self, synthesis: Synthesis, panel: Panel) -> None:
        self.synthesis, self.panel = synthesis, panel
        self.sessions = Sessions()

    def measure(self, request: gr.Request, what: str, model: str) -> Iterator[dict]:
        """Run the benchmark; picture and figures grow as it goes.

        A page that goes away closes this generator, which stops the benchmark.
        """
        panel = self.panel
        yield {
            panel.measure: gr.update(interactive=False),
            panel.stop: gr.update(interactive=True),
            panel.status: html.status_card(BEGUN),
        }
        with self.sessions.run(request) as cancel:
            try:
                yield from self._measured(self.plan(what, model), cancel)
            except Stopped:
                stopped = Status("stopped", "Stopped", "What was measured so far stays.", 0.0)
                yield {panel.status: html.status_card(stopped)}
            except Exception as error:
                said = explain(error)
                failed = Status("failed", "Not measured", said, 0.0, f"Failed: {said}")
                yield {panel.status: html.status_card(failed)}

    def ready(self) -> dict:
        """The next benchmark may be run."""
        return {
            self.panel.measure: gr.update(interactive=True),
            self.panel.stop: gr.update(interactive=False),
        }

    def plan(self, what: str, model: str) -> Plan:
        """What the page asks for. Dia that was never fetched is measured with random weights."""
        threads = self.synthesis.settings.runtime.threads
        full = Plan(random=FULL_SIZE, threads=threads, steps=FULL_SIZE_STEPS)
        if what == FULL_SIZE:
            return full
        asked = Plan(model=model, threads=threads)
        return full if model == DIA_NAME and asked.folder is None else asked

    def _measured(self, plan: Plan, cancel) -> Iterator[dict]:
        panel, shown, shown_at = self.panel, None, 0.0
        began = time.monotonic()
        with closing(Task(bench(self.synthesis, plan, cancel))) as measuring:
            for event in measuring:
                new = isinstance(event, Measuring) and event.report is not shown
                if not new and time.monotonic() - shown_at < SECONDS_BETWEEN_UPDATES:
                    continue
                shown_at = time.monotonic()
                update = {panel.status: html.status_card(bench_status(event))}
                if new:
                    shown = event.report
                    update[panel.report] = machine_html.report_html(shown, finished=False)
                yield update
            yield self._done(measuring.result, time.monotonic() - began)

    def _done(self, report: Report, seconds: float) -> dict:
        detail = f"{report.plan.title}, measured in {duration(seconds)}."
        done = Status("done", "Done", detail, 1.0, f"Done, {detail}")
        return {
            self.panel.status: html.status_card(done),
            self.panel.report: machine_html.report_html(report, finished=True),
        }

    def stop(self, request: gr.Request):
        """Ask this page's benchmark to stop."""
        self.sessions.stop(request.session_hash)
        return gr.update(interactive=False)

    def closed(self, request: gr.Request) -> None:
        """The page was closed or reloaded: nobody waits for its benchmark any more."""
        self.sessions.stop(request.session_hash)


def bench_status(event) -> Status:
    """A benchmark's event as a person reads it."""
    if isinstance(event, Measuring):
        return Status("running", "Measuring", f"{event.doing}.", event.fraction, "Measuring")
    if isinstance(event, Waiting):
        return status_of(event, BEGUN)
    return BEGUN


def wire(panel: Panel, model: gr.Dropdown, handlers: MachineHandlers) -> None:
    """Measure and Stop. model: the one chosen under Generate."""
    outputs = [panel.measure, panel.stop, panel.status, panel.report]
    private = {"api_visibility": "private", "show_progress": "hidden"}
    run = panel.measure.click(handlers.measure, [panel.what, model], outputs, **private)
    when_over(run, handlers.ready, None, [panel.measure, panel.stop])
    panel.stop.click(handlers.stop, None, panel.stop, queue=False, **private)
