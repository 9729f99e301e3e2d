"""The experimental XPU toggle: why it is off, its self-check live, and the way back to the CPU."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import gradio as gr

from dia_demo.engine.devices import XpuStatus
from dia_demo.engine.events import Loading, Waiting
from dia_demo.engine.process import Stopped
from dia_demo.engine.selfcheck.child import Checking
from dia_demo.engine.selfcheck.report import STAGES, Report, StageReport
from dia_demo.files import PAGE_FILES, ROOT
from dia_demo.services.device_check import check_device, last_report
from dia_demo.services.synthesis import Synthesis
from dia_demo.task import Task
from dia_demo.ui.runs import when_over
from dia_demo.ui.sessions import Sessions
from dia_demo.ui.status import explain

TITLE = "Intel XPU (experimental)"
WHY = (
    "Experimental: earlier projects got distorted speech from Intel GPUs without an error being "
    "raised, so this one must prove its numbers on your card first."
)
DOCUMENT = ROOT / "docs" / "xpu.md"
# The offer comes with the failure, a moment before Generate takes clicks again.
PRESS_GENERATE = """() => {
  const button = document.querySelector("#generate");
  const press = () => (button.disabled ? setTimeout(press, 50) : button.click());
  press();
}"""
WORDS = {"pass": "passed", "fail": "failed", "note": "noted", "skipped": "not run"}


@dataclass(frozen=True)
class Panel:
    """`toggle` is the form's own field; the others are seen where a card is."""

    toggle: gr.Checkbox
    check: gr.Button
    stop: gr.Button
    save: gr.DownloadButton
    report: gr.HTML


def lay_out(synthesis: Synthesis) -> Panel:
    """The toggle with its reason, and the self-check where there is something to check."""
    accelerator = synthesis.accelerator("xpu")
    status = accelerator.status()
    runtime = replace(synthesis.settings.runtime, device="xpu")
    report = last_report(synthesis, runtime)
    interactive, info = toggle_state(status, report)
    with gr.Column(elem_id="xpu-area", min_width=0):
        toggle = gr.Checkbox(
            label=TITLE, info=info, value=False, interactive=interactive, elem_id="xpu"
        )
        gr.HTML(
            f'<p class="xpu-why">{escape(WHY)} <a href="#xpu-document">More about it</a></p>',
            elem_id="xpu-why",
            js_on_load=(PAGE_FILES / "xpu.js").read_text(encoding="utf-8"),
        )
        with gr.Accordion(f"About {TITLE}", open=False, elem_id="xpu-document"):
            gr.Markdown(document())
        with gr.Row(visible=status.usable):
            check = gr.Button("Run the self-check", size="sm", elem_id="xpu-check")
            stop = gr.Button("Stop the check", size="sm", interactive=False, elem_id="xpu-stop")
            save = gr.DownloadButton(
                "Save the report", size="sm", interactive=False, elem_id="xpu-save"
            )
        shown = "" if report is None else stages_html(report, report.headline())
        html = gr.HTML(shown, visible=status.usable, elem_id="xpu-report", js_on_load=None)
    return Panel(toggle, check, stop, save, html)


def document() -> str:
    """docs/xpu.md without its title."""
    if not DOCUMENT.is_file():
        return "docs/xpu.md is missing from this copy of the program."
    return DOCUMENT.read_text(encoding="utf-8").partition("\n")[2].strip()


def toggle_state(status: XpuStatus, report: Report | None) -> tuple[bool, str]:
    """Whether the toggle can be turned on, and the sentence under it."""
    if not status.usable:
        return False, f"Off: {status.reason}"
    if report is None:
        return False, "Off until its self-check has passed on this machine: run it below."
    if not report.passed:
        return False, f"Off: {report.headline()}"
    speed = report.race.as_text() if report.race else "speed not measured"
    if report.worth_it:
        return True, f"The self-check passed: {speed}."
    return True, f"The self-check passed, but {speed}. Turn it on only if you insist."


def after_failure() -> dict:
    """The toggle once a run on the card has failed: off, and closed until the check passes."""
    info = "Off: a run on it has just failed. Its self-check must pass before it runs again."
    return gr.update(value=False, interactive=False, info=info)


def outdated() -> str:
    """In place of a report that a failed run has overtaken."""
    return _sentence("A run failed after the self-check had passed: it counts no more.")


def stages_html(report: Report, headline: str, doing: str = "") -> str:
    """The nine stages, whatever is known of each, under one sentence that is read aloud."""
    done = {stage.number: stage for stage in report.stages}
    rows = "".join(_row(number, done.get(number), doing) for number in STAGES)
    return (
        f'<p class="xpu-headline" role="status" aria-live="polite">{escape(headline)}</p>'
        f'<table class="xpu-stages"><thead><tr><th>Stage</th><th>Verdict</th><th>Error of '
        f"tolerance</th><th>Time</th></tr></thead><tbody>{rows}</tbody></table>"
    )


