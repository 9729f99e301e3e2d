"""The layout of the Generate tab. Its handlers are in `handlers`, its events in `events`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from dia_demo.config import PARAMS, PRECISIONS, RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.files import ASSETS, PAGE_FILES
from dia_demo.text.pronunciations import MAX_CHARACTERS
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS
from dia_demo.ui import files, form, html
from dia_demo.ui.dialogue.layout import build_layout as build_parts
from dia_demo.ui.generate import download, expectation
from dia_demo.ui.generate.candidate_list import build_button, build_list
from dia_demo.ui.generate.download import DownloadPanel
from dia_demo.ui.generate.expectation import ExpectationPanel
from dia_demo.ui.generate.live_audio import LiveAudio
from dia_demo.ui.html import start_class
from dia_demo.ui.machine.xpu import XpuPanel
from dia_demo.ui.status import IDLE, NO_FIGURES, tokens_hint
from dia_demo.ui.voices.layout import KeepPanel, VoiceMenus, build_menus, build_panel
from dia_demo.ui.writing import script_help
from dia_demo.ui.writing.findings import SCRIPT_FILES, build_report, build_writer
from dia_demo.voices import VOICE_FIELDS

FIELD = "#script textarea"
PLAYER = (PAGE_FILES / "take" / "player.html").read_text(encoding="utf-8")

Field = gr.Audio | gr.Checkbox | gr.Dropdown | gr.Slider | gr.Textbox


@dataclass(frozen=True)
class GenerateParts:
    """The components that have events. `fields` follows `form.FIELDS`."""

    fields: dict[str, Field]
    download: DownloadPanel
    examples: gr.HTML
    script_help: gr.HTML
    chips: gr.HTML
    prompt_report: gr.HTML
    report: gr.HTML
    expectation: ExpectationPanel
    preset: gr.Radio
    dice: gr.Button
    defaults: gr.Button
    generate: gr.Button
    stop: gr.Button
    status: gr.HTML
    player: gr.HTML
    download_take: gr.Button
    format_menu: gr.HTML
    take_file: gr.State
    downloaded: gr.JSON
    keep_seed: gr.Button
    use_voice: gr.Button
    take_seed: gr.State
    figures: gr.HTML
    spectrogram: gr.HTML
    voices: VoiceMenus
    dialogue: gr.HTML
    make_candidates: gr.Button
    candidate_count: gr.Dropdown
    candidates_wait: gr.HTML
    candidates: gr.HTML
    keep_voice: KeepPanel
    on_cpu: gr.Button
    xpu: XpuPanel

    @property
    def inputs(self) -> list[Field]:
        return [self.fields[name] for name in form.FIELDS]


def load_examples() -> list[dict[str, str]]:
    """The example scripts, each with its label."""
    return json.loads((ASSETS / "examples.json").read_text(encoding="utf-8"))


def build_layout(
    models: list[ModelInfo],
    info: ModelInfo,
    runtime: RuntimeConfig,
    live: LiveAudio,
    build_xpu: Callable[[], XpuPanel],
    answer_parts: Callable[[object], dict],
    answer_candidates: Callable[[object], dict],
) -> GenerateParts:
    """The tab's components. On a phone the style sheet moves script and take above the settings."""
    with gr.Row(elem_id="generate-grid"):
        with gr.Column(elem_id="model-area", elem_classes="card"):
            model, precision = _model_part(models, info, runtime)
        with gr.Column(elem_id="download-area", elem_classes="card"):
            panel = download.build_layout()
        with gr.Column(elem_id="script-area", elem_classes="card"):
            script = _script_part(info)
        with gr.Column(elem_id="take-area", elem_classes="card"):
            gr.HTML(html.heading("Take"), js_on_load=None)
            take = _take_part(info, live, answer_parts, answer_candidates)
        with gr.Column(elem_id="settings-area", elem_classes="card"):
            gr.HTML(html.heading("Settings"), js_on_load=None)
            settings = _settings_part(info)
            preset, dice, defaults = (settings.pop(name) for name in ("preset", "dice", "defaults"))
            xpu = build_xpu()
    fields = settings | {"model": model, "precision": precision, "xpu": xpu.toggle}
    fields |= {name: script.pop(name) for name in ("script", "normalise", "pronunciations")}
    fields |= dict(zip(VOICE_FIELDS, script["voices"].menus, strict=True))
    return GenerateParts(
        fields=fields,
        download=panel,
        preset=preset,
        dice=dice,
        defaults=defaults,
        xpu=xpu,
        **script,
        **take,
    )


