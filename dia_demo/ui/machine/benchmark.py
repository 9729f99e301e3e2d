"""The Machine tab: the benchmark with progress, Stop, and its result in words."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date

import gradio as gr

from dia_demo.engine.events import Waiting
from dia_demo.services.bench.last_report import last_report
from dia_demo.services.bench.plan import BenchPlan
from dia_demo.services.bench.report import BenchReport
from dia_demo.services.bench.runner import Measuring, bench, model_of
from dia_demo.services.speed.words import full_size_sentences
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.system_info import torch_remark
from dia_demo.services.wording import duration
from dia_demo.services.worker.worker import JobStopped
from dia_demo.task import Task
from dia_demo.ui import html
from dia_demo.ui.machine import html as machine_html
from dia_demo.ui.runs import (
    IMMEDIATE,
    SECONDS_BETWEEN_UPDATES,
    LongRun,
    Trigger,
    Updates,
    connect_run,
)
from dia_demo.ui.status import Status, explain, status_of

CHOSEN = "chosen"
# The models that are measured with random weights, each with the number of steps to time. A step of
# Dia-1.6B takes a fifth of a second, so a few are enough; one of Dia2 takes a tenth or less.
FULL_SIZES = {"dia-1.6b": 24, "dia2-1b": 60}
IDLE = Status("idle", "Ready", "Takes wait while the benchmark runs.", 0.0)
STARTING = Status("loading", "Measuring", "Getting ready.", 0.0, "Measuring")


@dataclass(frozen=True)
class MachinePanel:
    """The components that take part in events."""

    what: gr.Radio
    measure: gr.Button
    stop: gr.Button
    status: gr.HTML
    report: gr.HTML


def build_layout() -> MachinePanel:
    """The tab's components."""
    with gr.Column(elem_id="machine", elem_classes="card"):
        gr.HTML(machine_html.intro(torch_remark()), js_on_load=None)
        what = gr.Radio(
            [
                ("The model selected on the Generate tab", CHOSEN),
                *((f"{title_of(size)}, with random weights", size) for size in FULL_SIZES),
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
    return MachinePanel(what, measure, stop, status, report)


def title_of(size: str) -> str:
    """The name of a model that is measured at full size."""
    return BenchPlan(random=size).name


def full_size_info() -> str:
    """What the choices of random weights mean on this machine: their time, or why they are not
    possible."""
    sentences = [
        "Speed does not depend on the values of the weights, so nothing is downloaded",
        "Random weights take several minutes, the nano voice about one",
    ]
    for size in FULL_SIZES:
        if shortage := BenchPlan(random=size).memory_shortage():
            sentences.append(f"{title_of(size)} is not possible on this machine: {shortage}")
    return "".join(f"{sentence}. " for sentence in sentences).rstrip()


class MachineHandlers:
    """The events of the Machine tab."""

    def __init__(self, synthesis: Synthesis, panel: MachinePanel) -> None:
        self.synthesis, self.panel = synthesis, panel
        self.run = LongRun([panel.measure], panel.stop)

    def measure(self, request: gr.Request, what: str, model: str) -> Iterator[Updates]:
        """Run the benchmark; the chart and the figures grow as it goes."""

        def work(cancel: threading.Event) -> Iterator[Updates]:
            yield from self._measure(self.plan(what, model), cancel)

        first = {self.panel.status: html.status_card(STARTING)}
        yield from self.run.updates(request, first, work, self._not_finished)

    def _not_finished(self, error: Exception) -> Updates:
        if isinstance(error, JobStopped):
            status = Status("stopped", "Stopped", "The results so far stay on this page.", 0.0)
        else:
            message = explain(error)
            status = Status("failed", "Benchmark failed", message, 0.0, f"Failed: {message}")
        return {self.panel.status: html.status_card(status)}

    def plan(self, what: str, model: str) -> BenchPlan:
        """What to measure. A model of full size that was never downloaded is measured with random
        weights."""
        threads = self.synthesis.settings.runtime.threads
        full_sizes = {
            size: BenchPlan(random=size, threads=threads, steps=steps)
            for size, steps in FULL_SIZES.items()
        }
        if what in full_sizes:
            return full_sizes[what]
        if self.synthesis.models[model].folder is None:
            for plan in full_sizes.values():
                if model_of(plan) == model:
                    return plan
        return BenchPlan(model=model, threads=threads)

    def _measure(self, plan: BenchPlan, cancel: threading.Event) -> Iterator[Updates]:
        panel, shown_at = self.panel, 0.0
        shown: BenchReport | None = None
        began = time.monotonic()
        with closing(Task(bench(self.synthesis, plan, cancel))) as measuring:
            for event in measuring:
                report = event.report if isinstance(event, Measuring) else shown
                if report is shown and time.monotonic() - shown_at < SECONDS_BETWEEN_UPDATES:
                    continue
                shown_at = time.monotonic()
                update = {panel.status: html.status_card(bench_status(event))}
                if report is not None and report is not shown:
                    shown = report
                    update[panel.report] = self._html(report, finished=False)
                yield update
            yield self._done_updates(measuring.result, time.monotonic() - began)

    def _done_updates(self, report: BenchReport, seconds: float) -> Updates:
        detail = f"{report.plan.title}, measured in {duration(seconds)}."
        done = Status("done", "Done", detail, 1.0, f"Done, {detail}")
        return {
            self.panel.status: html.status_card(done),
            self.panel.report: self._html(report),
        }

    def last_report(self) -> str:
        """The last benchmark of this machine, whoever made it."""
        last = last_report()
        return self._html(None) if last is None else self._html(last[0], day=last[1])

    def _html(
        self, report: BenchReport | None, finished: bool = True, day: date | None = None
    ) -> str:
        """The report, with what is known of other models also while it grows: Stop leaves it so."""
        shown = None if report is None else model_of(report.plan)
        others = full_size_sentences(self.synthesis.speed, without=shown)
        return machine_html.report_html(report, finished, others, day)


def bench_status(event) -> Status:
    """The status after an event of the benchmark."""
    if isinstance(event, Measuring):
        return Status("running", "Measuring", f"{event.doing}.", event.fraction, "Measuring")
    if isinstance(event, Waiting):
        return status_of(event, STARTING)
    return STARTING


def connect(
    page: gr.Blocks, panel: MachinePanel, model: gr.components.Component, handlers: MachineHandlers
) -> None:
    """Connect the buttons, and show the last result. model: the field of the Generate tab."""
    outputs = [panel.measure, panel.stop, panel.status, panel.report]
    page.load(handlers.last_report, None, panel.report, **IMMEDIATE)
    triggers = [Trigger(panel.measure, handlers.measure, [panel.what, model])]
    connect_run(page, handlers.run, triggers, outputs)
