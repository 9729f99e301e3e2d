"""What to expect of a take before it is generated: the voice, the time, and the other model.

The time is beside Generate; the line below it names the voice and offers to switch. Both follow
the form. While this machine is measured or the first model is loaded, a timer refreshes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import gradio as gr

from dia_demo.config import PRECISIONS, RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import gb, model_bytes, needed_bytes
from dia_demo.engine.time_left import TimeLeft
from dia_demo.errors import InputError
from dia_demo.files import PAGE_FILES
from dia_demo.services.dialogue.plan import needs_chunks
from dia_demo.services.dialogue.run import time_to_make
from dia_demo.services.models import Models
from dia_demo.services.speed.estimate import Expectation
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request
from dia_demo.services.voices.choice import add_voices
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.services.wording import time_left
from dia_demo.text.pronunciations import NONE, Pronunciations
from dia_demo.ui import form
from dia_demo.ui.runs import IMMEDIATE, Updates, connect_change
from dia_demo.voices import VOICE_FIELDS

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
    *VOICE_FIELDS,
    "xpu",
    form.IN_PARTS,
)
SECONDS_BETWEEN_QUESTIONS = 3.0
MEASURING = "measuring this machine"


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

    def refresh(self, key: object, *values: Any) -> Updates:
        """Time and line for the values of FIELDS as typed; skipped while a number is incomplete.
        key: the person whose kept voices may be chosen."""
        if (fields := self._complete(key, values)) is None:
            return {self.panel.timer: gr.skip()}
        models, measuring = self.synthesis.models, self.synthesis.speed.measuring
        # Read before the times: if the loading ends meanwhile, they are refreshed once more.
        changes = measuring or self.synthesis.calibration.running or self.synthesis.is_warming_up
        info = models[fields["model"]]
        other, better = other_model(info, models), None
        calibration = self.synthesis.calibration.describe(info, self._runtime(info, fields))
        if calibration:
            fields["precision"] = "int8"  # Of the takes that are made until then.
        expected = self._expect(info, fields)
        if info.is_embedded and other is not None:
            most = other.config.defaults.max_tokens
            # A voice belongs to its model.
            changed = fields | dict.fromkeys(VOICE_FIELDS, "") | {"max_tokens": most}
            better = self._expect(other, changed)
        return {
            self.panel.wait: wait_html(wait_text(expected, measuring)),
            self.panel.speaker: speaker_html(info, expected, other, better, calibration),
            self.panel.timer: gr.Timer(active=changes),
        }

    def candidates(self, count: object, key: object, *values: Any) -> str:
        """The time of so many candidates for the values of FIELDS; nothing where none are made."""
        fields = self._complete(key, values)
        if fields is None or not isinstance(count, int):
            return wait_html("")
        info = self.synthesis.models[fields["model"]]
        if self.synthesis.calibration.describe(info, self._runtime(info, fields)):
            fields["precision"] = "int8"
        is_whole = self._time_in_parts(self._request(info, fields)) is None
        expected = self._expect(info, fields, count) if is_whole else None
        return wait_html("" if expected is None else wait_text(expected, False), count)

    def _complete(self, key: object, values: Sequence[Any]) -> dict[str, Any] | None:
        """The values of FIELDS and the person's key by name; None while they say of no take what it
        is."""
        fields = dict(zip(FIELDS, values, strict=True)) | {"key": key}
        numbers = fields["max_tokens"], fields["speed"]
        complete = all(isinstance(number, int | float) and number > 0 for number in numbers)
        is_known = fields["model"] in self.synthesis.models and fields["precision"] in PRECISIONS
        return fields if complete and is_known else None

    def _runtime(self, info: ModelInfo, fields: dict[str, Any]) -> RuntimeConfig:
        return replace(
            self.synthesis.settings.runtime,
            model=info.name,
            precision=fields["precision"],
            device="xpu" if fields["xpu"] else "cpu",
        )

    def _expect(self, info: ModelInfo, fields: dict[str, Any], takes: int = 1) -> Expectation:
        """What so many takes of these fields need, with the loading of the model if it is here."""
        request, whole = self._request(info, fields), None
        if takes == 1 and fields[form.IN_PARTS] is True:
            whole = self._time_in_parts(request)
        has_recording = bool(fields["voice_prompt"])
        expected = self.synthesis.speed.expect(request, takes, has_recording=has_recording)
        if whole is not None:
            expected = replace(expected, left=whole)
        if expected.left is None or expected.download:
            return expected
        loading = self.synthesis.loading(info, request.runtime)
        return replace(expected, left=None if loading is None else expected.left + loading)

    def _request(self, info: ModelInfo, fields: dict[str, Any]) -> Request:
        """The request of these fields, with the kept voices but without a recording."""
        draft = form.draft_of(info, fields, _parse_list(fields["pronunciations"]))
        request = replace(draft, runtime=self._runtime(info, fields), speed=fields["speed"])
        kept = KeptVoices.for_person(self.synthesis.settings, fields["key"])
        with suppress(InputError):  # Of a voice that is not offered any more.
            return add_voices(request, [fields[name] for name in VOICE_FIELDS], kept)
        return request

    def _time_in_parts(self, request: Request) -> TimeLeft | None:
        """The time of a script that is made in parts; None for other scripts, and if unknown."""
        try:
            if not request.script.strip() or not needs_chunks(request):
                return None
        except InputError:  # Of a pause that is too long, which the report says.
            return None
        text = request.reading(request.script).text
        seconds = request.model.expected_seconds(text)
        return time_to_make(self.synthesis, request, seconds / request.speed)


def _parse_list(text: str | None) -> Pronunciations:
    """The list in the form; empty while a line is incomplete, which the report says."""
    try:
        return Pronunciations.parse(text or "")
    except InputError:
        return NONE


def other_model(info: ModelInfo, models: Models) -> ModelInfo | None:
    """The model that the line's button switches to: from the embedded voice to the recommended
    model, and from any other to the embedded voice; None if the page does not offer that."""
    offered = models.values()
    if info.is_embedded:
        return next((each for each in offered if each.is_recommended), None)
    return next((each for each in offered if each.is_embedded), None)


def wait_text(expected: Expectation, measuring: bool) -> str:
    """The expected time in a few words, or nothing: also for a model that is not here."""
    if expected.download:
        return ""
    if expected.left is not None:
        return time_left(expected.left)
    is_possible = expected.precision and expected.shortage is None and not expected.has_recording
    return MEASURING if measuring and is_possible else ""


def wait_html(text: str, takes: int = 1) -> str:
    """The text beside the button that makes so many takes."""
    title = "Expected time for " + ("this take" if takes == 1 else f"{takes} candidates")
    return f'<p class="wait" title="{title}">{escape(text)}</p>'


def speaker_html(
    info: ModelInfo,
    expected: Expectation,
    other: ModelInfo | None,
    better: Expectation | None = None,
    calibration: str = "",
) -> str:
    """The voice and what it needs, with the switch to the other model.

    other: that of `other_model`. better: what it would need, if the embedded voice is selected.
    calibration: what to know of int4, if it is chosen and not calibrated yet.
    """
    name = info.profile.short_name if info.config.prepared is None else ""
    text = f"{name or info.title}: {info.profile.summary}."
    if other is None or better is None:
        switch = f"Back to {other.profile.short_name}" if other is not None else ""
        # The time of a model that is here is beside Generate.
        left = expected.left if expected.download else None
        needs = _needs(info, replace(expected, left=left))
        text += f" {needs[0].upper()}{needs[1:]}." if needs else ""
        text += f" {calibration}" if calibration else ""
    else:
        name = other.profile.short_name
        switch = "" if better.shortage else f"Use {name}"
        needs = _needs(other, better)
        joint = ", but " if better.shortage else ": " if needs else ""
        text += f" {name} is {other.profile.summary}{joint}{needs}."
    button = f' <button type="button" class="switch-model">{switch}</button>' if switch else ""
    # A name must not break at its hyphen.
    shown = escape(text)
    for each in (info, other):
        if each is not None and "-" in (name := escape(each.profile.short_name)):
            shown = shown.replace(name, f'<span class="name">{name}</span>')
    return f'<p class="speaker"><span>{shown}</span>{button}</p>'


def _needs(info: ModelInfo, expected: Expectation) -> str:
    """What a model needs here, without a full stop; empty if nothing is known."""
    if expected.shortage:
        return f"it cannot run here: {expected.shortage.rstrip('.')}"
    needs = []
    if expected.left is not None:
        needs.append(f"{time_left(expected.left)} for this script on this machine")
    if info.is_recommended and expected.precision:
        needs.append(f"{gb(needed_bytes(info, expected.precision))} of memory")
        if expected.download:
            needs.append(f"{gb(model_bytes(info, 'float32'))} to download once")
    return ", ".join(needs)


def connect(
    page: gr.Blocks,
    fields: dict[str, Any],
    person: gr.BrowserState,
    figures: gr.HTML,
    download: gr.HTML,
    handlers: ExpectationHandlers,
    change_model: Callable[[str], Sequence],
) -> None:
    """Connect the panel. person: holds the key of a person's kept voices. figures: those of the
    take, which it changes with. download: changes while a model is downloaded. change_model: a
    model's updates of the sampling fields and normalise.
    """
    panel, inputs = handlers.panel, [fields[name] for name in FIELDS]
    for component, value in handlers.refresh(None, *(field.value for field in inputs)).items():
        if component is not panel.timer:
            component.value = value
    connect_change(
        # A finished take tells more about this machine.
        [
            *(field.change for field in inputs),
            figures.change,
            download.change,
            panel.timer.tick,
            page.load,
        ],
        handlers.refresh,
        [person, *inputs],
        [panel.wait, panel.speaker, panel.timer],
        preprocess=False,
    )

    def switch(model: str):
        models = handlers.synthesis.models
        chosen = other_model(models[model], models)
        assert chosen is not None, "the line has a button"
        return [chosen.name, *change_model(chosen.name)]

    changed = [fields[name] for name in ("model", *form.SAMPLING, "normalise")]
    panel.speaker.click(switch, fields["model"], changed, **IMMEDIATE)


def connect_candidates(
    fields: dict[str, Any],
    person: gr.BrowserState,
    count: gr.Dropdown,
    wait: gr.HTML,
    handlers: ExpectationHandlers,
) -> None:
    """Connect the time beside the button that makes `count` candidates."""
    inputs = [fields[name] for name in FIELDS]
    wait.value = handlers.candidates(count.value, None, *(field.value for field in inputs))
    # That of one take changes with all that this depends on.
    changes = [handlers.panel.wait.change, count.change]
    shown = [count, person, *inputs]
    connect_change(changes, handlers.candidates, shown, [wait], preprocess=False)
