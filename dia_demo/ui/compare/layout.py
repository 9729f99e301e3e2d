"""The layout of the Compare tab. Its handlers are in `handlers`, its events in `events`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from dia_demo.engine.family import ModelInfo
from dia_demo.files import ASSETS, PAGE_FILES
from dia_demo.services.listening.verdict.planning import TIES
from dia_demo.services.listening.votes.table import EXPLANATION
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui import files, html
from dia_demo.ui.compare.form.fields import (
    FIELDS,
    KINDS,
    MAX_SCRIPTS_CHARACTERS,
    MENUS,
    MOST_TIES,
    SIDE_FIELDS,
    default_side,
)
from dia_demo.ui.compare.form.question import (
    WORDS,
    all_choices,
    default_values,
    menu_choices,
    round_values,
)
from dia_demo.ui.compare.room_api import RoomApi
from dia_demo.ui.form import SEED_CHARACTERS
from dia_demo.ui.html import start_class
from dia_demo.ui.status import Status
from dia_demo.ui.writing.findings import build_report, build_writer

VALUES_CHARACTERS = 200
DIFFERS = "temperature"
IDLE = Status("idle", "Ready", "Press Generate pairs.", 0.0)
STYLES = (PAGE_FILES / "lab.css", PAGE_FILES / "result.css")
SCRIPTS_FIELD = "#lab-scripts textarea"
ROOM = '<div class="lab-room" tabindex="-1" role="region" aria-label="Listening room"></div>'


Field = gr.Checkbox | gr.Dropdown | gr.Number | gr.Radio | gr.Slider | gr.Textbox


@dataclass(frozen=True)
class CompareParts:
    """The components that have events. `fields` follows `form.FIELDS`.

    before, between, after: the words of the question. rows: the fields of both
    sides by setting. …_problem: beside the buttons, why one did not do its work.
    """

    fields: dict[str, Field]
    setup: gr.Accordion
    before: gr.HTML
    between: gr.HTML
    after: gr.HTML
    rows: dict[str, gr.Row]
    copy: gr.Button
    report: gr.HTML
    writer: gr.HTML
    settled: gr.Number
    note: gr.HTML
    make: gr.Button
    make_problem: gr.HTML
    stop: gr.Button
    resume: gr.Button
    status: gr.HTML
    lab: gr.HTML
    downloads: gr.Column
    kept: gr.Dropdown
    show: gr.Button
    again: gr.Button
    delete: gr.Button
    upload: gr.UploadButton
    zip: gr.Button
    csv: gr.Button
    audio: gr.Button
    format_menu: gr.HTML
    download_problem: gr.HTML
    kept_problem: gr.HTML
    file: gr.JSON

    @property
    def inputs(self) -> list[Field]:
        return [self.fields[name] for name in FIELDS]


def build_layout(synthesis: Synthesis, models: list[ModelInfo], room_api: RoomApi) -> CompareParts:
    """The tab's components in the order of use: set up, listen, result, stored comparisons."""

    def ask(request: dict) -> dict:
        return room_api.ask(request)

    with gr.Column(elem_id="compare"):
        with gr.Column(elem_classes="card"):
            with gr.Accordion(
                "1 · Set up", open=True, elem_id="lab-setup", elem_classes="section"
            ) as setup:
                runtime = synthesis.settings.runtime
                side = default_side(synthesis, runtime.model, runtime.precision)
                parts = _question_part(side, models)
                parts["note"] = gr.HTML(elem_id="lab-plan", js_on_load=None)
                parts["make"] = gr.Button("Generate pairs", variant="primary", elem_id="lab-make")
                parts["make_problem"] = gr.HTML(elem_id="lab-make-problem", js_on_load=None)
                with gr.Accordion(
                    "Scripts, seeds and other settings", open=False, elem_id="lab-more"
                ):
                    more = _more_part(side, models)
            parts |= more | {"fields": parts["fields"] | more["fields"], "setup": setup}
            parts |= _run_part()
        with gr.Column(elem_classes="card"):
            room = gr.HTML(
                {},
                html_template=ROOM,
                js_on_load=start_class(PAGE_FILES / "lab" / "room.js", "Room"),
                server_functions=[ask],
                elem_id="lab",
            )
            parts |= _downloads_part()
        with gr.Column(elem_classes="card"):
            with gr.Accordion(
                "Saved comparisons", open=True, elem_id="lab-keep", elem_classes="section"
            ):
                parts |= _stored_part()
    return CompareParts(lab=room, **parts)


