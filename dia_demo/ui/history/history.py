"""Earlier takes on the Generate tab: layout, answers to the list, handlers, events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from dia_demo.audio import FORMATS, suffix_of
from dia_demo.errors import InputError
from dia_demo.files import PAGE_FILES
from dia_demo.machine.processor import why_it_may_differ
from dia_demo.services.earlier.history import EarlierTake, History
from dia_demo.services.earlier.take_metadata import form_values, read_take
from dia_demo.services.people import is_key
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.ui import form, html
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.compare.setup import START
from dia_demo.ui.files import FORMAT_MENU
from dia_demo.ui.generate.form_handlers import FormHandlers
from dia_demo.ui.generate.handlers import GenerateHandlers
from dia_demo.ui.generate.layout import GenerateParts
from dia_demo.ui.history.restoring import (
    describe_values,
    kept_voices,
    pronunciations_of,
    voice_note,
    voice_prompt,
)
from dia_demo.ui.html import start_class
from dia_demo.ui.runs import IMMEDIATE, connect_change, event_value
from dia_demo.ui.status import Status, explain

# The fields that a take restores: all that it depends on.
RESTORED = (*form.REMEMBERED, *form.VOICE, "xpu")
_LIST = (
    '<div class="earlier-tools">'
    '<input type="search" class="earlier-search" aria-label="Search earlier takes" '
    'placeholder="Search">'
    '<label><input type="checkbox" class="earlier-starred"> ★ only</label>'
    f'<button type="button" class="earlier-all">Download all</button>{FORMAT_MENU}</div>'
    '<p class="earlier-status" role="status"></p><ul class="earlier"></ul>'
)


@dataclass(frozen=True)
class HistoryParts:
    """The components that have events."""

    earlier: gr.HTML
    dropped: gr.File


def build_layout(history: History, served: Path) -> HistoryParts:
    """The collapsed list of earlier takes, and the field for a take's file.

    served: the folder of files that the page may download.
    """

    def earlier(request: dict) -> dict:
        return answer(history, served, request)

    with gr.Column(elem_id="history", elem_classes="card"):
        with gr.Accordion("Earlier takes", open=False, elem_id="earlier", elem_classes="section"):
            shown = gr.HTML(
                {},
                html_template=_LIST,
                js_on_load=start_class(PAGE_FILES / "earlier.js", "EarlierTakes"),
                server_functions=[earlier],
            )
            dropped = gr.File(
                label="Drop a take's file here to restore its settings",
                file_types=list(FORMATS),
                height=120,
                elem_id="dropped",
            )
    return HistoryParts(shown, dropped)


def answer(history: History, served: Path, request: dict) -> dict:
    """Answer {do: list, hear, label, zip or delete, key, id} of the list; hear and zip may have a
    format. An error is returned as {error}.

    served: the folder of files that the page may download.
    """
    try:
        if not isinstance(request, dict):
            raise InputError("This page sent an unknown request. Reload it.")
        key: Any = request.get("key")
        identity: Any = request.get("id")
        match request.get("do"):
            case "list":
                removed = history.latest_removal(key)
                rows = [_row(take) for take in history.list(key)]
                return {"takes": rows, "removed": removed and removed.isoformat()}
            case "hear":
                suffix = suffix_of(request.get("format"))
                return {"file": str(history.serve(key, identity, served, suffix))}
            case "label":
                history.label(key, identity, request.get("name"), request.get("starred"))
                return {}
            case "zip":
                ids = request.get("ids")
                ids = ids if isinstance(ids, list) else []
                suffix = suffix_of(request.get("format"))
                return {"file": str(history.archive(key, ids, served, suffix))}
            case "delete":
                history.delete(key, identity, served)
                return {}
        raise InputError("This page sent an unknown request. Reload it.")
    except Exception as error:
        return {"error": explain(error)}


def _row(take: EarlierTake) -> dict:
    settings, figures = take.settings, take.figures
    script = " ".join(take.script.split())
    seconds = figures.get("audio_seconds")
    shown = [
        f"{seconds:.1f} s" if isinstance(seconds, int | float) else "",
        *(f"{_SHORT[name]} {settings[name]}" for name in _SHORT if name in settings),
        str(figures.get("precision", "")),
        Path(str(figures.get("model", ""))).name,
    ]
    return {
        "id": take.id,
        "name": take.label.name,
        "starred": take.label.starred,
        "script": script if len(script) < 120 else f"{script[:117]}…",
        # What the search looks through.
        "words": script,
        "figures": " · ".join(text for text in shown if text),
        # Shown in the browser's time zone.
        "created": take.created.isoformat(),
    }


_SHORT = {"seed": "seed", "temperature": "temperature", "cfg_scale": "CFG", "top_p": "top-p"}


class HistoryHandlers:
    """The events of the list."""

    def __init__(
        self,
        history: History,
        page: GenerateHandlers,
        form_handlers: FormHandlers,
        compare: CompareHandlers,
        models: list[str],
    ) -> None:
        self.history = history
        self.page = page
        self.settings = page.synthesis.settings
        self.form_handlers = form_handlers
        self.compare = compare
        self.models = models
        self._tick = 0

    def enter(self, request: gr.Request, key):
        """The list of the person with this key."""
        if not is_key(key):
            return {}
        self.page.run.adopt(request, key)
        self._tick += 1
        return {"key": key, "tick": self._tick}

    def use(self, key: str, sound: str | None, words: str, listed: str, event: gr.EventData):
        """Restore the settings of an earlier take in the form.

        sound, words: the form's voice prompt. listed: the form's list of pronunciations.
        """
        take = self.history.get(key, event_value(event, "id"))
        return self._restore(vars(take), key, sound, words, listed)

    def drop(self, key: object, path: str | None, sound: str | None, words: str, listed: str):
        """Restore the settings that a take's file contains. key: the person whose kept voices it
        may have; sound, words, listed: see `use`."""
        if not path:
            return [gr.skip()] * (len(RESTORED) + 1)
        take = read_take(Path(path))
        if take is None:
            raise InputError("This file contains no settings. Use a take that this program saved.")
        return self._restore(take, key, sound, words, listed)

    def compare_with(self, key: str, differs: str, listed: str, event: gr.EventData):
        """Copy the settings of an earlier take to both sides of the Compare tab, and show it.

        listed: the list of pronunciations of the Generate tab, which counts there as well.
        """
        take = self.history.get(key, event_value(event, "id"))
        values = take.values()
        self._check_model(values)
        kept, missing = kept_voices(vars(take), KeptVoices.for_person(self.settings, key))
        values |= kept
        notes = [missing] if missing else []
        if take.voice_transcript is not None and not any(take.kept_voices):
            notes.append(voice_note(take.voice_transcript))
        pronunciations, more = pronunciations_of(vars(take), listed)
        text = "Both sides have the settings of the take."
        status = Status("idle", "Ready", text, 0.0, notes=(*notes, *more))
        return [
            *self.compare.setup.start_from(values, differs),
            pronunciations,
            gr.Tabs(selected="compare"),
            html.status_card(status),
        ]

    def _restore(
        self, take: Mapping[str, Any], key: object, sound: str | None, words: str, listed: str
    ):
        """The fields of RESTORED, and a status naming what is missing.

        take: as `read_take` returns it. key, sound, words, listed: see `drop`.
        """
        values = form_values(take)
        self._check_model(values)
        info = self.page.synthesis.models[values["model"]]
        # A file of an earlier version lacks the parameters that came later.
        values = form.defaults_of(info) | values
        voices = KeptVoices.for_person(self.settings, key)
        kept, missing = kept_voices(take, voices)
        values |= kept
        has_kept = any(take["kept_voices"])
        transcript = None if has_kept else take["voice_transcript"]
        *voice, note = voice_prompt(transcript, sound, words or "")
        values["pronunciations"], notes = pronunciations_of(take, listed)
        notes = [*filter(None, (missing, note)), *notes]
        device = str(take["figures"].get("device", "cpu"))
        if device != "cpu":
            notes.append(f"Note: it was generated on {device}; the XPU switch is off.")
        weights = info.stored_weights(values.get("precision", ""))
        if remark := why_it_may_differ(take["figures"].get("numerics"), weights):
            notes.append(f"Note: {remark[0].lower()}{remark[1:]}")
        for name, end in form.out_of_reach(values, form.slider_ends(info)).items():
            label = self.page.parts.fields[name].label
            notes.append(f"Note: {label} was {values[name]:g}, but the slider ends at {end:g}.")
        taken = ", ".join(describe_values(values, form.defaults_of(info)))
        detail = f"The settings of the take are in the form: {taken}. Press Generate."
        status = Status("idle", "Ready", detail, 0.0, detail, tuple(notes))
        fields = self.form_handlers.restore(values)
        return [*fields, *voice, False, html.status_card(status)]

    def _check_model(self, values: dict) -> None:
        if values.get("model") not in self.models:
            raise InputError(
                f"This take was generated with the model {values.get('model')!r}, which this page "
                "does not offer. Start the app with it: DIA_MODEL is the model's name or folder."
            )


def connect(
    page: gr.Blocks,
    parts: HistoryParts,
    generate: GenerateParts,
    lab: CompareParts,
    tabs: gr.Tabs,
    handlers: HistoryHandlers,
    person: gr.BrowserState,
    deleting: gr.events.Dependency,
) -> None:
    """Connect the list; `person` holds the key of this browser. deleting: an event elsewhere on the
    page that may delete takes."""
    # The figures change with a finished take, which is kept by then.
    changes = [person.change, page.load, generate.figures.change]
    connect_change(changes, handlers.enter, [person], [parts.earlier])
    deleting.then(handlers.enter, person, parts.earlier, **IMMEDIATE)
    restored = [*(generate.fields[name] for name in RESTORED), generate.status]
    listed = generate.fields["pronunciations"]
    own = [*(generate.fields[name] for name in form.VOICE), listed]
    parts.earlier.click(handlers.use, [person, *own], restored, **IMMEDIATE)
    dropped = [person, parts.dropped, *own]
    parts.dropped.upload(handlers.drop, dropped, restored, **IMMEDIATE)
    start = [*(lab.fields[name] for name in START), listed]
    compared = [person, lab.fields["differs"], listed]
    parts.earlier.submit(handlers.compare_with, compared, [*start, tabs, lab.status], **IMMEDIATE)
