"""The experimental XPU toggle: why it is off, its self-check, and the return to the CPU."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import gradio as gr

from dia_demo.engine.events import Loading, Waiting
from dia_demo.files import PAGE_FILES
from dia_demo.services.diagnosis.device_check import (
    STAGES,
    Checking,
    CheckStopped,
    DeviceStatus,
    SelfCheckReport,
    StageReport,
    StageVerdict,
    check_device,
    last_report,
)
from dia_demo.services.synthesis import Synthesis
from dia_demo.task import Task
from dia_demo.ui.runs import IMMEDIATE, LongRun, Trigger, Updates, connect_run
from dia_demo.ui.status import explain

TITLE = "Intel XPU (experimental)"
WHY = (
    "Experimental: in earlier projects Intel GPUs produced distorted speech without an error, so "
    "a self-check must pass on your GPU first."
)
# The button appears with the failure, a moment before Generate accepts clicks again.
PRESS_GENERATE = """() => {
  const button = document.querySelector("#generate");
  const press = () => (button.disabled ? setTimeout(press, 50) : button.click());
  press();
}"""
VERDICTS = {
    StageVerdict.PASS: "passed",
    StageVerdict.FAIL: "failed",
    StageVerdict.NOTE: "passed, with a note",
    StageVerdict.SKIPPED: "not run",
}


@dataclass(frozen=True)
class XpuPanel:
    """`toggle` is a field of the form; the others are shown where there is a GPU."""

    toggle: gr.Checkbox
    check: gr.Button
    stop: gr.Button
    save: gr.DownloadButton
    report: gr.HTML


def build_layout(synthesis: Synthesis) -> XpuPanel:
    """The toggle and, where there is a GPU to check, its reason and the self-check."""
    accelerator = synthesis.accelerator("xpu")
    status = accelerator.status()
    runtime = replace(synthesis.settings.runtime, device="xpu")
    report = last_report(synthesis, synthesis.models[runtime.model], runtime)
    interactive, info = toggle_state(status, report)
    with gr.Column(elem_id="xpu-area", min_width=0):
        with gr.Row(elem_id="xpu-line"):
            toggle = gr.Checkbox(
                label=TITLE,
                info=info,
                value=False,
                interactive=interactive,
                elem_id="xpu",
            )
            gr.HTML(
                f'<a href="#xpu-document">{"About this" if status.usable else "Why it is off"}</a>',
                elem_id="xpu-why",
                js_on_load=(PAGE_FILES / "xpu.js").read_text(encoding="utf-8"),
            )
        with gr.Row(visible=status.usable):
            check = gr.Button("Run the self-check", size="sm", elem_id="xpu-check")
            stop = gr.Button("Stop the check", size="sm", interactive=False, elem_id="xpu-stop")
            save = gr.DownloadButton(
                "Save the report", size="sm", interactive=False, elem_id="xpu-save"
            )
        shown = "" if report is None else stages_html(report, report.headline())
        html = gr.HTML(shown, visible=status.usable, elem_id="xpu-report", js_on_load=None)
    return XpuPanel(toggle, check, stop, save, html)


def build_document(synthesis: Synthesis) -> None:
    """The section of the About tab: why the toggle is off here."""
    status = synthesis.accelerator("xpu").status()
    here = "" if status.usable else f" It is off on this machine: {status.reason}"
    more = "The self-check and what it found on other cards are described in `docs/xpu.md`."
    gr.Markdown(f"## {TITLE}\n\n{WHY}{here} {more}", elem_id="xpu-document")


def toggle_state(status: DeviceStatus, report: SelfCheckReport | None) -> tuple[bool, str | None]:
    """Whether the toggle can be turned on, and the sentence under it, where there is a GPU."""
    if not status.usable:
        return False, None
    if report is None:
        return False, "Off until the self-check has passed on this machine. Run it below."
    if not report.passed:
        return False, f"Off: {report.headline()}"
    speed = report.speed_text()
    if report.worth_it:
        return True, f"The self-check passed: {speed}."
    return True, f"The self-check passed, but {speed}. The CPU is the better choice here."


def toggle_after_failure() -> dict:
    """The toggle after a failed run on the GPU: off and disabled until the check passes."""
    info = "Off: the last run on the XPU failed. The self-check must pass before the next one."
    return gr.update(value=False, interactive=False, info=info)


def outdated_notice() -> str:
    """Shown instead of a report that a failed run has made invalid."""
    return _sentence(
        "A run failed after the self-check had passed, so its result is no longer valid."
    )


def stages_html(report: SelfCheckReport, headline: str, doing: str = "") -> str:
    """The stages with their results so far, under a headline for screen readers as well."""
    done = {stage.number: stage for stage in report.stages}
    rows = "".join(_row(number, done.get(number), doing) for number in STAGES)
    return (
        f'<p class="xpu-headline" role="status" aria-live="polite">{escape(headline)}</p>'
        f'<table class="xpu-stages"><thead><tr><th>Stage</th><th>Verdict</th><th>Error / '
        f"tolerance</th><th>Time</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _row(number: int, stage: StageReport | None, doing: str) -> str:
    title = f"{number}. {STAGES[number]}"
    if stage is None:
        verdict, kind = ("running", "running") if doing == title else ("", "open")
        return (
            f'<tr class="{kind}"><td>{escape(title)}</td><td>{verdict}</td><td></td><td></td></tr>'
        )
    error = "" if stage.error is None else f"{stage.error:.0e} / {stage.tolerance:.0e}"
    lines = "".join(f"<li>{escape(line)}</li>" for line in (*stage.findings, *stage.facts))
    return (
        f'<tr class="{escape(stage.verdict)}"><td>{escape(title)}<ul>{lines}</ul></td>'
        f"<td>{VERDICTS[stage.verdict]}</td><td>{error}</td><td>{stage.seconds:.1f} s</td></tr>"
    )


class XpuHandlers:
    """The events of the XPU area."""

    def __init__(self, synthesis: Synthesis, panel: XpuPanel) -> None:
        self.synthesis, self.panel = synthesis, panel
        self.run = LongRun([panel.check], panel.stop)

    def check(self, request: gr.Request, model: str, precision: str) -> Iterator[Updates]:
        """Run the self-check with the model chosen on the page; the report grows as it goes."""
        panel = self.panel

        def work(cancel: threading.Event) -> Iterator[Updates]:
            return self._check(model, precision, cancel)

        first = {
            panel.toggle: gr.update(value=False, interactive=False),
            panel.save: gr.update(value=None, interactive=False),
        }
        yield from self.run.updates(request, first, work, self._not_finished)

    def _not_finished(self, error: Exception) -> Updates:
        stopped = "The self-check was stopped and has no result."
        text = stopped if isinstance(error, CheckStopped) else explain(error)
        return {self.panel.report: _sentence(text)}

    def _save_report(self, report: SelfCheckReport) -> dict:
        """The report as a file to download; gradio keeps a copy of its own."""
        home = self.synthesis.settings.served_folder
        home.mkdir(parents=True, exist_ok=True)
        file = Path(tempfile.mkdtemp(prefix="report-", dir=home)) / "xpu-report.json"
        return {self.panel.save: gr.update(value=str(report.save(file)), interactive=True)}

    def _check(self, model: str, precision: str, cancel: threading.Event) -> Iterator[Updates]:
        panel, accelerator = self.panel, self.synthesis.accelerator("xpu").status()
        started = self.synthesis.settings.runtime
        runtime = replace(started, model=model, precision=precision, device="xpu")
        checking = Task(check_device(self.synthesis, self.synthesis.models[model], runtime, cancel))
        for event in checking:
            match event:
                case Waiting(place=position):
                    yield {panel.report: _sentence(f"Waiting, place {position} in the queue.")}
                case Loading():
                    yield {panel.report: _sentence(event.text)}
                case Checking(doing=doing, fraction=fraction, report=report):
                    headline = f"Checking, {fraction:.0%}: {doing}"
                    yield {panel.report: stages_html(report, headline, doing)}
        report = checking.result
        able, info = toggle_state(accelerator, report)
        yield self._save_report(report) | {
            panel.report: stages_html(report, report.headline()),
            panel.toggle: gr.update(interactive=able, info=info),
        }


def _sentence(text: str) -> str:
    return f'<p class="xpu-headline" role="status" aria-live="polite">{escape(text)}</p>'


def connect(
    page: gr.Blocks,
    panel: XpuPanel,
    on_cpu: gr.Button,
    handlers: XpuHandlers,
    model_fields: Sequence[gr.components.Component],
) -> None:
    """Connect the buttons of the check and the button that generates the same take on the CPU.

    model_fields: model and precision of the Generate tab.
    """
    outputs = [panel.toggle, panel.check, panel.stop, panel.save, panel.report]
    triggers = [Trigger(panel.check, handlers.check, model_fields)]
    connect_run(page, handlers.run, triggers, outputs)
    # The failure has turned the toggle off and kept the seed, so Generate makes the same take.
    hidden = on_cpu.click(lambda: gr.update(visible=False), None, on_cpu, **IMMEDIATE)
    hidden.then(None, None, None, js=PRESS_GENERATE)
