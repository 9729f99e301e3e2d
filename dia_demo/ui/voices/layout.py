"""The menus of the speakers' voices, and the panel of kept voices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import gradio as gr

from dia_demo.engine.family import ModelInfo
from dia_demo.prompt.voice_file import LONGEST_NAME, LONGEST_TRANSCRIPT, SUFFIX, VoiceFile
from dia_demo.services.wording import duration

BY_SEED = "By the seed"
Choices = list[tuple[str, str]]


@dataclass(frozen=True)
class VoiceMenus:
    """The voices of S1 and S2, with the button beside each, and what plays a sample."""

    menus: tuple[gr.Dropdown, gr.Dropdown]
    hear: tuple[gr.Button, gr.Button]
    sample: gr.HTML


@dataclass(frozen=True)
class KeepPanel:
    """The components that keep, exchange and remove voices."""

    name: gr.Textbox
    start: gr.Textbox
    end: gr.Textbox
    words: gr.Textbox
    consent: gr.Checkbox
    keep_take: gr.Button
    keep_prompt: gr.Button
    file: gr.UploadButton
    kept: gr.Dropdown
    new_name: gr.Textbox
    rename: gr.Button
    export: gr.Button
    exported: gr.JSON
    remove: gr.Button
    message: gr.HTML


def choices_of(
    info: ModelInfo,
    kept: Sequence[VoiceFile],
    cost: Callable[[ModelInfo, int], float | None] = lambda info, frames: None,
) -> Choices:
    """The entries of a menu: the seed's, the kept voices, and the model's own.

    cost: the seconds that a voice of so many frames adds to the first take (see
    `MachineSpeed.prompt_seconds`).
    """
    own = () if info.config.voices is None else info.config.voices.voices
    return [
        (BY_SEED, ""),
        *((_kept_text(voice, cost(info, len(voice.codes))), voice.name) for voice in kept),
        *((voice.name, voice.name) for voice in own),
    ]


def _kept_text(voice: VoiceFile, cost: float | None) -> str:
    """An entry with what the voice costs, if that is noticeable."""
    added = "" if cost is None or cost < 1 else f", adds about {duration(cost)}"
    return f"{voice.name} ({voice.seconds:.0f} s, kept{added})"


def build_menus(info: ModelInfo) -> VoiceMenus:
    """A menu for each speaker, with a button that plays the voice."""
    menus, buttons = [], []
    with gr.Row(elem_id="voices"):
        for speaker in (1, 2):
            with gr.Column(elem_classes="voice", min_width=120):
                menus.append(
                    gr.Dropdown(
                        choices_of(info, ()),
                        value="",
                        label=f"Voice of S{speaker}",
                        filterable=False,
                        min_width=120,
                        elem_id=f"voice-s{speaker}",
                    )
                )
                buttons.append(
                    gr.Button("Hear", size="sm", min_width=48, scale=0, elem_id=f"hear-s{speaker}")
                )
    sample = gr.HTML(elem_id="voice-sample", js_on_load=None)
    return VoiceMenus((menus[0], menus[1]), (buttons[0], buttons[1]), sample)


def build_panel() -> KeepPanel:
    """The folded panel in which voices are kept, renamed, exchanged and removed."""
    with gr.Accordion("Keep a voice", open=False, elem_id="kept-voices"):
        name = gr.Textbox(
            value="",
            label="Name",
            placeholder="Anna",
            max_lines=1,
            max_length=LONGEST_NAME,
            elem_id="keep-name",
        )
        with gr.Accordion("Only a part of it", open=False):
            with gr.Row():
                start, end = (
                    gr.Textbox("", label=f"{word}, in seconds", max_lines=1, max_length=12)
                    for word in ("From", "To")
                )
            words = gr.Textbox(
                value="",
                label="The words of that part",
                max_lines=3,
                max_length=LONGEST_TRANSCRIPT,
                elem_id="keep-words",
            )
        keep_take = gr.Button("Keep the voices of this take", size="sm", elem_id="keep-take")
        consent = gr.Checkbox(
            label="The person heard in the voice prompt agrees that their voice is kept",
            elem_id="keep-consent",
        )
        keep_prompt = gr.Button(
            "Keep the voice of the voice prompt", size="sm", elem_id="keep-prompt"
        )
        file = gr.UploadButton(
            "Add a voice file", size="sm", file_types=[f".{SUFFIX.rsplit('.', 1)[1]}"],
            elem_id="add-voice",
        )  # fmt: skip
        kept = gr.Dropdown(
            [], label="Kept voices", filterable=False, visible=False, elem_id="kept-voice"
        )
        with gr.Row():
            new_name = gr.Textbox(
                value="", label="New name", max_lines=1, max_length=LONGEST_NAME, visible=False,
                elem_id="new-name",
            )  # fmt: skip
            rename = gr.Button(
                "Rename", size="sm", visible="hidden", scale=0, elem_id="rename-voice"
            )
        with gr.Row():
            export = gr.Button(
                "Download its file", size="sm", visible="hidden", elem_id="export-voice"
            )
            remove = gr.Button("Remove", size="sm", visible="hidden", elem_id="remove-voice")
        exported = gr.JSON(visible=False)
        message = gr.HTML(elem_id="voice-message", js_on_load=None)
    return KeepPanel(
        name, start, end, words, consent, keep_take, keep_prompt, file, kept, new_name, rename,
        export, exported, remove, message,
    )  # fmt: skip
