"""What to expect of a take before it is generated: the voice, the time, and the other model.

The time is beside Generate; the line below it names the voice and offers to switch. Both follow
the form. While this machine is measured or the first model is loaded, a timer refreshes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import gradio as gr

from dia_demo.config import PRECISIONS, RuntimeConfig
from dia_demo.errors import InputError
from dia_demo.files import PAGE_FILES
from dia_demo.model.checkpoint import EMBEDDED
from dia_demo.services.models import DIA_DOWNLOAD, DIA_MEMORY, DIA_NAME, ModelInfo
from dia_demo.services.speed.estimate import Expectation
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.wording import time_left
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.ui.generate import form
from dia_demo.ui.runs import IMMEDIATE, Updates, on_change

# The fields of the form that the time depends on.
FIELDS = (
    "script",
    "normalise",
    "pronunciations",
    "model",
    "max_tokens",
    "precision",
    "speed",
    "voice_prompt",
    "xpu",
)
SECONDS_BETWEEN_QUESTIONS = 3.0
MEASURING = "measuring this machine"
SPEAKERS = {
    EMBEDDED: ("Nano", "a small synthetic voice for trying"),
    DIA_NAME: ("Dia-1.6B", "the original model by Nari Labs, which sounds like people"),
}


@dataclass(frozen=True)
class ExpectationPanel:
    """wait: the time beside Generate. speaker: the line below it. timer: runs while they change by
    themselves."""

    wait: gr.HTML
    speaker: gr.HTML
    timer: gr.Timer


def build_layout(generate: Callable[[], gr.Button]) -> tuple[gr.Button, ExpectationPanel]:
    """The button Generate with the time beside it, and the line about the speaker below."""
    with gr.Row(elem_id="generate-row"):
        button = generate()
        wait = gr.HTML(elem_id="wait", js_on_load=None, min_width=0)
    script = (PAGE_FILES / "switch_model.js").read_text(encoding="utf-8")
    speaker = gr.HTML(elem_id="speaker", js_on_load=script)
    timer = gr.Timer(SECONDS_BETWEEN_QUESTIONS, active=False)
    return button, ExpectationPanel(wait, speaker, timer)


class ExpectationHandlers:
    """The events of the panel."""

    def __init__(self, synthesis: Synthesis, panel: ExpectationPanel) -> None:
        self.synthesis, self.panel = synthesis, panel

    def refresh(self, *values: Any) -> Updates:
        """Time and line for the values of FIELDS as typed; skipped while a number is incomplete."""
        fields = dict(zip(FIELDS, values, strict=True))
        models = {info.name: info for info in self.synthesis.models()}
        numbers = fields["max_tokens"], fields["speed"]
        complete = all(isinstance(number, int | float) and number > 0 for number in numbers)
        if not complete or fields["model"] not in models or fields["precision"] not in PRECISIONS:
            return {self.panel.timer: gr.skip()}
        info, measuring, dia = models[fields["model"]], self.synthesis.speed.measuring, None
        can_switch = other_model(info.name) in models
        calibration = self.synthesis.calibration.describe(self._runtime(info, fields))
        if calibration:
            fields["precision"] = "int8"  # Of the takes that are made until then.
        expected = self._expect(info, fields)
        if info.name == EMBEDDED and can_switch:
            most = models[DIA_NAME].config.defaults.max_tokens
            dia = self._expect(models[DIA_NAME], fields | {"max_tokens": most})
        changes = measuring or self.synthesis.calibration.running or self.synthesis.is_warming_up
        return {
            self.panel.wait: wait_html(wait_text(expected, measuring)),
            self.panel.speaker: speaker_html(info, expected, dia, can_switch, calibration),
            self.panel.timer: gr.Timer(active=changes),
        }

    def _runtime(self, info: ModelInfo, fields: dict[str, Any]) -> RuntimeConfig:
        return replace(
            self.synthesis.settings.runtime,
            model=info.name,
            precision=fields["precision"],
            device="xpu" if fields["xpu"] else "cpu",
        )

    def _expect(self, info: ModelInfo, fields: dict[str, Any]) -> Expectation:
        """What a take of these fields needs, with the loading of its model if that is here."""
        runtime = self._runtime(info, fields)
        expected = self.synthesis.speed.expect(
            info,
            runtime,
            fields["script"] or "",
            int(fields["max_tokens"]),
            fields["speed"],
            normalise=fields["normalise"] is True,
            pronunciations=_listed(fields["pronunciations"]),
            has_voice=bool(fields["voice_prompt"]),
        )
        if expected.left is None or expected.download:
            return expected
        loading = self.synthesis.loading(runtime)
        return replace(expected, left=None if loading is None else expected.left + loading)


def _listed(text: str | None) -> Pronunciations:
    """The list in the form; empty while a line is incomplete, which the report says."""
    try:
        return Pronunciations.parse(text or "")
    except InputError:
        return NONE


def other_model(model: str) -> str:
    """The model that the line's button switches to."""
    return DIA_NAME if model == EMBEDDED else EMBEDDED


