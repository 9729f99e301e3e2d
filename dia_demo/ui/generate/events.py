"""The events of the Generate tab: which component calls which handler."""

from __future__ import annotations

import gradio as gr

from dia_demo.config import random_seed
from dia_demo.ui import form
from dia_demo.ui.files import connect_download
from dia_demo.ui.generate import download, expectation
from dia_demo.ui.generate.download import DownloadHandlers, sampling_fields
from dia_demo.ui.generate.expectation import ExpectationHandlers
from dia_demo.ui.generate.form_handlers import FormHandlers
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.layout import GenerateParts
from dia_demo.ui.runs import IMMEDIATE, PRIVATE, Trigger, choice_event, connect_change, connect_run
from dia_demo.ui.voices import events as voice_events
from dia_demo.ui.voices.handlers import VoiceHandlers
from dia_demo.ui.writing import script_help


def connect(
    page: gr.Blocks,
    parts: GenerateParts,
    handlers: GenerateHandlers,
    form_handlers: FormHandlers,
    saved: gr.BrowserState,
    person: gr.BrowserState,
) -> None:
    """Connect the tab's components; `saved` holds script and settings in the browser, `person` the
    key by which takes are kept."""
    _connect_generate(page, parts, handlers, person)
    _connect_parts(parts, handlers, person)
    _connect_form(parts, form_handlers)
    _connect_saved_form(page, parts, form_handlers, saved)
    expected = ExpectationHandlers(handlers.synthesis, parts.expectation)
    change_model, card = form_handlers.change_model, parts.download.card
    expectation.connect(page, parts.fields, person, parts.figures, card, expected, change_model)
    expectation.connect_candidates(
        parts.fields, person, parts.candidate_count, parts.candidates_wait, expected
    )
    sampling = sampling_fields(parts.fields)
    downloads = DownloadHandlers(handlers.synthesis, parts.download, sampling, change_model)
    download.connect(page, parts.fields, person, downloads)
    prompt = [parts.fields[name] for name in form.VOICE]
    voices = VoiceHandlers(handlers.synthesis, parts.voices, parts.keep_voice)
    voice_events.connect(page, voices, person, parts.fields["model"], parts.take_file, prompt)


def take_outputs(parts: GenerateParts) -> list[gr.blocks.Block]:
    """What shows a take."""
    return [
        parts.player,
        parts.take_file,
        parts.download_take,
        parts.keep_seed,
        parts.use_voice,
        parts.take_seed,
        parts.figures,
        parts.spectrogram,
    ]


def run_outputs(parts: GenerateParts) -> list[gr.blocks.Block]:
    """What a run changes on the page."""
    return [
        parts.generate,
        parts.make_candidates,
        parts.stop,
        parts.status,
        *take_outputs(parts),
        parts.dialogue,
        parts.candidates,
        parts.on_cpu,
        parts.fields["xpu"],
        parts.xpu.report,
        parts.fields["seed"],
    ]


def _connect_generate(
    page: gr.Blocks, parts: GenerateParts, handlers: GenerateHandlers, person: gr.BrowserState
) -> None:
    triggers = [Trigger(parts.generate, handlers.generate, [person, *parts.inputs])]
    outputs, run = run_outputs(parts), handlers.run
    connect_run(
        page,
        run,
        triggers,
        outputs,
        run.idle_of,
        [person],
        stop_inputs=[person],
        result="#take .player-play",
    )
    connect_download(
        parts.download_take,
        handlers.download,
        [parts.take_file],
        parts.downloaded,
        menu=parts.format_menu,
    )


def _connect_parts(
    parts: GenerateParts, handlers: GenerateHandlers, person: gr.BrowserState
) -> None:
    """The list of a dialogue's parts: Resume, and making a part again."""
    event = parts.dialogue.click(handlers.press_parts, person, run_outputs(parts), **PRIVATE)
    for after in (event.then, event.failure):
        after(handlers.run.idle_of, [person], handlers.run.buttons, **IMMEDIATE)


