"""The layout of the Compare tab. Its handlers are in `handlers`, its events in `events`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from dia_demo.config import PRECISIONS, RuntimeConfig
from dia_demo.files import ASSETS, PAGE_FILES
from dia_demo.services.models import ModelInfo
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui import html
from dia_demo.ui.compare.form import (
    FIELDS,
    KINDS,
    MAX_SCRIPTS_CHARACTERS,
    SIDE_FIELDS,
    default_side,
)
from dia_demo.ui.compare.room_api import RoomApi
from dia_demo.ui.generate.layout import SEED_CHARACTERS
from dia_demo.ui.scripts import start_class
from dia_demo.ui.status import Status

VALUES_CHARACTERS = 200
IDLE = Status("idle", "Ready", "Press Make the pairs.", 0.0)
STYLES = (PAGE_FILES / "lab.css", PAGE_FILES / "result.css")
ROOM = '<div class="lab-room" tabindex="-1" aria-label="Listening room"></div>'


Field = gr.Checkbox | gr.Dropdown | gr.Number | gr.Radio | gr.Slider | gr.Textbox


@dataclass(frozen=True)
class CompareParts:
    """The components that have events. `fields` follows `form.FIELDS`."""

    fields: dict[str, Field]
    setup: gr.Accordion
    copy: gr.Button
    second: list[Field]
    round: gr.Row
    note: gr.HTML
    make: gr.Button
    stop: gr.Button
    resume: gr.Button
    status: gr.HTML
    lab: gr.HTML
    kept: gr.Dropdown
    show: gr.Button
    again: gr.Button
    delete: gr.Button
    upload: gr.UploadButton
    zip: gr.Button
    zip_file: gr.JSON

    @property
    def inputs(self) -> list[Field]:
        return [self.fields[name] for name in FIELDS]


def build_layout(
    synthesis: Synthesis, models: list[ModelInfo], runtime: RuntimeConfig, room_api: RoomApi
) -> CompareParts:
    """The tab's components in the order of use: set up, listen, result, stored comparisons."""

    def ask(request: dict) -> dict:
        return room_api.ask(request)

    with gr.Column(elem_id="compare"):
        with gr.Column(elem_classes="card"):
            with gr.Accordion(
                "1 · Set up", open=True, elem_id="lab-setup", elem_classes="section"
            ) as setup:
                parts = _setup_part(synthesis, models, runtime)
            parts |= {"setup": setup} | _run_part()
        with gr.Column(elem_classes="card"):
            room = gr.HTML(
                {},
                html_template=ROOM,
                js_on_load=start_class(PAGE_FILES / "lab" / "room.js", "Room"),
                server_functions=[ask],
                elem_id="lab",
            )
        with gr.Column(elem_classes="card"):
            with gr.Accordion(
                "Saved comparisons", open=True, elem_id="lab-keep", elem_classes="section"
            ):
                parts |= _stored_part()
    return CompareParts(lab=room, **parts)


def _setup_part(
    synthesis: Synthesis, models: list[ModelInfo], runtime: RuntimeConfig
) -> dict[str, Any]:
    fields: dict[str, Field] = {
        "kind": gr.Radio(KINDS, value="preference", label="Kind of comparison", elem_id="lab-kind"),
        "scripts": gr.Textbox(
            value=(ASSETS / "scripts.txt").read_text(encoding="utf-8").strip(),
            label="What both sides say",
            info="Separate scripts by a line of ---. Each script counts once in the result.",
            lines=4,
            max_lines=10,
            max_length=MAX_SCRIPTS_CHARACTERS,
            elem_id="lab-scripts",
        ),
    }
    copy = gr.Button("Copy the settings of the Generate tab", size="sm", elem_id="lab-copy")
    with gr.Row(visible=False) as varied:
        fields["vary"] = gr.Dropdown(
            [(label, name) for name, (label, step) in SIDE_FIELDS.items() if step],
            value="temperature",
            label="Setting to vary",
            filterable=False,
        )
        fields["values"] = gr.Textbox(
            value="0.8, 1.2, 1.6",
            label="Values",
            info="2 to 6 values, separated by commas.",
            max_length=VALUES_CHARACTERS,
        )
    values = default_side(synthesis, runtime.model, runtime.precision)
    second: list[Field] = []
    with gr.Column(elem_id="lab-sides"):
        for name in SIDE_FIELDS:
            with gr.Row(elem_classes=["lab-field", f"field-{name}"]):
                fields[f"a_{name}"] = _field(name, "A", values[name], models)
                fields[f"b_{name}"] = _field(name, "B", values[name], models)
                second.append(fields[f"b_{name}"])
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
    fields["use_voice"] = gr.Checkbox(
        label="Use the voice prompt of the Generate tab", value=False, elem_id="lab-voice"
    )
    note = gr.HTML(elem_id="lab-plan", js_on_load=None)
    return {"fields": fields, "copy": copy, "second": second, "round": varied, "note": note}


def _run_part() -> dict[str, Any]:
    with gr.Row(elem_id="lab-buttons"):
        make = gr.Button("Make the pairs", variant="primary", elem_id="lab-make")
        stop = gr.Button("Stop making", interactive=False, elem_id="lab-stop")
        resume = gr.Button("Resume", interactive=False, elem_id="lab-resume")
    status = gr.HTML(html.status_card(IDLE), elem_id="lab-status", js_on_load=None)
    return {"make": make, "stop": stop, "resume": resume, "status": status}


def _field(name: str, side: str, value: Any, models: list[ModelInfo]) -> Field:
    label, step = SIDE_FIELDS[name]
    common: dict[str, Any] = dict(value=value, label=f"{label}, {side}", min_width=120)
    if name == "model":
        choices = [(info.title, info.name) for info in models]
        return gr.Dropdown(choices, filterable=False, **common)
    if name == "precision":
        return gr.Dropdown(list(PRECISIONS), filterable=False, **common)
    return gr.Number(
        step=step or 1, elem_id=f"lab-{side.lower()}-{name.replace('_', '-')}", **common
    )


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
        zipped = gr.Button(
            "Download zip", size="sm", min_width=90, interactive=False, elem_id="lab-zip"
        )
    gr.HTML(
        '<p class="small">Only this browser can open them. You can download the zip after the '
        "reveal, because it contains the answers.</p>",
        js_on_load=None,
    )
    return {
        "kept": comparisons, "show": show, "again": again, "delete": delete, "upload": upload,
        "zip": zipped, "zip_file": gr.JSON(visible=False),
    }  # fmt: skip
