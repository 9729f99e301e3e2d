"""The page as a whole: header, tabs, events, look."""

from __future__ import annotations

from functools import partial
from typing import Any

import gradio as gr

from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import gb
from dia_demo.files import PAGE_FILES
from dia_demo.services.earlier.history import History
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.system_info import describe_machine
from dia_demo.services.wording import plural
from dia_demo.ui import about, files, form, html, problems
from dia_demo.ui.api import endpoints
from dia_demo.ui.candidates import events as candidate_events
from dia_demo.ui.candidates.handlers import CandidateHandlers
from dia_demo.ui.candidates.handlers import answer as answer_candidates
from dia_demo.ui.compare import events as compare_events
from dia_demo.ui.compare import layout as compare_layout
from dia_demo.ui.compare import two_takes
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.room_api import RoomApi
from dia_demo.ui.compare.two_takes import TwoTakesHandlers
from dia_demo.ui.dialogue.answers import answer as answer_parts
from dia_demo.ui.generate import events as generate_events
from dia_demo.ui.generate import layout as generate_layout
from dia_demo.ui.generate.form_handlers import FormHandlers
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.layout import GenerateParts
from dia_demo.ui.generate.live_audio import LiveAudio
from dia_demo.ui.gradio_internals import Page
from dia_demo.ui.history import history as history_tab
from dia_demo.ui.history import returning
from dia_demo.ui.history.history import HistoryHandlers
from dia_demo.ui.history.returning import ReturnHandlers
from dia_demo.ui.machine import benchmark as machine_tab
from dia_demo.ui.machine import xpu
from dia_demo.ui.machine.benchmark import MachineHandlers, MachinePanel
from dia_demo.ui.machine.xpu import XpuHandlers
from dia_demo.ui.panels import events as panel_events
from dia_demo.ui.panels import layout as panels_layout
from dia_demo.ui.space import zero_gpu
from dia_demo.ui.theme import make_theme

HEAD_SCRIPTS = [
    problems.SCRIPT,
    files.SCRIPT,
    PAGE_FILES / "one_sound.js",
    PAGE_FILES / "focus.js",
]
STYLES = [
    PAGE_FILES / f"{name}.css"
    for name in (
        "style",
        "script",
        "status",
        "player",
        "parts",
        "candidates",
        "download",
        "expectation",
        "earlier",
        "machine",
    )
]
# Only has to be the same after a restart; the page contains it, so it protects nothing.
STORAGE_SECRET = "dia-on-your-cpu"


