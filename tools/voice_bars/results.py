"""The trials so far, as JSON lines that are added to as soon as a trial has ended."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

from tools.voice_bars.bar import Trial


class Results:
    """A file with an object a line: bar, trial, processor and what was measured. The last of
    several lines of a trial counts; a line that was not written completely does not."""

    def __init__(self, path: Path, processor: str) -> None:
        self.path, self._processor = path, processor
        self._trials: dict[str, dict[int, Trial]] = defaultdict(dict)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for line in text.splitlines():
            try:
                record = json.loads(line)
                bar, number = record["bar"], record["trial"]
            except (ValueError, KeyError, TypeError):
                continue
            if record.get("processor") == processor:
                self._trials[bar][number] = record["measured"]
        self._needs_newline = bool(text) and not text.endswith("\n")

    def has(self, bar: str, number: int) -> bool:
        """Whether a trial has ended."""
        return number in self._trials[bar]

    def add(self, bar: str, number: int, measured: Trial) -> None:
        """Write a trial to the disk."""
        self._trials[bar][number] = measured
        record = {"bar": bar, "trial": number, "processor": self._processor, "measured": measured}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("\n" * self._needs_newline + json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._needs_newline = False

    def forget(self, bar: str) -> None:
        """Leave out the trials of a bar, also when the file is read again."""
        self._trials.pop(bar, None)
        if not self.path.exists():
            return
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        self.path.write_text("".join(li for li in lines if f'"bar": "{bar}"' not in li), "utf-8")

    def trials_of(self, bar: str, most: int) -> list[Trial]:
        """The first trials of a bar, in order."""
        return [measured for number, measured in sorted(self._trials[bar].items()) if number < most]
