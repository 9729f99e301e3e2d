"""app.py over a stand-in for a card, so that browser tests can see one pass, fail and hang.

Which fault it has stands in the file that STAND_IN names (see faults.as_written), and is read
whenever the device's process starts. Users cannot reach it: the app itself knows real cards alone.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path


def main() -> None:
    # Here and not above: the device's own process begins with this file too.
    from dia_demo.accelerator.accelerator import Accelerator
    from dia_demo.accelerator.guard import Limits, WaveformBounds
    from dia_demo.accelerator.selfcheck.context import CheckPlan
    from dia_demo.accelerator.selfcheck.verdicts import VerdictStore
    from dia_demo.accelerator.status import DeviceStatus
    from dia_demo.server.run import serve
    from dia_demo.services.settings import Settings
    from dia_demo.services.synthesis import Synthesis
    from dia_demo.ui.page import build_ui
    from tests.helpers.stand_ins.faults import CARD, MIB, as_written

    accelerator = Accelerator(
        device="xpu",
        store=VerdictStore(None),
        open=partial(as_written, Path(os.environ["STAND_IN"])),
        status=lambda: DeviceStatus(True, "", CARD),
        plan=CheckPlan(
            linear_rows=(2,),
            linear_repeats=2,
            attention_repeats=2,
            fused_repeats=1,
            self_lengths=(1, 17),
            cross_lengths=(16,),
            same_repeats=2,
            codec_channels=8,
            steps=4,
            soak_steps=12,
            race_steps=8,
            poison_bytes=2**16,
        ),
        # Random weights hiss.
        bounds=WaveformBounds(high_band=2.0, clipped=2.0, dc=9.0, crest_db=-1.0),
        limits=Limits(step_seconds=6.0, memory_slack=64 * MIB),
    )
    settings = Settings.from_env()
    synthesis = Synthesis(settings, lambda device: accelerator)
    serve(build_ui(synthesis), synthesis)


if __name__ == "__main__":
    main()
