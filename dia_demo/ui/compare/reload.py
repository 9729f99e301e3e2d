"""What the Compare tab brings back after a reload: its form, and the comparison in the room.

The listening room writes its part into the browser's storage (assets/page/lab/memory.js); nothing
of it is kept on the server.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import gradio as gr

from dia_demo.errors import DiaDemoError
from dia_demo.prompt.voice_file import LONGEST_NAME
from dia_demo.ui.compare.form.fields import FIELDS, QUESTION
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.layout import CompareParts, Field
from dia_demo.ui.compare.setup import VOICE_MENUS
from dia_demo.ui.runs import IMMEDIATE, Updates
from dia_demo.voices import VOICE_FIELDS

# Reads what memory.js wrote.
READ_ROOM = """(key) => {
  try {
    const { id } = JSON.parse(localStorage.getItem("dia-room-1"));
    return [key, { id, front: sessionStorage.getItem("dia-room-front-1") === "true" }];
  } catch {
    return [key, null];
  }
}"""


def connect(
    page: gr.Blocks,
    entered: Any,
    parts: CompareParts,
    tabs: gr.Tabs,
    handlers: CompareHandlers,
    person: gr.BrowserState,
    saved: gr.BrowserState,
) -> tuple[gr.events.Dependency, gr.events.Dependency]:
    """Connect the events; returns the one in which the form gets its values, and the one in which
    the room is opened again. entered: the event in which the page gets its key and its list of
    comparisons. saved: the form's values in the browser."""
    room = gr.JSON(visible=False)
    outputs = [parts.kept, parts.lab, parts.setup, parts.resume, parts.downloads, parts.status]
    outputs += [parts.make_problem, parts.kept_problem, tabs]

    def reopen(request: gr.Request, key: str, memory: object) -> Updates:
        return reopened_updates(handlers, tabs, request, key, memory)

    room_opened = entered.then(reopen, [person, room], outputs, js=READ_ROOM, **IMMEDIATE)

    def restore(values: object) -> list:
        return restored_updates(parts, values)

    loaded = page.load(restore, saved, parts.inputs, **IMMEDIATE)
    loaded.then(None, None, None, js="() => { window.diaCompareRestored = true; }")
    names = ", ".join(FIELDS)
    # Runs in the browser, without a request. Until the form is restored, defaults are not saved.
    gr.on(
        [field.change for field in parts.inputs],
        None,
        [saved, *parts.inputs],
        saved,
        js=f"(old, {names}) => window.diaCompareRestored ? {{ {names} }} : old",
        show_progress="hidden",
    )
    return loaded, room_opened


def reopened_updates(
    handlers: CompareHandlers, tabs: gr.Tabs, request: gr.Request, key: str, memory: object
) -> Updates:
    """The comparison that was in the room of this browser, if it still exists.

    Its tab comes to the front if it was there before the reload. A finished test is opened only
    then: a later visit starts with an empty room.
    """
    unchanged = {handlers.parts.kept: gr.skip()}
    values = memory if isinstance(memory, dict) else {}
    identity: Any = values.get("id")
    was_in_front = values.get("front") is True
    try:
        is_over = handlers.comparisons.get(key, identity).is_unblinded
    except DiaDemoError:
        return unchanged
    if is_over and not was_in_front:
        return unchanged
    updates = handlers.show(request, key, identity)
    return updates | ({tabs: gr.update(selected="compare")} if was_in_front else {})


def restored_updates(parts: CompareParts, saved: object) -> list:
    """The form's saved values in the order of FIELDS; a value that a field cannot have is left
    out."""
    values = saved if isinstance(saved, dict) else {}
    return [
        gr.update(value=values[name])
        if name in values and (_fits(parts.fields[name], values[name]) or _is_voice(values, name))
        else gr.skip()
        for name in FIELDS
    ]


def _fits(field: Field, value: object) -> bool:
    """Whether a field can have this value. The limits of numbers are checked with the plan."""
    match field:
        case gr.Dropdown() | gr.Radio():
            return value in [choice for _, choice in field.choices]
        case gr.Checkbox():
            return isinstance(value, bool)
        case gr.Textbox():
            return isinstance(value, str) and len(value) <= (field.max_length or 0)
        case gr.Slider(minimum=low, maximum=high):
            return _is_number(value) and low <= value <= high
        case _:
            return value is None or _is_number(value)


def _is_voice(values: dict, name: str) -> bool:
    """Whether this may be the name of a kept voice, which its menu does not offer yet."""
    value, in_question = values[name], values.get("differs") in VOICE_FIELDS
    is_voice = name in VOICE_MENUS and (in_question or name not in QUESTION)
    return is_voice and isinstance(value, str) and len(value) <= LONGEST_NAME


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
