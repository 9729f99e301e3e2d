"""The listening lab and the earlier takes as parts of the page: `build` lays them out and wires."""

from __future__ import annotations

import gradio as gr

from dia_demo.services.history import History
from dia_demo.services.listening.store import Comparisons
from dia_demo.services.synthesis import Synthesis
from dia_demo.ui.compare import layout
from dia_demo.ui.compare.handlers import CompareHandlers
from dia_demo.ui.compare.room_api import Lab
from dia_demo.ui.compare.wiring import wire_compare
from dia_demo.ui.generate import history
from dia_demo.ui.generate.handlers import Handlers
from dia_demo.ui.generate.history import HistoryHandlers, wire_history
from dia_demo.ui.generate.layout import Parts


class Listening:
    """What a person keeps on this machine, and the key of their browser that opens it.

    Made inside the page's Blocks: lay out both parts where they belong, then `wire`.
    """

    def __init__(self, synthesis: Synthesis) -> None:
        self.synthesis = synthesis
        self.models = synthesis.models()
        settings = synthesis.settings
        # A quarter of the room for takes, of which the oldest go; the rest for comparisons.
        takes = settings.kept_bytes // 4
        self.history = History(settings.kept_folder, takes)
        self.comparisons = Comparisons(
            settings.kept_folder,
            synthesis,
            settings.kept_bytes - takes,
            settings.shared_comparison,
        )
        # The key is drawn by the server and held by the browser. The secret only has to be the
        # same after a restart: it lies in the page for all to see.
        self.person = gr.BrowserState(None, storage_key="dia-person-1", secret="dia-on-your-cpu")

    def lay_out_history(self) -> None:
        """Earlier takes: on the Generate tab."""
        served = self.synthesis.settings.served_folder
        self.earlier = history.lay_out(self.history, served)

    def lay_out_compare(self) -> None:
        """The Compare tab's content."""
        runtime = self.synthesis.settings.runtime
        lab = Lab(self.comparisons)
        self.compare = layout.lay_out(self.synthesis, self.models, runtime, lab)

    def wire(self, page: gr.Blocks, tabs: gr.Tabs, generate: Parts, handlers: Handlers) -> None:
        """Connect both with the Generate tab."""
        compare = CompareHandlers(self.synthesis, self.comparisons, self.compare)
        names = [info.name for info in self.models]
        earlier = HistoryHandlers(self.history, handlers, compare, names)
        wire_compare(page, self.compare, generate, compare, self.person)
        wire_history(page, self.earlier, generate, self.compare, tabs, earlier, self.person)
