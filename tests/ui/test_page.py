"""The page as it is built: its labels, its endpoint, its defaults, and what ships with it."""

from __future__ import annotations

import importlib
import re

import gradio as gr
import numpy as np
import pytest

from dia_demo.config import RuntimeConfig
from dia_demo.disclosure.notice import Notice
from dia_demo.files import PAGE_FILES
from dia_demo.services.diagnosis.doctor import examine
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.text.checks.script_check import check_script
from dia_demo.text.script import MAX_SCRIPT_CHARACTERS, NONVERBALS, SOUND
from dia_demo.ui import form, theme
from dia_demo.ui.compare.form.fields import MAX_SCRIPTS_CHARACTERS
from dia_demo.ui.generate import layout
from dia_demo.ui.page import _machine_facts, build_ui, page_options


@pytest.fixture(scope="module")
def page() -> gr.Blocks:
    return build_ui(Synthesis(Settings()))


def test_the_page_has_the_labels_others_rely_on(page):
    labels = {getattr(block, "label", None) for block in page.blocks.values()}
    texts = {block.value for block in page.blocks.values() if isinstance(block, gr.Button)}
    assert labels >= {
        "Script",
        "Temperature",
        "CFG scale",
        "Max tokens",
        "Top-p",
        "Top-k",
        "Seed",
        "Speed",
        "Model",
        "Precision",
        "Intel XPU (experimental)",
        "Take",
    }
    assert texts >= {"Generate", "Stop"}


@pytest.mark.parametrize("notice", list(Notice))
def test_the_page_says_what_files_begin_with(notice):
    shown = build_ui(Synthesis(Settings(notice=notice)))
    texts = [block.value for block in shown.blocks.values() if isinstance(block, gr.HTML)]
    assert any("Takes begin with" in str(text) for text in texts) == (notice is not Notice.OFF)


def test_gradio_writes_no_stubs_of_components(tmp_path, monkeypatch):
    source = tmp_path / "own_component.py"
    source.write_text("import gradio as gr\n\nclass Own(gr.HTML):\n    EVENTS = ['change']\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("own_component")
    assert list(tmp_path.glob("own_component.*")) == [source]


@pytest.mark.parametrize("value", ["on", "off"])
def test_measure_off_hides_the_machine_tab(value):
    """On a public server its benchmark would hold everybody up."""
    page = build_ui(Synthesis(Settings.from_env({"DIA_MEASURE": value})))
    tabs = [block.label for block in page.blocks.values() if isinstance(block, gr.Tab)]
    texts = {block.value for block in page.blocks.values() if isinstance(block, gr.Button)}
    handlers = {event.fn.__qualname__ for event in page.fns.values() if event.fn is not None}
    shown = value == "on"
    assert ("Machine" in tabs) == ("Measure" in texts) == shown
    assert any("MachineHandlers" in name for name in handlers) == shown


def test_the_text_boxes_take_no_more_than_is_checked(page):
    boxes = {b.elem_id: b.max_length for b in page.blocks.values() if isinstance(b, gr.Textbox)}
    assert boxes["script"] == boxes["transcript"] == MAX_SCRIPT_CHARACTERS
    assert boxes["lab-scripts"] == MAX_SCRIPTS_CHARACTERS
    assert None not in boxes.values()


@pytest.mark.parametrize(
    "name", ["generate", "lab-make", "lab-resume", "machine-measure", "xpu-check"]
)
def test_a_button_that_begins_a_run_comes_back_after_it_however_it_ended(page, name):
    """gradio's page runs what comes `then` after an end, and after an error `failure` alone."""
    (button,) = (b for b in page.blocks.values() if getattr(b, "elem_id", None) == name)
    (run,) = (fn for fn in page.fns.values() if (button._id, "click") in fn.targets)
    after = [fn for fn in page.fns.values() if fn.trigger_after == run._id]
    assert {fn.trigger_only_on_failure for fn in after} == {False, True}
    assert all(button in fn.outputs and not fn.queue for fn in after)


def test_one_event_describes_a_comparison(page):
    """Of two that run side by side, the older description may arrive last and stay."""
    (note,) = (b for b in page.blocks.values() if getattr(b, "elem_id", None) == "lab-plan")
    filling = [fn.fn.__name__ for fn in page.fns.values() if fn.fn and note in fn.outputs]
    assert filling == ["describe"]


def test_defaults_are_the_checkpoints_own(page):
    synthesis = Synthesis(Settings())
    info = synthesis.models["nano"]
    sliders = {b.label: b.value for b in page.blocks.values() if isinstance(b, gr.Slider)}
    asked = info.config.defaults
    assert sliders["Temperature"] == asked.temperature and sliders["CFG scale"] == asked.cfg_scale
    assert sliders["Max tokens"] == asked.max_tokens
    for model in list(synthesis.models.values()):
        for name, (low, high) in form.slider_ends(model).items():
            assert low <= form.defaults_of(model)[name] <= high, (model.name, name)


def test_the_examples_are_scripts_nobody_would_remark_on():
    examples = layout.load_examples()
    assert 3 <= len(examples) <= 5
    for one in examples:
        found = {f.code for f in check_script(one["script"]).findings}
        assert found == set(), (one["label"], found)
        assert all(match[1] in NONVERBALS for match in SOUND.finditer(one["script"]))


def test_nothing_on_the_page_comes_from_elsewhere():
    options = page_options()
    sources = [options["js"], *(path.read_text() for path in options["css_paths"])]
    sources += [path.read_text() for path in PAGE_FILES.rglob("*.js")]
    sources.append(options["theme"]._get_theme_css())
    for source in sources:
        source = source.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
        assert not re.search(r"https?://|//[a-z0-9.-]+\.[a-z]{2,}/|@import|@font-face", source)
    assert options["theme"]._stylesheets == []


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_the_themes_colours_stand_apart(scheme):
    for ink in (theme.INK, theme.QUIET, theme.ACCENT):
        for paper in (theme.PAPER, theme.CARD, theme.FIELD, theme.ACCENT_SOFT):
            assert contrast(ink[scheme], paper[scheme]) >= 4.5, (ink, paper)
    assert contrast(theme.ON_ACCENT[scheme], theme.ACCENT[scheme]) >= 4.5
    assert contrast(theme.ON_ACCENT[scheme], theme.ACCENT_HOVER[scheme]) >= 4.5
    assert contrast(theme.FIELD_LINE[scheme], theme.CARD[scheme]) >= 3


def contrast(one: str, two: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    dark, bright = sorted((light(one), light(two)))
    return (bright + 0.05) / (dark + 0.05)


def test_the_header_and_doctor_name_the_same_memory(monkeypatch):
    monkeypatch.setattr("dia_demo.machine.system.memory_bytes", lambda: 25_769_803_776)
    memory = next(f for f in examine(RuntimeConfig()).findings if f.topic == "memory")
    assert "25.8 GB" in _machine_facts() and memory.text.startswith("25.8 GB")
