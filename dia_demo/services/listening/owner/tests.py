"""Panel tests of a person: made from a comparison or from uploaded clips, within the disk space of
all comparisons.
"""

from __future__ import annotations

from pathlib import Path

from dia_demo.files import bytes_in
from dia_demo.services.listening.owner.options import PanelOptions
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.plan import Item
from dia_demo.services.listening.panel.stimuli import Source, from_comparison, from_files
from dia_demo.services.listening.panel.store import PanelStore
from dia_demo.services.listening.plan.plan import ComparisonPlan
from dia_demo.services.listening.render import CLIPS
from dia_demo.services.listening.store import ComparisonStore
from dia_demo.services.listening.uploads.folder import ClipFolder
from dia_demo.services.listening.uploads.make import opened_clips, stored_bytes

# Copies, anchors and dither beside the clips themselves.
_COPIES = 2


class OwnTests:
    """The panel tests of all people, each reached with its owner's key. comparisons: whose space
    they share."""

    def __init__(self, panels: PanelStore, comparisons: ComparisonStore) -> None:
        self.panels = panels
        self.comparisons = comparisons

    def from_comparison(self, key: str, identity: str, options: PanelOptions) -> Panel:
        """A test of the takes of one of the person's comparisons. Raises InputError if pairs are
        missing, and for options that do not fit."""
        comparison = self.comparisons.get(key, identity)
        self.comparisons.make_room(_COPIES * bytes_in(comparison.folder / CLIPS))
        return self._create(key, from_comparison(comparison), options)

    def from_clips(self, key: str, path: Path, options: PanelOptions) -> Panel:
        """A test of the clips of a folder or zip. Raises InputError for clips that cannot be
        compared, and for options that do not fit."""
        with opened_clips(path) as clips:
            self.comparisons.make_room(_COPIES * stored_bytes(clips))
            return self._create(key, source_of_clips(clips), options)

    def _create(self, key: str, source: Source, options: PanelOptions) -> Panel:
        plan = options.plan(source.systems, source.items)
        return self.panels.get(key, self.panels.create(key, plan, source))


def items_of(plan: ComparisonPlan) -> tuple[Item, ...]:
    """The items of a panel test of a comparison's takes, before there are any."""
    places = [(script, seed) for script in range(len(plan.scripts)) for seed in plan.seeds]
    return tuple(Item(plan.scripts[script], script, f"seed {seed}") for script, seed in places)


def source_of_clips(clips: ClipFolder) -> Source:
    """What a panel test of uploaded clips plays. Raises InputError for a clip that cannot be
    compared."""
    stored_bytes(clips)  # which reads every header
    texts = dict(zip(clips.sentences, clips.texts, strict=True))
    return from_files(clips.files, texts)