def _model_part(models: list[ModelInfo], info: ModelInfo, runtime: RuntimeConfig):
    model = gr.Dropdown(
        [(model.title, model.name) for model in models],
        value=info.name,
        label="Model",
        filterable=False,
        elem_id="model",
    )
    precision = gr.Dropdown(
        list(PRECISIONS),
        value=runtime.precision,
        label="Precision",
        filterable=False,
        elem_id="precision",
    )
    return model, precision


def _script_part(info: ModelInfo) -> dict[str, Any]:
    writing = script_help.build_layout(info, FIELD)
    scripts, voices = load_examples(), build_menus(info)
    script = gr.Textbox(
        value=scripts[0]["script"],
        label="Script",
        show_label=False,
        placeholder="[S1] Good morning. Did you sleep well?\n[S2] Yes, thank you.",
        lines=7,
        max_lines=14,
        max_length=MAX_SCRIPT_CHARACTERS,
        elem_id="script",
    )
    examples = build_writer(FIELD, "examples", html_template=html.example_buttons(scripts))
    normalise = gr.Checkbox(
        value=False,
        label="Write out numbers and symbols as words",
        visible=not info.profile.normalises,
        elem_id="normalise",
    )
    # Folded: most people need no list.
    with gr.Accordion("Pronunciations", open=False, elem_id="pronunciations-panel"):
        pronunciations = gr.Textbox(
            label="Words and how to say them",
            info="One per line: word = how to say it. What follows # is a comment.",
            placeholder="nginx = engine ex\nNguyen = win",
            lines=4,
            max_lines=12,
            max_length=MAX_CHARACTERS,
            elem_id="pronunciations",
        )
    generate, expected = expectation.build_layout(
        lambda: gr.Button("Generate", variant="primary", elem_id="generate")
    )
    make_candidates, candidate_count, candidates_wait = build_button()
    chips = gr.HTML(
        {}, html_template='<div class="chips"></div>',
        js_on_load=start_class(SCRIPT_FILES / "chips.js", "Chips"),
        elem_id="chips",
    )  # fmt: skip
    prompt_report = gr.HTML(elem_id="prompt-report", js_on_load=None)
    # Below the button, which therefore does not move when findings appear.
    report = build_report(FIELD, "report")
    return {
        "script": script, "normalise": normalise, "pronunciations": pronunciations,
        "examples": examples, "script_help": writing, "voices": voices, "generate": generate,
        "make_candidates": make_candidates, "candidate_count": candidate_count,
        "candidates_wait": candidates_wait,
        "expectation": expected, "chips": chips, "prompt_report": prompt_report, "report": report,
    }  # fmt: skip


def _take_part(
    info: ModelInfo,
    live_audio: LiveAudio,
    answer_parts: Callable[[object], dict],
    answer_candidates: Callable[[object], dict],
) -> dict[str, Any]:
    def hear(request: object) -> dict:
        return live_audio.answer(request)

    with gr.Row(elem_id="status-row"):
        status = gr.HTML(html.status_card(IDLE), elem_id="status", js_on_load=None)
        stop = gr.Button("Stop", elem_id="stop", interactive=False, min_width=88, scale=0)
    on_cpu = gr.Button(
        "Make this take on the CPU", variant="primary", visible=False, elem_id="on-cpu"
    )
    player = gr.HTML(
        {"rate": info.sample_rate},
        html_template=PLAYER,
        js_on_load=start_class(PAGE_FILES / "take" / "player.js", "TakePlayer"),
        server_functions=[hear],
        elem_id="take",
    )
    with gr.Row(elem_id="take-actions"):
        with gr.Row(elem_id="take-download"):
            download_take = gr.Button(
                "Download take",
                size="sm",
                interactive=False,
                min_width=110,
                elem_id="download-take",
            )
            format_menu = files.build_format_menu()
        keep_seed = gr.Button(
            "Keep this seed", size="sm", interactive=False, min_width=110, elem_id="keep-seed"
        )
        use_voice = gr.Button(
            "Use this voice", size="sm", interactive=False, min_width=110, elem_id="use-voice"
        )
    candidates = build_list(answer_candidates)
    dialogue = build_parts(answer_parts)
    keep_voice = build_panel()
    return {
        "status": status,
        "stop": stop,
        "player": player,
        "on_cpu": on_cpu,
        "download_take": download_take,
        "format_menu": format_menu,
        "take_file": gr.State(None),
        "downloaded": gr.JSON(visible=False),
        "keep_seed": keep_seed,
        "use_voice": use_voice,
        "candidates": candidates,
        "dialogue": dialogue,
        "keep_voice": keep_voice,
        "take_seed": gr.State(None),
        "figures": gr.HTML(html.figures_table(NO_FIGURES), elem_id="figures", js_on_load=None),
        "spectrogram": gr.HTML(html.spectrogram_figure(None), js_on_load=None),
    }


