"""app.py whose decoder takes its time, as a large model's does, so that a take can be stopped.

The nano voice says half a minute in two seconds: a browser test on a loaded machine may press Stop
too late. STEP_SECONDS is how long each step waits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.01"))


def main() -> None:
    import app
    from dia_demo.engine.batch import Batch
    from dia_demo.families.dia2.row import Dia2Batch

    for kind in (Batch, Dia2Batch):
        kind.step = patient(kind.step)
    app.main()


def patient(step: Callable[[Any], None]) -> Callable[[Any], None]:
    """A batch's step that waits first."""

    def wait_and_step(batch) -> None:
        time.sleep(STEP_SECONDS)
        step(batch)

    return wait_and_step


if __name__ == "__main__":
    main()
