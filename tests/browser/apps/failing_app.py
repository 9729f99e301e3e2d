"""app.py whose decoder gives one take non-finite logits, once, so that browser tests see it fail.

The take is the second row of the batch that runs while the file named in FAULT exists; the fault
uses the file up. Users cannot reach it: the app itself knows no such file.
"""

from __future__ import annotations

import os
from pathlib import Path

AT_STEP = 20


def main() -> None:
    from dia_demo.engine.batch import Batch
    from dia_demo.server.run import serve
    from dia_demo.services.settings import Settings
    from dia_demo.services.synthesis import Synthesis
    from dia_demo.ui.page import build_ui

    fault = Path(os.environ["FAULT"])
    sound = Batch._sample

    def faulty(batch, logits_BCV) -> None:
        if len(batch._rows) > 1 and batch._rows[-1].steps >= AT_STEP and fault.exists():
            fault.unlink()
            logits_BCV[-1, 0, 0] = float("nan")
        sound(batch, logits_BCV)

    Batch._sample = faulty
    settings = Settings.from_env()
    synthesis = Synthesis(settings)
    serve(build_ui(synthesis), synthesis)


if __name__ == "__main__":
    main()
