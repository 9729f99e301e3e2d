"""HTML for what gradio has no component for: status, findings, figures, spectrogram; and what
starts the page's JavaScript modules.

Every text is escaped here. The structure of each piece is the same in every state, so that gradio
keeps its elements when it patches the page, and a placeholder is as tall as what replaces it.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
from PIL import Image

from dia_demo.disclosure.notice import DESCRIPTIONS, Notice
from dia_demo.files import module_url
from dia_demo.services.wording import plural
from dia_demo.text.checks.script_check import Finding, ScriptReport
from dia_demo.text.normaliser import Reading
from dia_demo.text.remark import Level
from dia_demo.ui.status import Status

TITLE = "Dia on your CPU"
SPECTROGRAM_SIZE = (880, 160)
_ENDED = ("done", "cut", "stopped", "failed")
# gradio calls a component's script with these.
_SCRIPT_PARAMETERS = "element, props, server, trigger, watch"


def status_card(status: Status) -> str:
    """The state in words, a progress bar, and the announcement for screen readers."""
    percent = None if status.fraction is None else round(100 * status.fraction)
    now = "" if percent is None else f' aria-valuenow="{percent}"'
    width = 100 if percent is None else percent
    # A bar that still moves beside "Done" looks unfinished.
    at_once = "; transition: none" if status.state in _ENDED else ""
    return (
        f'<div class="status" data-state="{escape(status.state)}" '
        f'data-left="{escape(status.left)}">'
        f'<p class="status-line"><strong>{escape(status.headline)}</strong> '
        f'<span class="status-detail">{escape(status.detail)}</span></p>'
        f'<div class="bar" role="progressbar" aria-label="Progress" aria-valuemin="0" '
        f'aria-valuemax="100"{now} aria-valuetext="{escape(status.detail)}">'
        f'<div class="bar-fill" style="width: {width}%{at_once}"></div></div>'
        f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in status.notes)}</ul>'
        f'<p class="sr-only" role="status" aria-live="polite">{escape(_spoken_status(status))}</p>'
        "</div>"
    )


def _spoken_status(status: Status) -> str:
    """What screen readers say of a status: its details only where they no longer change."""
    if status.announcement or status.state in ("waiting", "loading", "running"):
        return status.announcement or status.headline
    return f"{status.headline}. {status.detail}"


def example_buttons(examples: Sequence[dict[str, str]]) -> str:
    """Buttons that write an example into the script. examples: with `label` and `script`."""
    buttons = "".join(
        f'<button type="button" data-script="{escape(example["script"])}">'
        f"{escape(example['label'])}</button>"
        for example in examples
    )
    return f'<div class="examples"><span>Examples</span>{buttons}</div>'


def script_report(
    report: ScriptReport, byte_limit: int | None, unused_transcript: bool = False
) -> str:
    """Counts for the script, then the findings, each with the button that repairs it.

    byte_limit: of one take; None for a script that is made in parts. unused_transcript: there are
    words for a voice prompt, and no sound.
    """
    seconds = report.expected_seconds
    counts = [
        plural(report.num_speakers, "speaker"),
        plural(len(report.turns), "turn"),
        f"about {seconds:.0f} s" if seconds >= 1 else "less than 1 s",
        *([] if byte_limit is None else [f"{report.num_bytes:,} of {byte_limit:,} bytes"]),
    ]
    if unused_transcript:
        report = replace(report, findings=(*report.findings, UNUSED_TRANSCRIPT))
    readings = [] if report.reading is None else [report.reading]
    return report_of(counts, readings, report)


def report_of(counts: Sequence[str], readings: Iterable[Reading], report: ScriptReport) -> str:
    """Counts, what the model reads, and the findings of one script or several."""
    undo = '<button type="button" class="undo">Undo</button>'
    findings = "".join(_finding(index, finding) for index, finding in enumerate(report.findings))
    fixes = len(report.fixes)
    fix_all = _repair_button(FIX_ALL, 0, f"Fix all ({fixes})") if fixes > 1 else ""
    return (
        f'<div class="report"><p class="counts">{escape(" · ".join(counts))}{undo}</p>'
        f"{''.join(map(read_as, readings))}"
        f'<p class="sr-only" role="status">{escape(_announcement(report.findings))}</p>'
        f'<ul class="findings" aria-label="Findings">{findings}</ul>{fix_all}</div>'
    )


def _announcement(findings: Sequence[Finding]) -> str:
    """The findings for screen readers, which read them when they change."""
    if not findings:
        return "No findings"
    return f"{plural(len(findings), 'finding')}. {' '.join(map(_describe, findings))}"


def _describe(finding: Finding) -> str:
    return f"{_LEVELS.get(finding.level, finding.level)}, {_message_with_line(finding)}"


def _message_with_line(finding: Finding) -> str:
    return f"line {finding.line}: {finding.message}" if finding.line else finding.message


def read_as(reading: Reading) -> str:
    """The script as the model reads it, with the changes marked."""
    parts = (
        f"<mark>{escape(text)}</mark>" if new else escape(text) for text, new in reading.parts()
    )
    return f'<p class="read-as"><strong>Read as</strong> {"".join(parts)}</p>'


# The code of the button that makes all repairs at once.
FIX_ALL = "fix_all"
UNUSED_TRANSCRIPT = Finding(
    "unused_transcript",
    Level.TIP,
    "The text of the voice prompt is not used, because there is no recording: add one under Voice "
    "prompt.",
)
_LEVELS = {"error": "Problem", "warning": "Warning", "tip": "Tip"}


def _finding(index: int, finding: Finding) -> str:
    button = ""
    if finding.repaired is not None:
        button = " " + _repair_button(finding.code, index, finding.repair_label or "Repair")
    return (
        f'<li class="finding {escape(finding.level)}">'
        f'<span class="level">{_LEVELS.get(finding.level, finding.level)}</span> '
        f"<span>{escape(_message_with_line(finding))}</span>{button}</li>"
    )


def _repair_button(code: str, index: int, label: str) -> str:
    return (
        f'<button type="button" class="repair" data-code="{escape(code)}" '
        f'data-index="{index}">{escape(label)}</button>'
    )


def figures_table(rows: Iterable[tuple[str, str]]) -> str:
    """Figures as a list of names with values."""
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in rows
    )
    return f'<dl class="figures" aria-label="Figures">{cells}</dl>'


def spectrogram_figure(pixels: np.ndarray | None, seconds: float = 0.0) -> str:
    """The spectrogram, or its empty frame. pixels: uint8 [height, width, 3]."""
    if pixels is None:
        return (
            '<figure class="spectrogram"><div class="frame">The spectrogram appears here.</div>'
            "<figcaption>&nbsp;</figcaption></figure>"
        )
    buffer = io.BytesIO()
    # The colours form one gradient from dark to bright, so 256 of them lose nothing visible.
    Image.fromarray(pixels).quantize(256).save(buffer, "PNG", optimize=True)
    source = base64.b64encode(buffer.getvalue()).decode("ascii")
    return (
        f'<figure class="spectrogram"><img src="data:image/png;base64,{source}" '
        f'alt="Spectrogram of the take, {seconds:.1f} seconds long: time from left '
        'to right, pitch from bottom to top, loud parts bright">'
        f"<figcaption><span>0 s</span><span>time → · pitch ↑</span>"
        f"<span>{seconds:.1f} s</span></figcaption></figure>"
    )


def heading(text: str) -> str:
    """The heading of a section of the page."""
    return f'<h2 class="section">{escape(text)}</h2>'


def header(parts: Sequence[str], notice: Notice = Notice.OFF) -> str:
    """The page's title and, beside it, the machine in a few words; below, what files begin with."""
    begin = f"<p>{escape(DESCRIPTIONS[notice])}</p>" if notice in DESCRIPTIONS else ""
    return (
        f'<header class="masthead"><div><h1>{escape(TITLE)}</h1>'
        "<p>Write a dialogue and listen to it.</p></div>"
        f'<p class="machine">{escape(" · ".join(parts))}</p></header>{begin}'
    )


def start_class(module: Path, name: str, **constants: str) -> str:
    """A script, for gradio's `js_on_load`, that makes an object of the class `name`, which `module`
    exports, from gradio's parameters and from constants.

    The module travels inside it, as a data URL. So it needs no route of the server's, and a browser
    that has kept an older version never mixes it with a newer one.
    """
    named = "".join(f", {constant}: {json.dumps(value)}" for constant, value in constants.items())
    arguments = f"{{ {_SCRIPT_PARAMETERS}{named} }}"
    return f'import("{module_url(module)}").then((module) => new module.{name}({arguments}));'
