"""The file of verdicts: which device, driver, torch, checkpoint and precision passed the check."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import replace
from pathlib import Path

from dia_demo.accelerator.selfcheck.report import SelfCheckReport, VerdictKey
from dia_demo.files import write_atomic
from dia_demo.untrusted import parse_as

MAX_REPORTS = 32

log = logging.getLogger(__name__)


class VerdictStore:
    """A JSON file of reports, the latest last. A file that cannot be read is ignored, with a note.

    note: for a person, where the file could not be read or written. Without a path, verdicts are
    kept in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.note = ""
        self._lock = threading.Lock()
        self._reports: list[SelfCheckReport] = self._read()

    def find(self, key: VerdictKey) -> SelfCheckReport | None:
        """The latest report with exactly this key."""
        return next((report for report in reversed(self._reports) if report.key == key), None)

    def expired_fields(self, key: VerdictKey) -> tuple[str, ...]:
        """The fields that changed since a similar device or checkpoint was checked, else empty.

        Of several earlier reports, the one with the fewest changes counts.
        """
        changes = [key.changed_fields(report.key) for report in self._reports if report.key != key]
        near = [names for names in changes if len(names) < 4]
        return min(near, key=len, default=())

    def keep(self, report: SelfCheckReport) -> None:
        """Store a report in place of an earlier one with the same key."""
        with self._lock:
            others = [other for other in self._reports if other.key != report.key]
            self._reports = [*others, report][-MAX_REPORTS:]
            self._write()

    def revoke(self, key: VerdictKey, failure: str) -> None:
        """A run failed after a passed check: the check must pass again before the next run."""
        report = self.find(key)
        if report is not None:
            self.keep(replace(report, failure=failure))

    def _read(self) -> list[SelfCheckReport]:
        if self.path is None or not self.path.is_file():
            return []
        try:
            raw = json.loads(self.path.read_text(encoding="utf-8"))
            return parse_as(list[SelfCheckReport], raw["reports"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            self.note = (
                f"{self.path} could not be read and is ignored. Earlier self-checks are lost: run "
                "the check again."
            )
            log.warning("%s (%s)", self.note, error)
            return []

    def _write(self) -> None:
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            reports = [report.to_dict() for report in self._reports]
            text = json.dumps({"reports": reports}, indent=1)
            with write_atomic(self.path) as part:
                part.write_text(text, encoding="utf-8")
        except OSError as error:
            # The verdict is valid until this program ends.
            self.note = f"The verdict could not be written to {self.path}: {error.strerror}."
            log.warning("%s", self.note)