def wait_text(expected: Expectation, measuring: bool) -> str:
    """The expected time in a few words, or nothing: also for a model that is not here."""
    if expected.download:
        return ""
    if expected.left is not None:
        return time_left(expected.left)
    is_possible = expected.precision and expected.shortage is None and not expected.has_voice
    return MEASURING if measuring and is_possible else ""


def wait_html(text: str) -> str:
    """The text beside Generate."""
    return f'<p class="wait" title="Expected time for this take">{escape(text)}</p>'


def speaker_html(
    info: ModelInfo,
    expected: Expectation,
    dia: Expectation | None,
    can_switch: bool = True,
    calibration: str = "",
) -> str:
    """The voice and what it needs, with the switch to the other model.

    dia: what Dia-1.6B would need, if the embedded voice is selected and Dia-1.6B can be.
    calibration: what to know of int4, if it is chosen and not calibrated yet.
    """
    original = info.name if info.config.prepared is None else info.config.prepared.base
    name, what = SPEAKERS.get(original, (info.title, "a Dia checkpoint of your own"))
    if info.config.prepared is not None:
        name = info.title
    text = f"{name}: {what}."
    if dia is None:
        switch = f"Back to {SPEAKERS[EMBEDDED][0]}" if can_switch else ""
        # The time of a model that is here is beside Generate.
        left = expected.left if expected.download else None
        needs = _needs(replace(expected, left=left), info.name == DIA_NAME)
        text += f" {needs[0].upper()}{needs[1:]}." if needs else ""
        text += f" {calibration}" if calibration else ""
    else:
        name, what = SPEAKERS[DIA_NAME]
        switch = "" if dia.shortage else f"Use {name}"
        needs = _needs(dia, True)
        joint = ", but " if dia.shortage else ": " if needs else ""
        text += f" {name} is {what}{joint}{needs}."
    button = f' <button type="button" class="switch-model">{switch}</button>' if switch else ""
    # The name must not break at its hyphen.
    dia_name = escape(SPEAKERS[DIA_NAME][0])
    shown = escape(text).replace(dia_name, f'<span class="name">{dia_name}</span>')
    return f'<p class="speaker"><span>{shown}</span>{button}</p>'


def _needs(expected: Expectation, is_dia: bool) -> str:
    """What a model needs here, without a full stop; empty if nothing is known."""
    if expected.shortage:
        return f"it cannot run here: {expected.shortage.rstrip('.')}"
    needs = []
    if expected.left is not None:
        needs.append(f"{time_left(expected.left)} for this script on this machine")
    if is_dia and expected.precision in DIA_MEMORY:
        needs.append(f"{DIA_MEMORY[expected.precision]} of memory")
    if expected.download and is_dia:
        needs.append(f"{DIA_DOWNLOAD} to download once")
    return ", ".join(needs)


def connect(
    page: gr.Blocks,
    fields: dict[str, Any],
    figures: gr.HTML,
    download: gr.HTML,
    handlers: ExpectationHandlers,
    change_model: Callable[[str], Sequence],
) -> None:
    """Connect the panel. figures: those of the take, which it changes with. download: changes while
    a model is downloaded. change_model: a model's updates of the sampling fields and normalise.
    """
    panel, inputs = handlers.panel, [fields[name] for name in FIELDS]
    for component, value in handlers.refresh(*(field.value for field in inputs)).items():
        if component is not panel.timer:
            component.value = value
    on_change(
        # A finished take tells more about this machine.
        [
            *(field.change for field in inputs),
            figures.change,
            download.change,
            panel.timer.tick,
            page.load,
        ],
        handlers.refresh,
        inputs,
        [panel.wait, panel.speaker, panel.timer],
        preprocess=False,
    )

    def switch(model: str):
        chosen = other_model(model)
        return [chosen, *change_model(chosen)]

    changed = [fields[name] for name in ("model", *form.SAMPLING, "normalise")]
    panel.speaker.click(switch, fields["model"], changed, **IMMEDIATE)