def _settings_part(info: ModelInfo) -> dict[str, Any]:
    advanced = [name for name in form.SAMPLING if PARAMS[name].advanced]
    menu = form.preset_menu(info, form.defaults_of(info))
    parts: dict[str, Any] = {"preset": gr.Radio(**menu, label="Preset", elem_id="preset")}
    parts |= {name: _slider(info, name) for name in form.SAMPLING if name not in advanced}
    with gr.Accordion("More", open=False, elem_id="more"):
        parts |= {name: _slider(info, name) for name in advanced}
        with gr.Row(elem_id="seed-row"):
            # A text field: gradio's number field changes an empty value to 0.
            parts["seed"] = gr.Textbox(
                label="Seed",
                placeholder="blank or -1 for a random one",
                max_lines=1,
                max_length=form.SEED_CHARACTERS,
                elem_id="seed",
            )
            parts["dice"] = gr.Button("Random seed", size="sm", scale=0, elem_id="dice")
        parts["speed"] = gr.Slider(
            0.5,
            2.0,
            1.0,
            step=0.05,
            label="Speed",
            info="Without changing the pitch; 1 is the original speed.",
            buttons=[],
        )
        parts[form.IN_PARTS] = gr.Checkbox(
            True,
            label="Make long scripts in parts",
            info="Each is checked, made again if it has a fault, and joined with the others.",
            elem_id="in-parts",
        )
        parts["defaults"] = gr.Button(
            "Reset to the model's defaults", size="sm", elem_id="defaults"
        )
    with gr.Accordion("Voice prompt", open=False, elem_id="voice"):
        parts["voice_prompt"] = gr.Audio(
            label="Voice prompt",
            sources=["upload", "microphone"],
            type="filepath",
            buttons=[],
            elem_id="voice-prompt",
        )
        parts["voice_transcript"] = gr.Textbox(
            label="Text of the voice prompt",
            info="The exact words, including tags. 5 to 10 s of clear speech work best.",
            placeholder="[S1] The words of the recording.",
            lines=2,
            max_length=MAX_SCRIPT_CHARACTERS,
            elem_id="transcript",
        )
    return parts


def slider_info(info: ModelInfo, name: str, value: float | None = None) -> str:
    """The help of a slider: what it does and what is useful with this model.

    value: of the slider, None for the model's default.
    """
    if name == "max_tokens":
        count = int(info.config.defaults.max_tokens if value is None else value)
        return f"At most {tokens_hint(count, info.seconds_of(count))}."
    hint = info.profile.hints.get(name)
    return f"{PARAMS[name].help} {hint}" if hint else PARAMS[name].help


def _slider(info: ModelInfo, name: str) -> gr.Slider:
    spec, (low, high) = PARAMS[name], form.slider_ends(info)[name]
    return gr.Slider(
        low,
        high,
        form.defaults_of(info)[name],
        step=spec.step,
        label=spec.label,
        info=slider_info(info, name),
        elem_id=name,
        visible=name in info.config.params,
        # Without gradio's own reset button, which knows only the first model's defaults.
        buttons=[],
    )
