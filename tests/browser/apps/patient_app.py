"""app.py whose decoder takes its time, as a large model's does, so that a take can be stopped.

The nano voice says half a minute in two seconds: a browser test on a loaded machine may press Stop
too late. STEP_SECONDS is how long each step waits.
"""

from __future__ import annotations

import os
import time

STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.01"))


def main() -> None:
    import app
    from dia_demo.engine.batch import Batch

    step = Batch.step

    def patient(batch) -> None:
        time.sleep(STEP_SECONDS)
        step(batch)

    Batch.step = patient
    app.main()


if __name__ == "__main__":
    main()
