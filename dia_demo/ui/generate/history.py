"""Earlier takes on the Generate tab: layout, what the server answers, handlers, wiring."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gradio as gr

from dia_demo.errors import DiaDemoError, InputError, RunError
from dia_demo.files import PAGE_FILES
from dia_demo.services.history import History, Kept, form_values, read_take
from dia_demo.services.listening.store import is_key
from dia_demo.ui import html
from dia_demo.ui.compare.form import SIDE_FIELDS
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.generate import form
from dia_demo.ui.generate.handlers import GenerateHandlers, event_value
from dia_demo.ui.generate.layout import GenerateParts
from dia_demo.ui.runs import IMMEDIATE
from dia_demo.ui.status import Status, explain

_LIST = '<p class="earlier-said" role="status"></p><ul class="earlier"></ul>'


@dataclass(frozen=True)
class HistoryParts:
    """The components that take part in events."""

    earlier: gr.HTML
    dropped: gr.File


def build_layout(history: History, served: Path) -> HistoryParts:
    """The folded list of earlier takes, and the place where a take's file brings them back.

    served: the folder of files that the page may fetch.
    """

    def earlier(wanted: dict) -> dict:
        return answer(history, served, wanted)

    with gr.Column(elem_id="history", elem_classes="card"):
        with gr.Accordion("Earlier takes", open=False, elem_id="earlier"):
            shown = gr.HTML(
                {},
                html_template=_LIST,
                js_on_load=(PAGE_FILES / "earlier.js").read_text(encoding="utf-8"),
                server_functions=[earlier],
            )
            dropped = gr.File(
                label="Settings from a take's WAV or FLAC: drop it here",
                file_types=[".wav", ".flac"],
                height=120,
                elem_id="dropped",
            )
    return HistoryParts(shown, dropped)


def answer(history: History, served: Path, wanted: dict) -> dict:
    """One question of the list: {do: list, hear or delete, key, id}; or {error}.

    served: the folder of files that the page may fetch.
    """
    try:
        if not isinstance(wanted, dict):
            raise InputError("The page asked for something unknown: reload it.")
        key, identity = wanted.get("key"), wanted.get("id")
        match wanted.get("do"):
            case "list":
                return {"takes": [_row(kept) for kept in history.list(key)]}
            case "hear":
                return {"file": str(history.served(key, identity, served))}
            case "delete":
                history.delete(key, identity, served)
                return {}
        raise InputError("The page asked for something unknown: reload it.")
    except Exception as error:
        return {"error": explain(error)}


def _row(kept: Kept) -> dict:
    settings, figures = kept.settings, kept.figures
    said = " ".join(kept.script.split())
    seconds = figures.get("audio_seconds")
    shown = [
        f"{seconds:.1f} s" if isinstance(seconds, int | float) else "",
        *(f"{_SHORT[name]} {settings[name]}" for name in _SHORT if name in settings),
        str(figures.get("precision", "")),
        Path(str(figures.get("model", ""))).name,
        kept.created.strftime("%Y-%m-%d %H:%M UTC"),
    ]
    return {
        "id": kept.id,
        "script": said if len(said) < 120 else f"{said[:117]}…",
        "figures": " · ".join(one for one in shown if one),
    }


_SHORT = {"seed": "seed", "temperature": "temperature", "cfg_scale": "CFG", "top_p": "top-p"}


class HistoryHandlers:
    """What the list does to the page around it."""

    def __init__(
        self, history: History, page: GenerateHandlers, compare: CompareHandlers, models: list[str]
    ) -> None:
        self.history = history
        self.page = page
        self.compare = compare
        self.models = models
        self.cache = Path(page.parts.take.GRADIO_CACHE).resolve()
        self._tick = 0

    def enter(self, key):
        """The list, for the person whose key this is."""
        self._tick += 1
        return {"key": key, "tick": self._tick} if is_key(key) else {}

    def keep(self, key: str, shown: dict | None):
        """A take has just been made: keep it, and show the list anew.

        shown: the player's file as the page names it. It is kept only where it lies in gradio's
        cache and was made by this process for nobody else.
        """
        wav = Path(str((shown or {}).get("path") or "")).resolve()
        if not is_key(key) or not wav.is_relative_to(self.cache) or not wav.is_file():
            return gr.skip()
        try:
            if not self.page.made.claim(wav, key):
                return gr.skip()
            self.history.copy(key, wav)
        except DiaDemoError as error:
            raise RunError(f"The take is not kept among the earlier ones: {error}") from error
        return self.enter(key)

    def use(self, key: str, event: gr.EventData):
        """An earlier take's settings, for the Generate tab."""
        kept = self.history.get(key, event_value(event, "id"))
        return self._restored(kept.values(), kept.voice_transcript)

    def drop(self, path: str | None):
        """The settings that a take's file carries."""
        if not path:
            return [gr.skip()] * (len(form.REMEMBERED) + 2)
        found = read_take(Path(path))
        if found is None:
            raise InputError(
                "This file carries no settings: use a WAV or FLAC that was saved here."
            )
        return self._restored(form_values(found), found["voice_transcript"])

    def compare_with(self, key: str, event: gr.EventData):
        """An earlier take's settings on both sides of a comparison, with its tab in front."""
        kept = self.history.get(key, event_value(event, "id"))
        values = kept.values()
        self._check_model(values)
        notes = () if kept.voice_transcript is None else (_voice_note(kept.voice_transcript),)
        status = Status("idle", "Ready", "Both sides have the take's settings.", 0.0, notes=notes)
        sides = self.compare.both_sides(values)
        return [
            values["script"],
            *sides,
            gr.Tabs(selected="compare"),
            html.status_card(status),
        ]

    def _restored(self, values: dict, voice_transcript: str | None):
        """The form's fields, the model's note, and a status that says what could not be brought
        back."""
        self._check_model(values)
        info = self.page.synthesis.info(values["model"])
        notes = [] if voice_transcript is None else [_voice_note(voice_transcript)]
        for name, end in form.out_of_reach(values, form.slider_ends(info)).items():
            label = self.page.parts.fields[name].label
            notes.append(f"Note: {label} was {values[name]:g}; its slider ends at {end:g}.")
        detail = "The take's settings are in the form: press Generate."
        status = Status("idle", "Ready", detail, 0.0, detail, tuple(notes))
        return [*self.page.restore(values), html.status_card(status)]

    def _check_model(self, values: dict) -> None:
        if values.get("model") not in self.models:
            raise InputError(
                f"This take was made with the model {values.get('model')!r}, which is not offered "
                "here."
            )


