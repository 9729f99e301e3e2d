"""Two earlier takes on the Compare tab: chosen from a list, then heard blind or side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from dia_demo.errors import DiaDemoError
from dia_demo.files import size_of
from dia_demo.services.earlier.history import EarlierTake, History
from dia_demo.services.listening.two_takes import WHAT_ONE_PAIR_SHOWS, compare_takes
from dia_demo.services.people import is_key
from dia_demo.services.voices.kept import KeptVoices
from dia_demo.services.wording import local_time
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.html import press_problem
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.runs import IMMEDIATE, Updates, event_value
from dia_demo.ui.status import explain

WORDS = 50  # characters of the script in the list
# Clips are as large as their takes, and both are stored until the pair is complete.
STORED = 4
NOT_CHOSEN = "Choose two different takes first."


@dataclass(frozen=True)
class TwoTakesParts:
    """The components that have events."""

    fold: gr.Accordion
    first: gr.Dropdown
    second: gr.Dropdown
    blind: gr.Button
    sighted: gr.Button
    problem: gr.HTML


def build_layout() -> TwoTakesParts:
    """A card with the two lists; closed at first."""
    menu: dict[str, Any] = dict(choices=[], filterable=False, interactive=True, min_width=240)
    with gr.Column(elem_classes="card"):
        with gr.Accordion(
            "Two earlier takes", open=False, elem_id="lab-takes", elem_classes="section"
        ) as fold:
            gr.HTML(f'<p class="small">{WHAT_ONE_PAIR_SHOWS}</p>', js_on_load=None)
            with gr.Row():
                first = gr.Dropdown(label="One take", elem_id="lab-take-one", **menu)
                second = gr.Dropdown(label="The other", elem_id="lab-take-other", **menu)
            with gr.Row():
                blind = gr.Button("Compare blind", size="sm", elem_id="lab-takes-blind")
                sighted = gr.Button("Side by side", size="sm", elem_id="lab-takes-sighted")
            problem = gr.HTML(elem_id="lab-takes-problem", js_on_load=None)
    return TwoTakesParts(fold, first, second, blind, sighted, problem)


class TwoTakesHandlers:
    """The events of the card."""

    def __init__(self, history: History, compare: CompareHandlers, parts: TwoTakesParts) -> None:
        self.history, self.compare, self.parts = history, compare, parts

    def fill(self, key) -> Updates:
        """The person's takes in both lists."""
        choices = self._choices(key) if is_key(key) else []
        return {part: gr.update(choices=choices) for part in (self.parts.first, self.parts.second)}

    def _choices(self, key: str) -> list[tuple[str, str]]:
        zone = self.compare.zone_of(key)
        return [(label_of(take, zone), take.id) for take in self.history.list(key)]

    def choose(self, key: str, event: gr.EventData) -> Updates:
        """A take of the list of earlier takes is one of the two."""
        identity = self.history.get(key, event_value(event, "id")).id
        updates = self.fill(key)
        updates[self.parts.first] |= {"value": identity}
        return updates | {self.parts.fold: gr.update(open=True)}

    def open_blind(self, request: gr.Request, key: str, first, second) -> Updates:
        """The two takes in the listening room, to be judged blind."""
        return self._open("preference", request, key, first, second)

    def open_sighted(self, request: gr.Request, key: str, first, second) -> Updates:
        """The two takes side by side."""
        return self._open("sighted", request, key, first, second)

    def _open(self, kind: str, request: gr.Request, key: str, first, second) -> Updates:
        problem = self.parts.problem
        if not first or not second or first == second:
            return {problem: press_problem(NOT_CHOSEN)}
        store = self.compare.comparisons
        try:
            takes = self.history.get(key, first), self.history.get(key, second)
            size = STORED * sum(size_of(take.path) for take in takes)
            synthesis = self.compare.synthesis
            kept = KeptVoices.for_person(synthesis.settings, key)
            make = partial(compare_takes, kind=kind, takes=takes, synthesis=synthesis, kept=kept)
            updates = self.compare.add(request, key, lambda: store.add(key, size, make))
        except DiaDemoError as error:
            return {problem: press_problem(explain(error))}
        return updates | {problem: ""}


def label_of(take: EarlierTake, zone: str | None) -> str:
    """A take in a list: when it was made, its seed and model, and its name or its words. What tells
    takes of one script apart comes first, because a menu cuts off the end."""
    words = take.label.name or " ".join(take.script.split())
    words = words if len(words) <= WORDS else f"{words[:WORDS]}…"
    seed, model = take.figures.get("seed"), take.figures.get("model")
    parts = [
        local_time(take.created, zone),
        f"seed {seed}" if seed is not None else "",
        Path(str(model)).name if model is not None else "",
        words,
    ]
    return " · ".join(filter(None, parts))


def connect(
    parts: TwoTakesParts,
    compare: CompareParts,
    earlier: gr.HTML,
    handlers: TwoTakesHandlers,
    person: gr.BrowserState,
) -> None:
    """Connect the card. earlier: the list of earlier takes, which changes with every new one."""
    lists = [parts.first, parts.second]
    earlier.change(handlers.fill, person, lists, **IMMEDIATE)
    earlier.submit(handlers.choose, person, [*lists, parts.fold], **IMMEDIATE)
    outputs = [
        parts.problem,
        compare.kept,
        compare.lab,
        compare.setup,
        compare.resume,
        compare.downloads,
        compare.status,
        compare.make_problem,
        compare.kept_problem,
    ]
    chosen = [person, *lists]
    parts.blind.click(handlers.open_blind, chosen, outputs, **IMMEDIATE)
    parts.sighted.click(handlers.open_sighted, chosen, outputs, **IMMEDIATE)