def _question_part(side: dict, models: list[ModelInfo]) -> dict[str, Any]:
    """The question: what differs, and its two values."""
    first, second = default_values(DIFFERS, side, models)
    before, between, after = WORDS["preference"]
    bare: dict[str, Any] = dict(show_label=False, container=False)
    wide = bare | {"elem_classes": ["question-field"]}
    number = bare | {
        "elem_classes": ["question-field", "question-number"],
        "step": SIDE_FIELDS[DIFFERS][1],
    }
    # Its choices are those of one setting once that is in question.
    menu = wide | {"choices": all_choices(models), "filterable": False, "visible": False}
    model, other = default_values("model", side, models)
    with gr.Row(elem_id="lab-question"):
        parts: dict[str, Any] = {"before": gr.HTML(word(before), js_on_load=None)}
        differs = gr.Dropdown(
            [(label, name) for name, (label, _) in SIDE_FIELDS.items()],
            value=DIFFERS,
            label="What differs",
            filterable=False,
            elem_id="lab-differs",
            **wide,
        )
        fields = {
            "differs": differs,
            "first": gr.Number(first, label="First value", elem_id="lab-first", **number),
            "first_choice": gr.Dropdown(
                value=model, label="First choice", elem_id="lab-first-choice", **menu
            ),
        }
        parts["between"] = gr.HTML(word(between), js_on_load=None)
        fields |= {
            "second": gr.Number(second, label="Second value", elem_id="lab-second", **number),
            "second_choice": gr.Dropdown(
                label="Second choice", elem_id="lab-second-choice", **menu
            ),
            "values": gr.Textbox(
                round_values(DIFFERS, first, second),
                label="Values, separated by commas",
                max_lines=1,
                max_length=VALUES_CHARACTERS,
                visible=False,
                elem_id="lab-values",
                **wide,
            ),
        }
        parts["after"] = gr.HTML(word(after), js_on_load=None)
    return parts | {"fields": fields}


def _more_part(side: dict, models: list[ModelInfo]) -> dict[str, Any]:
    """Everything else: scripts, seeds, the kind of test, the other settings of both sides."""
    fields: dict[str, Field] = {
        "scripts": gr.Textbox(
            value=(ASSETS / "scripts.txt").read_text(encoding="utf-8").strip(),
            label="What both sides say",
            info="Separate scripts by a line of ---. Each script counts once in the result.",
            lines=4,
            max_lines=10,
            max_length=MAX_SCRIPTS_CHARACTERS,
            elem_id="lab-scripts",
        )
    }
    report = build_report(SCRIPTS_FIELD, "lab-report")
    writer = build_writer(SCRIPTS_FIELD, "lab-writer", visible="hidden")
    # Changes when a choice has changed other fields.
    settled = gr.Number(visible="hidden", elem_id="lab-settled")
    fields |= _seeds_row()
    fields["kind"] = gr.Radio(
        KINDS, value="preference", label="Kind of comparison", elem_id="lab-kind"
    )
    fields["use_voice"] = gr.Checkbox(
        label="Use the voice prompt of the Generate tab", value=False, elem_id="lab-voice"
    )
    fields["use_pronunciations"] = gr.Checkbox(
        label="Use the pronunciations of the Generate tab",
        value=True,
        elem_id="lab-pronunciations",
    )
    copy = gr.Button("Copy the settings of the Generate tab", size="sm", elem_id="lab-copy")
    fields["separate"] = gr.Checkbox(
        label="Let more than one setting differ", value=False, elem_id="lab-separate"
    )
    rows: dict[str, gr.Row] = {}
    with gr.Column(elem_id="lab-sides"):
        for name in SIDE_FIELDS:
            with gr.Row(elem_classes="lab-field", visible=name != DIFFERS) as rows[name]:
                fields[f"a_{name}"] = _field(name, "a", side[name], models)
                fields[f"b_{name}"] = _field(name, "b", side[name], models)
    return {
        "fields": fields, "report": report, "writer": writer, "settled": settled, "copy": copy,
        "rows": rows,
    }  # fmt: skip


