"""The layout of tests with many listeners on the Compare tab: a card that is closed at first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from dia_demo.files import PAGE_FILES
from dia_demo.services.listening.owner.options import CONSENT, RATERS
from dia_demo.services.listening.panel.designs import Design
from dia_demo.services.listening.panel.plan import MAX_RATERS, GoalKind, LookKind
from dia_demo.ui.html import start_class
from dia_demo.ui.panels.fields import DESIGNS, FIELDS, GOALS, LOOKS

STYLE = PAGE_FILES / "panels.css"
WHAT = (
    "Let many people judge, by a link or from a folder. Everything is fixed before the first vote: "
    "the design, the number of listeners, what is to be shown. The link opens this one test and "
    "nothing else."
)
Field = gr.Checkbox | gr.Dropdown | gr.Number | gr.Textbox


@dataclass(frozen=True)
class PanelParts:
    """The components that have events. fields: by the names of FIELDS. clips: uploads that are
    compared. …_problem: beside the buttons, why one did not do its work."""

    fields: dict[str, Field]
    note: gr.HTML
    create: gr.Button
    clips: gr.UploadButton
    create_problem: gr.HTML
    tests: gr.Dropdown
    state: gr.HTML
    refresh: gr.Button
    close: gr.Button
    reveal: gr.Button
    offline: gr.Button
    results: gr.UploadButton
    delete: gr.Button
    rater: gr.Dropdown
    reason: gr.Textbox
    exclude: gr.Button
    report: gr.Button
    table: gr.Button
    plan: gr.Button
    problem: gr.HTML
    file: gr.JSON

    @property
    def inputs(self) -> list[Field]:
        return [self.fields[name] for name in FIELDS]


def build_layout() -> PanelParts:
    """The card: a new test, then those that exist."""
    with gr.Column(elem_classes="card"):
        with gr.Accordion(
            "Many listeners", open=False, elem_id="lab-panel", elem_classes="section"
        ):
            gr.HTML(f'<p class="small">{WHAT}</p>', js_on_load=None)
            parts = _new_part()
            parts |= _tests_part()
    return PanelParts(**parts)


def _new_part() -> dict[str, Any]:
    menu: dict[str, Any] = dict(filterable=False, interactive=True, min_width=200)
    fields: dict[str, Field] = {}
    with gr.Row():
        fields["design"] = gr.Dropdown(
            DESIGNS, value=Design.PREFERENCE, label="Design", elem_id="lab-panel-design", **menu
        )
        fields["goal"] = gr.Dropdown(
            GOALS, value=GoalKind.SUPERIORITY, label="Question", elem_id="lab-panel-goal", **menu
        )
    with gr.Row():
        fields["raters"] = _number("Listeners", RATERS, "raters", maximum=MAX_RATERS)
        fields["trials"] = _number("Screens each", 0, "trials", "0: all of them.")
        fields["margin"] = _number(
            "Margin",
            0,
            "margin",
            "How much worse is still as good. 0: what is usual.",
            step=None,
            visible=False,
        )
    with gr.Accordion("Session, early looks and words", open=False, elem_id="lab-panel-more"):
        fields |= _more_part(menu)
    note = gr.HTML(elem_id="lab-panel-note", js_on_load=None)
    with gr.Row(elem_id="lab-panel-start"):
        create = gr.Button(
            "Make a test of the open pairs", variant="primary", elem_id="lab-panel-create"
        )
        clips = gr.UploadButton(
            "Make a test of a zip of clips", file_types=[".zip"], elem_id="lab-panel-clips"
        )
    problem = gr.HTML(elem_id="lab-panel-create-problem", js_on_load=None)
    return {
        "fields": fields, "note": note, "create": create, "clips": clips,
        "create_problem": problem,
    }  # fmt: skip


def _number(label: str, value: float, name: str, info: str | None = None, **more: Any) -> gr.Number:
    options: dict[str, Any] = {"minimum": 0, "step": 1, "min_width": 110} | more
    if options["step"] is None:
        options["step"] = 0.01
    return gr.Number(value, label=label, info=info, elem_id=f"lab-panel-{name}", **options)


def _more_part(menu: dict[str, Any]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    fields["look_kind"] = gr.Dropdown(
        LOOKS, value=LookKind.NONE, label="When the result may be seen",
        elem_id="lab-panel-looks", **menu,
    )  # fmt: skip
    fields["looks"] = _number(
        "Looks", 3, "look-count", "2 to 10, equally spaced; the last is at the end.", visible=False
    )
    with gr.Row():
        fields["headphone_check"] = gr.Checkbox(
            False,
            label="Headphone check (who fails it is left out)",
            elem_id="lab-panel-headphones",
        )
        fields["attributes"] = gr.Checkbox(
            False, label="Ask what was heard: voice, pace, words, noise",
            elem_id="lab-panel-attributes",
        )  # fmt: skip
        fields["reference"] = gr.Checkbox(
            False, label="MUSHRA: the first setting is an open reference",
            elem_id="lab-panel-reference",
        )  # fmt: skip
    with gr.Row():
        fields["training"] = _number("Training screens", 2, "training")
        fields["catch_percent"] = _number("Catch trials (%)", 10, "catch")
        fields["repeats"] = _number("Hidden repeats", 1, "repeats")
        fields["null_pairs"] = _number("Pairs without a difference", 1, "null")
        fields["break_every"] = _number("A break every", 20, "break", "Screens; 0: none.")
    fields["title"] = _text("Title, which listeners see", "", "title", 200)
    fields["consent"] = _text("Consent, which listeners see first", CONSENT, "consent", 4000, 3)
    with gr.Row():
        fields["completion_code"] = _text("Completion code", "", "code", 100)
        fields["completion_url"] = _text("Address after the test", "", "url", 1000)
    return fields


def _text(label: str, value: str, name: str, longest: int, lines: int = 1) -> gr.Textbox:
    return gr.Textbox(
        value, label=label, max_length=longest, lines=lines, max_lines=max(lines, 1),
        elem_id=f"lab-panel-{name}",
    )  # fmt: skip


def _tests_part() -> dict[str, Any]:
    small: dict[str, Any] = dict(size="sm", min_width=90)
    tests = gr.Dropdown(
        [], label="Your tests with many listeners", filterable=False, interactive=True,
        elem_id="lab-panel-tests",
    )  # fmt: skip
    state = gr.HTML(elem_id="lab-panel-state", js_on_load=None)
    parts: dict[str, Any] = {"tests": tests, "state": state}
    with gr.Row(elem_id="lab-panel-buttons"):
        parts["refresh"] = gr.Button("Refresh", elem_id="lab-panel-refresh", **small)
        parts["close"] = gr.Button("Close or reopen", elem_id="lab-panel-close", **small)
        parts["offline"] = gr.Button("Download test", elem_id="lab-panel-offline", **small)
        parts["results"] = gr.UploadButton(
            "Add results", file_types=[".json"], elem_id="lab-panel-results", **small
        )
        parts["reveal"] = gr.Button("End and reveal", elem_id="lab-panel-reveal", **small)
        parts["delete"] = gr.Button("Delete", elem_id="lab-panel-delete", **small)
    with gr.Accordion("Leave a listener out", open=False, elem_id="lab-panel-leave"):
        with gr.Row():
            parts["rater"] = gr.Dropdown(
                [], label="Listener", filterable=False, interactive=True, elem_id="lab-panel-rater"
            )
            parts["reason"] = gr.Textbox(
                label="Reason, which is recorded; blank counts them again", max_lines=1,
                max_length=500, elem_id="lab-panel-reason",
            )  # fmt: skip
        parts["exclude"] = gr.Button("Save", elem_id="lab-panel-exclude", **small)
    with gr.Row(elem_id="lab-panel-downloads"):
        parts["report"] = gr.Button("Download report", elem_id="lab-panel-report", **small)
        parts["table"] = gr.Button("Download votes (CSV)", elem_id="lab-panel-csv", **small)
        parts["plan"] = gr.Button("Download plan (JSON)", elem_id="lab-panel-json", **small)
    parts["problem"] = gr.HTML(elem_id="lab-panel-problem", js_on_load=None)
    gr.HTML(
        '<p class="small">Only this browser can manage them. Votes and report can be '
        "downloaded after the reveal, because they contain the answers.</p>",
        js_on_load=start_class(PAGE_FILES / "lab" / "confirm.js", "Confirm"),
    )
    return parts | {"file": gr.JSON(visible=False)}