def _voice_note(transcript: str) -> str:
    """What a take's file lacks: the sound of its voice prompt."""
    words = " ".join(transcript.split())
    saying = f", which says “{words[:117]}{'…' if len(words) > 117 else ''}”" if words else ""
    return (
        f"Note: it was made with a voice prompt{saying}. The file does not hold that recording: "
        "add it again for the same take."
    )


def connect(
    page: gr.Blocks,
    parts: HistoryParts,
    generate: GenerateParts,
    lab: CompareParts,
    tabs: gr.Tabs,
    handlers: HistoryHandlers,
    person: gr.BrowserState,
) -> None:
    """Connect the list; `person` holds the key of this browser."""
    person.change(handlers.enter, person, parts.earlier, **IMMEDIATE)
    page.load(handlers.enter, person, parts.earlier, **IMMEDIATE)
    # The player changes with every finished take and with nothing else; gradio says it twice.
    made = [person, generate.take]
    generate.take.change(handlers.keep, made, parts.earlier, preprocess=False, **IMMEDIATE)
    fields = [generate.fields[name] for name in form.REMEMBERED]
    restored = [*fields, generate.model_note, generate.status]
    parts.earlier.click(handlers.use, person, restored, **IMMEDIATE)
    parts.dropped.upload(handlers.drop, parts.dropped, restored, **IMMEDIATE)
    sides = [lab.fields[f"{side}_{name}"] for side in "ab" for name in SIDE_FIELDS]
    outputs = [lab.fields["scripts"], *sides, tabs, lab.status]
    parts.earlier.submit(handlers.compare_with, person, outputs, **IMMEDIATE)