def _seeds_row() -> dict[str, Field]:
    """How often each script is heard, and the share of answers that will decide nothing."""
    fields: dict[str, Field] = {}
    with gr.Row():
        fields["seeds"] = gr.Slider(
            1, 24, 1, step=1, label="Seeds for each script", elem_id="lab-seeds"
        )
        # Not a number field: gradio shows a blank one as 0.
        fields["first_seed"] = gr.Textbox(
            label="First seed",
            info="Leave blank for a random one.",
            placeholder="random",
            max_lines=1,
            max_length=SEED_CHARACTERS,
            elem_id="lab-first-seed",
        )
        fields["ties"] = gr.Slider(
            0,
            MOST_TIES,
            100 * TIES,
            step=5,
            label="“No difference” expected (%)",
            info="Used only to estimate what the test can detect.",
            elem_id="lab-ties",
        )
    return fields


def word(text: str) -> str:
    """A word of the question."""
    return f"<span>{text}</span>"


def _run_part() -> dict[str, Any]:
    buttons: dict[str, Any] = dict(interactive=False, min_width=128, scale=0)
    with gr.Row(elem_id="lab-status-row"):
        status = gr.HTML(html.status_card(IDLE), elem_id="lab-status", js_on_load=None)
        stop = gr.Button("Stop generating", elem_id="lab-stop", **buttons)
        resume = gr.Button("Resume", elem_id="lab-resume", **buttons)
    return {"stop": stop, "resume": resume, "status": status}


def _field(name: str, side: str, value: Any, models: list[ModelInfo]) -> Field:
    label, step = SIDE_FIELDS[name]
    if side == "b":
        label = f"{label}, second side"
    common: dict[str, Any] = dict(
        value=value,
        label=label,
        min_width=120,
        visible=side == "a",
        elem_id=f"lab-{side}-{name.replace('_', '-')}",
    )
    if name in MENUS:
        return gr.Dropdown(menu_choices(name, models), filterable=False, **common)
    return gr.Number(step=step or 1, **common)


def _downloads_part() -> dict[str, Any]:
    """What can be downloaded once nothing is blind."""
    with gr.Column(visible=False, elem_id="lab-downloads") as downloads:
        with gr.Row(elem_id="lab-download-buttons"):
            table = gr.Button("Download CSV", size="sm", min_width=90, elem_id="lab-csv")
            zipped = gr.Button("Download zip", size="sm", min_width=90, elem_id="lab-zip")
            takes = gr.Button("Download audio", size="sm", min_width=90, elem_id="lab-audio")
            menu = files.build_format_menu()
        problem = gr.HTML(elem_id="lab-download-problem", js_on_load=None)
        gr.HTML(
            '<p class="small">The zip contains everything and opens on any copy of this page. The '
            "CSV has one row per pair. The audio is what you heard, a file for each side with its "
            "settings inside.</p><details><summary>The columns of the CSV</summary>"
            f'<p class="small">{EXPLANATION}.</p></details>',
            js_on_load=None,
        )
    return {
        "downloads": downloads, "csv": table, "zip": zipped, "audio": takes, "format_menu": menu,
        "file": gr.JSON(visible=False), "download_problem": problem,
    }  # fmt: skip


def _stored_part() -> dict[str, Any]:
    comparisons = gr.Dropdown(
        [],
        label="Your comparisons on this machine",
        filterable=False,
        interactive=True,
        elem_id="lab-kept",
    )
    with gr.Row(elem_id="lab-keep-buttons"):
        show = gr.Button("Open", size="sm", min_width=90, elem_id="lab-open")
        again = gr.Button("Repeat its plan", size="sm", min_width=90, elem_id="lab-again")
        delete = gr.Button("Delete", size="sm", min_width=90, elem_id="lab-delete")
        upload = gr.UploadButton(
            "Open a zip", file_types=[".zip"], size="sm", min_width=90, elem_id="lab-upload"
        )
    problem = gr.HTML(elem_id="lab-kept-problem", js_on_load=None)
    gr.HTML(
        '<p class="small">Only this browser can open them. Each can be downloaded as a zip after '
        "the reveal, because the zip contains the answers.</p>",
        js_on_load=start_class(PAGE_FILES / "lab" / "confirm.js", "Confirm"),
    )
    return {
        "kept": comparisons, "show": show, "again": again, "delete": delete, "upload": upload,
        "kept_problem": problem,
    }  # fmt: skip
