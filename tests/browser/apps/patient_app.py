"""app.py whose decoder takes its time, as a large model's does, so that a take can be stopped.

The nano voice says half a minute in two seconds: a browser test on a loaded machine may press Stop
too late. STEP_SECONDS is how long each step waits.
"""

from __future__ import annotations

import os
import time

STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.01"))


def main() -> None:
    from dia_demo.engine.loop import Batch
    from dia_demo.services.settings import Settings
    from dia_demo.services.synthesis import Synthesis
    from dia_demo.ui.page import build_ui, launch_options

    step = Batch.step

    def patient(batch) -> None:
        time.sleep(STEP_SECONDS)
        step(batch)

    Batch.step = patient
    settings = Settings.from_env()
    build_ui(Synthesis(settings)).launch(**launch_options(settings))


if __name__ == "__main__":
    main()
