"""Comparisons in tests: scripts, what was heard, making one to its end, reading its clips."""

from __future__ import annotations

import threading

import soundfile

SCRIPTS = ("[S1] Hello there. [S2] Yes.", "[S1] What now? [S2] Nothing.")
HEARD = {"A": 9.0, "B": 9.0, "X": 9.0}


def make(comparison, synthesis, cancel=None):
    return list(comparison.run(synthesis, cancel or threading.Event()))


def clips_of(comparison):
    folder = comparison.folder / "clips"
    return {
        trial.id: [soundfile.read(folder / clip, dtype="int16") for clip in trial.clips]
        for trial in comparison.plan.trials
    }
