"""Comparisons in tests: scripts, what was heard, making one to its end, reading its clips."""

from __future__ import annotations

import json
import threading
import zipfile

import numpy as np
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


def random_bytes(size: int) -> bytes:
    return np.random.default_rng(1).bytes(size)


def with_plan(packed, path, change, *extra):
    """A copy of a comparison's zip with a changed plan.json and further members."""
    with zipfile.ZipFile(packed) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            data = old.read(member)
            if member.filename == "plan.json":
                data = json.dumps(json.loads(data) | change).encode()
            new.writestr(member, data)
        for name, data in extra:
            new.writestr(name, data)
    return path
