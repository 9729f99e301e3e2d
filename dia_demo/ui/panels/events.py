"""Which component of the tests with many listeners calls which handler."""

from __future__ import annotations

import gradio as gr

from dia_demo.services.listening.owner.tests import OwnTests
from dia_demo.services.listening.panel.store import PanelStore
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.ui.compare.layout import CompareParts
from dia_demo.ui.files import connect_download
from dia_demo.ui.panels.handlers import PanelHandlers
from dia_demo.ui.panels.layout import PanelParts
from dia_demo.ui.runs import IMMEDIATE, PRIVATE, connect_change

# The address of listening tests, as this browser reaches the server.
_ADDRESS = "() => new URL('listen/', location.origin + location.pathname).href"


def connect(
    page: gr.Blocks,
    parts: PanelParts,
    compare: CompareParts,
    comparisons: ComparisonStore,
    person: gr.BrowserState,
) -> None:
    """Connect the card. comparisons: what tests are made of. person: the key of this browser."""
    panels = PanelStore.from_settings(comparisons.synthesis.settings)
    handlers = PanelHandlers(OwnTests(panels, comparisons), parts)
    address = gr.Textbox(visible=False, max_length=500)
    page.load(None, None, address, js=_ADDRESS)
    connect_change([page.load, person.change], handlers.fill, [person], [parts.tests])
    described = [page.load, compare.kept.change, *(field.change for field in parts.inputs)]
    connect_change(
        described,
        handlers.describe,
        [person, compare.kept, *parts.inputs],
        [parts.note, *(parts.fields[name] for name in ("margin", "looks"))],
    )
    shown = [parts.tests, parts.state, parts.rater, parts.reason, parts.problem]
    made = [*shown, parts.create_problem]
    parts.create.click(
        handlers.create, [person, compare.kept, address, *parts.inputs], made, **PRIVATE
    )
    parts.clips.upload(
        handlers.create_of_clips, [person, parts.clips, address, *parts.inputs], made, **PRIVATE
    )
    chosen = [person, parts.tests, address]
    for event, handler in (
        (parts.tests.input, handlers.show),
        (parts.refresh.click, handlers.show),
        (parts.close.click, handlers.toggle),
        (parts.reveal.click, handlers.reveal),
    ):
        event(handler, chosen, shown, **PRIVATE)
    parts.exclude.click(handlers.exclude, [*chosen, parts.rater, parts.reason], shown, **IMMEDIATE)
    parts.results.upload(handlers.add_results, [*chosen, parts.results], shown, **PRIVATE)
    parts.delete.click(handlers.delete, chosen[:2], shown, **IMMEDIATE)
    for button, write in (
        (parts.offline, handlers.offline),
        (parts.report, handlers.report),
        (parts.table, handlers.table),
        (parts.plan, handlers.plan),
    ):
        connect_download(button, write, chosen[:2], parts.file, parts.problem)