def _connect_form(parts: GenerateParts, handlers: FormHandlers) -> None:
    """Script checks, repairs, seeds, chips, and the defaults of a model."""
    fields = parts.fields
    checked = [fields[name] for name in form.CHECKED]
    connect_change(
        [field.change for field in checked],
        handlers.check,
        checked,
        [parts.report, fields["max_tokens"]],
        # The name "check" is the endpoint's.
        api_name="check_form",
        # As typed: gradio would reject an incomplete number ("", then "3", then "30").
        preprocess=False,
    )
    parts.report.click(handlers.repair, checked, parts.examples, preprocess=False, **IMMEDIATE)
    # Not `change`: a reload that restores a model must not reset its settings.
    gr.on(
        [choice_event(fields["model"]), parts.defaults.click],
        handlers.change_model,
        fields["model"],
        sampling_fields(fields),
        **IMMEDIATE,
    )
    sampling = [fields[name] for name in form.SAMPLING]
    parts.preset.input(
        handlers.choose_preset, [parts.preset, fields["model"]], sampling, **IMMEDIATE
    )
    connect_change(
        [field.change for field in (*sampling, fields["model"])],
        handlers.show_preset,
        [fields["model"], *sampling],
        [parts.preset],
        preprocess=False,
    )
    # Settings that no model has an opinion on.
    others = [fields["speed"], fields["seed"]]
    parts.defaults.click(lambda: (1.0, ""), None, others, **IMMEDIATE)
    model = fields["model"]
    connect_change([model.change], handlers.live_rate, [model], [parts.player])
    parts.dice.click(lambda: str(random_seed()), None, fields["seed"], **IMMEDIATE)
    parts.keep_seed.click(str, parts.take_seed, fields["seed"], **IMMEDIATE)
    chip_fields = [fields["seed"], fields["voice_prompt"]]
    gr.on(
        [field.change for field in chip_fields],
        None,
        chip_fields,
        parts.chips,
        js="(seed, voice) => ({ seed, voice: Boolean(voice) })",
        show_progress="hidden",
    )
    script = fields["script"]
    assert isinstance(script, gr.Textbox) and isinstance(model, gr.Dropdown)
    script_help.connect(parts.script_help, script, model, handlers.synthesis.models.values())
    _connect_prompt(parts, handlers)
    released = [fields[name] for name in ("seed", *form.VOICE)]
    parts.chips.click(handlers.release, None, released, **IMMEDIATE)


def _connect_prompt(parts: GenerateParts, handlers: FormHandlers) -> None:
    """Voice prompts: what is found in one as soon as it is there, and a take as a prompt."""
    sound, words = (parts.fields[name] for name in form.VOICE)
    read = [sound, parts.fields["model"], parts.fields["max_tokens"]]
    sound.change(handlers.hear, read, parts.prompt_report, **IMMEDIATE)
    assert isinstance(sound, gr.Audio)
    sound.upload(handlers.words, sound, words, **IMMEDIATE)
    parts.use_voice.click(handlers.use_voice, parts.take_file, [sound, words], **IMMEDIATE)


def _connect_saved_form(
    page: gr.Blocks, parts: GenerateParts, handlers: FormHandlers, saved: gr.BrowserState
) -> None:
    """Save script and settings in the browser's own storage, and restore them after a reload."""
    fields = [parts.fields[name] for name in form.REMEMBERED]
    voice = [parts.fields[name] for name in form.VOICE]
    outputs = [*fields, *voice, parts.prompt_report]
    restored = page.load(handlers.reload, saved, outputs, **IMMEDIATE)
    restored.then(None, None, None, js="() => { window.diaRestored = true; }")
    remembered = [*fields, *voice]
    names = ", ".join((*form.REMEMBERED, *form.VOICE))
    # Of the voice prompt's sound, where the server has it.
    values = names.replace("voice_prompt", "voice_prompt: voice_prompt?.path")
    # Runs in the browser, without a request. Until the form is restored, defaults are not saved.
    gr.on(
        [field.change for field in remembered],
        None,
        [saved, *remembered],
        saved,
        js=f"(old, {names}) => window.diaRestored ? {{ {values} }} : old",
        show_progress="hidden",
    )
