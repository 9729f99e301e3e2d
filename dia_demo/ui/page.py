"""The page as a whole: header, tabs, and how it is served."""

from __future__ import annotations

from functools import partial

import gradio as gr

from dia_demo.files import PAGE_FILES
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis, random_seed
from dia_demo.services.system_info import describe_machine
from dia_demo.ui import about, html, problems, xpu
from dia_demo.ui.compare.layout import STYLES as COMPARE_STYLES
from dia_demo.ui.gate import on_hang_up
from dia_demo.ui.generate import api, form, layout
from dia_demo.ui.generate.handlers import Handlers
from dia_demo.ui.generate.layout import Parts
from dia_demo.ui.generate.live_audio import LiveAudio
from dia_demo.ui.listening import Listening
from dia_demo.ui.machine import MachineHandlers, lay_out, wire
from dia_demo.ui.runs import when_over
from dia_demo.ui.serving import server_options, threads
from dia_demo.ui.theme import make_theme
from dia_demo.ui.xpu import XpuHandlers

STYLES = [PAGE_FILES / f"{name}.css" for name in ("style", "status", "earlier", "machine")]


def build_ui(synthesis: Synthesis) -> gr.Blocks:
    """The whole page over one `Synthesis`, ready to be launched with `launch_options(settings)`."""
    models = synthesis.models()
    info = synthesis.info(synthesis.settings.runtime.model)
    live = LiveAudio()

    def hear(wanted: object) -> dict:
        asked = wanted if isinstance(wanted, dict) else {}
        start = asked.get("from")
        return live.after(str(asked.get("run")), start if type(start) is int else 0)

    with gr.Blocks(title="Dia on your CPU", analytics_enabled=False) as page:
        gr.HTML(html.header(_machine_parts()), js_on_load=None)
        # The secret only has to be the same after a restart: it lies in the page for all to see.
        memory = gr.BrowserState(None, storage_key="dia-form-1", secret="dia-on-your-cpu")
        listening = Listening(synthesis)
        with gr.Tabs(elem_id="tabs") as tabs:
            with gr.Tab("Generate", id="generate"):
                lay_out_xpu = partial(xpu.lay_out, synthesis)
                runtime = synthesis.settings.runtime
                parts = layout.lay_out(models, info, runtime, hear, lay_out_xpu)
                listening.lay_out_history()
            with gr.Tab("Compare", id="compare"):
                listening.lay_out_compare()
            machine = None
            if synthesis.settings.measure:
                with gr.Tab("Machine", id="machine-tab"):
                    machine = lay_out()
            with gr.Tab("About", id="about"):
                about.lay_out(models)
        handlers = Handlers(synthesis, parts, live)
        _show_first_report(handlers, parts, info)
        wire_run(parts, handlers)
        wire_form(parts, handlers)
        chosen = [parts.fields["model"], parts.fields["precision"]]
        xpu.wire(page, parts.xpu, parts.on_cpu, XpuHandlers(synthesis, parts.xpu), chosen)
        if machine is not None:
            bench = MachineHandlers(synthesis, machine)
            wire(machine, parts.fields["model"], bench)
            page.unload(bench.closed)
        api.offer(parts, handlers)
        wire_memory(page, parts, handlers, memory)
        listening.wire(page, tabs, parts, handlers)
        page.unload(handlers.closed)
        # Last: it covers the events that are registered by then.
        problems.explain_errors(page)
    # Runs wait in the services' own queue, which knows their place; gradio only lets them in.
    on_hang_up(page, handlers.sessions.hung_up)
    return page.queue(max_size=threads(synthesis.settings), default_concurrency_limit=None)


def launch_options(settings: Settings) -> dict:
    """How the page is served, the same at home and on a Space: nothing from outside, lean footer.

    Server name and port are left to gradio, which takes them from the environment.
    """
    return {
        "theme": make_theme(),
        "css_paths": [*STYLES, *COMPARE_STYLES, problems.STYLE],
        "head": f"<script>{problems.SCRIPT.read_text(encoding='utf-8')}</script>",
        "js": (PAGE_FILES / "page.js").read_text(encoding="utf-8"),
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
    parts = [html.plural(machine.cores, "core"), machine.simd]
    if machine.memory_bytes:
        parts.append(f"{machine.memory_bytes / 2**30:.0f} GB")
    return [part for part in parts if part]
