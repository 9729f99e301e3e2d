"""Verdicts on disk: which device, driver, torch, checkpoint and precision have passed the check."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import replace
from pathlib import Path

from dia_demo.accelerator.selfcheck.report import Report, VerdictKey
from dia_demo.files import write_atomic

KEPT = 32

log = logging.getLogger(__name__)


class VerdictStore:
    """A JSON file of reports, the latest last. A file that cannot be read is ignored, with a note.

    `note` then says so, in words for a person. None as path keeps verdicts in memory alone.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.note = ""
        self._lock = threading.Lock()
        self._reports: list[Report] = self._read()

    def find(self, key: VerdictKey) -> Report | None:
        """The latest report on exactly this key."""
        return next((one for one in reversed(self._reports) if one.key == key), None)

    def expired(self, key: VerdictKey) -> tuple[str, ...]:
        """What changed since this device or checkpoint was last checked; empty where it never was.

        Of several reports the one that differs least is told.
        """
        changes = [key.changed(one.key) for one in self._reports if one.key != key]
        near = [names for names in changes if len(names) < 4]
        return min(near, key=len, default=())

    def keep(self, report: Report) -> None:
        """Remember a report in place of any earlier one on its key."""
        with self._lock:
            others = [one for one in self._reports if one.key != report.key]
            self._reports = [*others, report][-KEPT:]
            self._write()

    def revoke(self, key: VerdictKey, failure: str) -> None:
        """A run failed on what had passed: it must pass again before it runs again."""
        report = self.find(key)
        if report is not None:
            self.keep(replace(report, failure=failure))

    def _read(self) -> list[Report]:
        if self.path is None or not self.path.is_file():
            return []
        try:
            raw = json.loads(self.path.read_text(encoding="utf-8"))
            return [Report.from_dict(one) for one in raw["reports"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            self.note = (
                f"{self.path} could not be read and is ignored: earlier self-checks are forgotten, "
                "run the check again."
            )
            log.warning("%s (%s)", self.note, error)
            return []

    def _write(self) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"reports": [one.to_dict() for one in self._reports]}, indent=1)
            with write_atomic(self.path) as part:
                part.write_text(text, encoding="utf-8")
        except OSError as error:
            # The verdict still holds for as long as this program runs.
            self.note = f"The verdict could not be kept in {self.path}: {error.strerror}."
            log.warning("%s", self.note)
