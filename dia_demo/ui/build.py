"""The page as a whole: header, tabs, and how it is served."""

from __future__ import annotations

from functools import partial

import gradio as gr

from dia_demo.services.machine import describe_machine
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis, random_seed
from dia_demo.ui import (
    about_tab,
    api,
    compare_tab,
    form,
    generate_tab,
    machine_tab,
    markup,
    problems,
    xpu_panel,
)
from dia_demo.ui.generate_tab import ASSETS, Parts
from dia_demo.ui.handlers import Handlers
from dia_demo.ui.listening import Listening
from dia_demo.ui.live import LiveAudio
from dia_demo.ui.over import when_over
from dia_demo.ui.serving import server_options
from dia_demo.ui.theme import make_theme
from dia_demo.ui.xpu_panel import XpuHandlers

STYLES = [ASSETS / f"{name}.css" for name in ("style", "status", "earlier", "machine")]


def build_ui(synthesis: Synthesis) -> gr.Blocks:
    """The whole page over one `Synthesis`, ready to be launched with `launch_options(settings)`."""
    models = synthesis.models()
    info = synthesis.info(synthesis.settings.runtime.model)
    live = LiveAudio()

    def hear(wanted: dict) -> dict:
        return live.after(str(wanted.get("run")), int(wanted.get("from") or 0))

    with gr.Blocks(title="Dia on your CPU", analytics_enabled=False) as page:
        gr.HTML(markup.header(_machine_parts()), js_on_load=None)
        # The secret only has to be the same after a restart: it lies in the page for all to see.
        memory = gr.BrowserState(None, storage_key="dia-form-1", secret="dia-on-your-cpu")
        listening = Listening(synthesis)
        with gr.Tabs(elem_id="tabs") as tabs:
            with gr.Tab("Generate", id="generate"):
                lay_out_xpu = partial(xpu_panel.lay_out, synthesis)
                runtime = synthesis.settings.runtime
                parts = generate_tab.lay_out(models, info, runtime, hear, lay_out_xpu)
                listening.lay_out_history()
            with gr.Tab("Compare", id="compare"):
                listening.lay_out_compare()
            with gr.Tab("Machine", id="machine-tab"):
                machine = machine_tab.lay_out()
            with gr.Tab("About", id="about"):
                about_tab.lay_out(models)
        handlers = Handlers(synthesis, parts, live)
        _show_first_report(handlers, parts, info)
        wire_run(parts, handlers)
        wire_form(parts, handlers)
        chosen = [parts.fields["model"], parts.fields["precision"]]
        xpu_panel.wire(page, parts.xpu, parts.on_cpu, XpuHandlers(synthesis, parts.xpu), chosen)
        bench = machine_tab.MachineHandlers(synthesis, machine)
        machine_tab.wire(machine, parts.fields["model"], bench)
        page.unload(bench.closed)
        api.offer(parts, handlers)
        wire_memory(page, parts, handlers, memory)
        listening.wire(page, tabs, parts, handlers)
        page.unload(handlers.closed)
        # Last: it covers the events that are registered by then.
        problems.explain_errors(page)
    # Runs wait in the services' own queue, which knows their place; gradio only lets them in.
    return page.queue(max_size=64, default_concurrency_limit=None)


def launch_options(settings: Settings) -> dict:
    """How the page is served, the same at home and on a Space: nothing from outside, lean footer.

    Server name and port are left to gradio, which takes them from the environment.
    """
    return {
        "theme": make_theme(),
        "css_paths": [*STYLES, *compare_tab.STYLES, problems.STYLE],
        "head": f"<script>{problems.SCRIPT.read_text(encoding='utf-8')}</script>",
        "js": (ASSETS / "page.js").read_text(encoding="utf-8"),
        "footer_links": [],
        "run_history": False,
        "ssr_mode": False,
        "pwa": False,
        **server_options(settings),
    }


def _show_first_report(handlers: Handlers, parts: Parts, info) -> None:
    script = parts.fields["script"].value
    parts.report.value, _ = handlers.check(script, info.name, info.config.defaults.max_tokens, "")


def wire_run(parts: Parts, handlers: Handlers) -> None:
    """Generate and Stop."""
    outputs = [
        parts.generate,
        parts.stop,
        parts.status,
        parts.live,
        parts.take,
        parts.wav,
        parts.flac,
        parts.keep_seed,
        parts.take_seed,
        parts.figures,
        parts.spectrogram,
        parts.on_cpu,
        parts.fields["xpu"],
        parts.xpu.report,
        parts.fields["seed"],
    ]
    # Named, so that "generate" stays free for the endpoint that programs use.
    run = parts.generate.click(
        handlers.generate,
        parts.inputs,
        outputs,
        show_progress="hidden",
        api_name="press_generate",
        api_visibility="private",
    )
    when_over(run, handlers.ready, None, [parts.generate, parts.stop])
    parts.stop.click(handlers.stop, None, parts.stop, queue=False, api_visibility="private")


def wire_form(parts: Parts, handlers: Handlers) -> None:
    """Live remarks, repairs, seeds, and a model's own defaults."""
    fields = parts.fields
    quiet = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
    checked = [fields[name] for name in ("script", "model", "max_tokens", "voice_transcript")]
    gr.on(
        [field.change for field in checked],
        handlers.check,
        checked,
        [parts.report, fields["max_tokens"]],
        trigger_mode="always_last",
        # As typed: gradio would answer a number on its way ("", then "3", then "30") with errors.
        preprocess=False,
        **quiet,
    )
    parts.report.click(handlers.repair, checked, fields["script"], preprocess=False, **quiet)
    # `input`, not `change`: a reload that brings a model back must not reset its settings.
    gr.on(
        [fields["model"].input, parts.defaults.click],
        handlers.change_model,
        fields["model"],
        [*(fields[name] for name in form.SAMPLING), parts.model_note],
        **quiet,
    )
    parts.dice.click(lambda: str(random_seed()), None, fields["seed"], **quiet)
    parts.keep_seed.click(str, parts.take_seed, fields["seed"], **quiet)


def wire_memory(page: gr.Blocks, parts: Parts, handlers: Handlers, memory: gr.BrowserState) -> None:
    """Script and settings outlive a reload, in the browser's own storage."""
    remembered = [parts.fields[name] for name in form.REMEMBERED]
    page.load(
        handlers.restore,
        memory,
        [*remembered, parts.model_note],
        queue=False,
        show_progress="hidden",
        api_visibility="private",
    ).then(None, None, None, js="() => { window.diaRestored = true; }")
    names = ", ".join(form.REMEMBERED)
    # In the page alone: nothing is sent. Before the reload is over, defaults must not be saved.
    gr.on(
        [field.change for field in remembered],
        None,
        [memory, *remembered],
        memory,
        js=f"(old, {names}) => window.diaRestored ? {{ {names} }} : old",
        show_progress="hidden",
    )


def _machine_parts() -> list[str]:
    machine = describe_machine()
    parts = [markup.plural(machine.cores, "core"), machine.simd]
    if machine.memory_bytes:
        parts.append(f"{machine.memory_bytes / 2**30:.0f} GB")
    return [part for part in parts if part]