def _row(number: int, stage: StageReport | None, doing: str) -> str:
    title = f"{number}. {STAGES[number]}"
    if stage is None:
        verdict, kind = ("running", "running") if doing == title else ("", "open")
        return (
            f'<tr class="{kind}"><td>{escape(title)}</td><td>{verdict}</td><td></td><td></td></tr>'
        )
    error = "" if stage.error is None else f"{stage.error:.0e} of {stage.tolerance:.0e}"
    told = "".join(f"<li>{escape(line)}</li>" for line in (*stage.findings, *stage.facts))
    return (
        f'<tr class="{escape(stage.verdict)}"><td>{escape(title)}<ul>{told}</ul></td>'
        f"<td>{WORDS[stage.verdict]}</td><td>{error}</td><td>{stage.seconds:.1f} s</td></tr>"
    )


class XpuHandlers:
    """What happens when the self-check is run or stopped."""

    def __init__(self, synthesis: Synthesis, panel: Panel) -> None:
        self.synthesis, self.panel = synthesis, panel
        self.sessions = Sessions()

    def check(self, request: gr.Request, model: str, precision: str) -> Iterator[dict]:
        """Run the self-check with the model on the page; the report grows as it goes."""
        panel, status = self.panel, self.synthesis.accelerator("xpu").status()
        off = gr.update(value=False, interactive=False)
        yield {
            panel.check: gr.update(interactive=False),
            panel.toggle: off,
            panel.stop: gr.update(interactive=True),
            panel.save: gr.update(value=None, interactive=False),
        }
        update: dict = {}
        with self.sessions.run(request) as cancel:
            try:
                report = yield from self._checked(model, precision, cancel)
                update = self._saved(report)
                able, info = toggle_state(status, report)
                update[panel.report] = stages_html(report, report.headline())
                update[panel.toggle] = gr.update(interactive=able, info=info)
            except Stopped:
                update[panel.report] = _sentence("The self-check was stopped: nothing is known.")
            except Exception as error:
                update[panel.report] = _sentence(explain(error))
        yield update

    def ready(self) -> dict:
        """The check may be run again."""
        return {
            self.panel.check: gr.update(interactive=True),
            self.panel.stop: gr.update(interactive=False),
        }

    def _saved(self, report: Report) -> dict:
        """The report as a file that can be had: gradio keeps a copy of its own."""
        home = self.synthesis.settings.served_folder
        home.mkdir(parents=True, exist_ok=True)
        file = Path(tempfile.mkdtemp(prefix="report-", dir=home)) / "xpu-report.json"
        return {self.panel.save: gr.update(value=str(report.save(file)), interactive=True)}

    def _checked(self, model: str, precision: str, cancel) -> Iterator[dict]:
        started = self.synthesis.settings.runtime
        runtime = replace(started, model=model, precision=precision, device="xpu")
        checking = Task(check_device(self.synthesis, runtime, cancel))
        for event in checking:
            match event:
                case Waiting(place=place):
                    yield {self.panel.report: _sentence(f"Waiting, place {place} in the queue.")}
                case Loading(what=what, fraction=fraction):
                    yield {self.panel.report: _sentence(f"{what}, {fraction:.0%}")}
                case Checking(doing=doing, fraction=fraction, report=report):
                    said = f"Checking, {fraction:.0%}: {doing}"
                    yield {self.panel.report: stages_html(report, said, doing)}
        return checking.result

    def stop(self, request: gr.Request) -> dict:
        """Ask this page's check to stop."""
        self.sessions.stop(request.session_hash)
        return gr.update(interactive=False)

    def closed(self, request: gr.Request) -> None:
        """The page was closed: nobody waits for its check any more."""
        self.sessions.stop(request.session_hash)


def _sentence(text: str) -> str:
    return f'<p class="xpu-headline" role="status" aria-live="polite">{escape(text)}</p>'


def wire(
    page: gr.Blocks, panel: Panel, on_cpu: gr.Button, handlers: XpuHandlers, chosen: list
) -> None:
    """The check's buttons, and the offer of the same take on the CPU. chosen: model and precision
    as the page has them."""
    outputs = [panel.toggle, panel.check, panel.stop, panel.save, panel.report]
    page.unload(handlers.closed)
    private = {"api_visibility": "private", "show_progress": "hidden"}
    run = panel.check.click(handlers.check, chosen, outputs, **private)
    when_over(run, handlers.ready, None, [panel.check, panel.stop])
    panel.stop.click(handlers.stop, None, panel.stop, queue=False, **private)
    # The failure has turned the toggle off and kept the seed, so Generate makes the same take.
    on_cpu.click(lambda: gr.update(visible=False), None, on_cpu, queue=False, **private).then(
        None, None, None, js=PRESS_GENERATE
    )