def build_ui(synthesis: Synthesis) -> Page:
    """The whole page over one `Synthesis`, which `dia_demo.server` serves."""
    models, settings = list(synthesis.models.values()), synthesis.settings
    info, live = synthesis.models.first, LiveAudio()
    history, comparisons = _stores(synthesis)
    machine: MachinePanel | None = None

    with Page(title=html.TITLE, analytics_enabled=False) as page:
        gr.HTML(html.header(_machine_facts(), settings.notice), js_on_load=None)
        saved = gr.BrowserState(None, storage_key="dia-form-1", secret=STORAGE_SECRET)
        saved_plan = gr.BrowserState(None, storage_key="dia-compare-1", secret=STORAGE_SECRET)
        # The key that opens a person's takes and comparisons; the server creates it.
        person = gr.BrowserState(None, storage_key="dia-person-1", secret=STORAGE_SECRET)
        with gr.Tabs(elem_id="tabs", overflow_behavior="wrap") as tabs:
            with gr.Tab("Generate", id="generate"):
                parts = generate_layout.build_layout(
                    models, info, settings.runtime, live, partial(xpu.build_layout, synthesis),
                    partial(answer_parts, synthesis),
                    partial(answer_candidates, history, settings.served_folder),
                )  # fmt: skip
                earlier = history_tab.build_layout(history, settings.served_folder)
            with gr.Tab("Compare", id="compare"):
                compare = compare_layout.build_layout(synthesis, models, RoomApi(comparisons))
                panels = panels_layout.build_layout()
                two = two_takes.build_layout()
            if settings.measure:
                with gr.Tab("Machine", id="machine-tab"):
                    machine = machine_tab.build_layout()
            with gr.Tab("About", id="about"):
                about.build_layout(models, partial(xpu.build_document, synthesis))
        _limit_script(parts, settings.script_characters)
        handlers = GenerateHandlers(synthesis, parts, live, history)
        form_handlers = FormHandlers(synthesis, parts)
        compare_handlers = CompareHandlers(synthesis, comparisons, compare)
        history_handlers = HistoryHandlers(
            history, handlers, form_handlers, compare_handlers, list(synthesis.models)
        )
        _show_first_report(form_handlers, parts, info)
        generate_events.connect(page, parts, handlers, form_handlers, saved, person)
        choosing = candidate_events.connect(parts, CandidateHandlers(handlers, history), person)
        returning.connect(page, parts, ReturnHandlers(handlers, history), person)
        model = [parts.fields["model"], parts.fields["precision"]]
        xpu.connect(page, parts.xpu, parts.on_cpu, XpuHandlers(synthesis, parts.xpu), model)
        if machine is not None:
            machine_tab.connect(page, machine, model[0], MachineHandlers(synthesis, machine))
        endpoints.add_endpoints(handlers, comparisons)
        compare_events.connect(
            page, compare_handlers, parts.fields, parts.keep_voice.message, tabs, person, saved_plan
        )
        history_tab.connect(page, earlier, parts, compare, tabs, history_handlers, person, choosing)
        panel_events.connect(page, panels, compare, comparisons, person)
        takes = TwoTakesHandlers(history, compare_handlers, two)
        two_takes.connect(two, compare, earlier.earlier, takes, person)
        # Last, because it covers only the events registered before it.
        problems.explain_errors(page)
        zero_gpu.add_probe()
    page.stop_run = handlers.calls.stop_disconnected
    # Runs wait in the services' own queue, which shows their position; gradio's lets them through.
    page.queue(max_size=threads(settings), default_concurrency_limit=None)
    return page


def threads(settings: Settings) -> int:
    """The number of threads: one for every run that may wait, and some for other events."""
    return settings.queue_size + 40


def _stores(synthesis: Synthesis) -> tuple[History, ComparisonStore]:
    """What is kept on this machine: a quarter of the space for takes, the rest for comparisons."""
    settings = synthesis.settings
    history = History(settings.kept_folder, settings.kept_bytes // 4)
    return history, ComparisonStore.for_synthesis(synthesis)


def page_options() -> dict[str, Any]:
    """The look of the page, for `mount_gradio_app`: no external resources."""
    return {
        "theme": make_theme(),
        "css_paths": [*STYLES, *compare_layout.STYLES, panels_layout.STYLE, problems.STYLE],
        "favicon_path": str(PAGE_FILES / "icon.png"),
        "head": "".join(f"<script>{path.read_text('utf-8')}</script>" for path in HEAD_SCRIPTS),
        "js": (PAGE_FILES / "page.js").read_text(encoding="utf-8"),
        "footer_links": ["api"],
        "run_history": False,
        "ssr_mode": False,
        "pwa": False,
    }


def _limit_script(parts: GenerateParts, characters: int) -> None:
    script = parts.fields["script"]
    assert isinstance(script, gr.Textbox)
    script.max_length = characters


def _show_first_report(handlers: FormHandlers, parts: GenerateParts, info: ModelInfo) -> None:
    values = {name: parts.fields[name].value for name in form.CHECKED}
    parts.report.value, _ = handlers.check(*values.values())


def _machine_facts() -> list[str]:
    machine = describe_machine()
    parts = [plural(machine.cores, "core"), machine.simd]
    if machine.memory_bytes:
        parts.append(gb(machine.memory_bytes))
    return [part for part in parts if part]
