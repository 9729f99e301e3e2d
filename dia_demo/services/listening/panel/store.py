"""PanelStore: every person's own folder of panel tests, and the links that raters open."""

from __future__ import annotations

import hmac
import re
import shutil
import threading
from pathlib import Path

from dia_demo.errors import DiaDemoError, InputError
from dia_demo.services.listening.panel.panel import Panel
from dia_demo.services.listening.panel.plan import PanelPlan
from dia_demo.services.listening.panel.plan_file import NAME
from dia_demo.services.listening.panel.stimuli import Source
from dia_demo.services.people import folder_of
from dia_demo.services.settings import Settings

FOLDER = "panels"
# The test in a folder that the command line made.
PANEL = "panel"
MAX_PANELS = 40
_ID, _LINK = re.compile(r"[0-9a-f]{24}"), re.compile(r"([0-9a-f]{24})([0-9a-f]{32})")
_UNKNOWN = "This link belongs to no listening test: ask for a new one."


def panel_folder(folder: Path) -> Path | None:
    """The panel test of a folder that the command line made, or of its own; None without one."""
    inside = (folder / PANEL, folder)
    return next((place for place in inside if (place / NAME).is_file()), None)


class PanelStore:
    """The panel tests of all people under `home`; each is managed with its owner's key alone, and
    taken by anybody who has its link. shared: the folder of a test that is managed on the command
    line, and taken by its link as well."""

    def __init__(self, home: Path, shared: Path | None = None) -> None:
        self.home = home
        self.shared = shared
        self._open: dict[Path, Panel] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_settings(cls, settings: Settings) -> PanelStore:
        """The store of what is kept on this machine."""
        shared = settings.shared_comparison
        return cls(settings.kept_folder, None if shared is None else panel_folder(shared))

    def create(self, key: str, plan: PanelPlan, source: Source) -> str:
        """Store a new test; returns its id. Raises InputError if the person has too many."""
        home = self._panels_of(key)
        if home.is_dir() and sum(1 for _ in home.iterdir()) >= MAX_PANELS:
            raise InputError(f"You have {MAX_PANELS} listening tests, the maximum. Delete one.")
        folder = home / plan.id
        try:
            panel = Panel.create(folder, plan, source)
        except DiaDemoError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        with self._lock:
            self._open[folder] = panel
        return plan.id

    def get(self, key: str, identity: str) -> Panel:
        """One of the person's tests. Raises InputError if there is none with this id."""
        if not isinstance(identity, str) or not _ID.fullmatch(identity):
            raise InputError("Choose a listening test in the list first.")
        return self._open_folder(self._panels_of(key) / identity)

    def by_link(self, link: str) -> Panel:
        """The test of a link's last part. Raises InputError for an unknown one."""
        match = _LINK.fullmatch(link) if isinstance(link, str) else None
        folders = list(self.home.glob(f"*/{FOLDER}/{match[1]}")) if match else []
        folders += [self.shared] if self.shared is not None else []
        for folder in folders:
            panel = self._open_folder(folder)
            if hmac.compare_digest(panel.plan.link, match[0] if match else ""):
                return panel
        raise InputError(_UNKNOWN)

    def list(self, key: str) -> list[Panel]:
        """The person's tests, the latest first; one that cannot be read is left out."""
        home = self._panels_of(key)
        panels = []
        for folder in home.iterdir() if home.is_dir() else ():
            try:
                panels.append(self.get(key, folder.name))
            except DiaDemoError:
                continue
        return sorted(panels, key=lambda panel: panel.plan.created, reverse=True)

    def delete(self, key: str, identity: str) -> None:
        """Delete one of the person's tests with its votes."""
        panel = self.get(key, identity)
        with self._lock:
            self._open.pop(panel.folder, None)
        shutil.rmtree(panel.folder, ignore_errors=True)

    def _open_folder(self, folder: Path) -> Panel:
        with self._lock:
            if folder not in self._open or not (folder / NAME).is_file():
                self._open.pop(folder, None)
                self._open[folder] = Panel.open(folder)
            return self._open[folder]

    def _panels_of(self, key: str) -> Path:
        return folder_of(self.home, key) / FOLDER
