"""What this machine's speed means for Dia-1.6B, as a sentence."""

from __future__ import annotations

from dia_demo.config import RuntimeConfig
from dia_demo.services.models import DIA_NAME, ModelRef
from dia_demo.services.speed.estimate import precision_here
from dia_demo.services.speed.machine_speed import EXAMPLE_SECONDS, MachineSpeed
from dia_demo.services.wording import about

NAME = "Dia-1.6B"
# Faster than what auto chooses, but with some loss of quality, so it is named as well.
FASTEST = "int4"


def dia_sentence(speed: MachineSpeed) -> str:
    """How long Dia-1.6B takes here, or why it cannot run; empty if nothing is known."""
    info = ModelRef.resolve(DIA_NAME).describe()
    runtime = RuntimeConfig(DIA_NAME, threads=speed.threads)
    precision, shortage = precision_here(info, runtime)
    if shortage is not None:
        return f"{NAME} cannot run on this machine: {shortage.rstrip('.')}."
    times = {}
    for name in dict.fromkeys((precision, FASTEST)):
        rate = speed.seconds_per_second(info, RuntimeConfig(DIA_NAME, name, threads=speed.threads))
        if rate is not None:
            times[name] = about(EXAMPLE_SECONDS * rate)
    if precision not in times:
        return ""
    pace = speed.pace(info, runtime, EXAMPLE_SECONDS)
    source = "measured" if pace is not None and pace.measured else "estimated"
    others = "".join(f", {time} with {name}" for name, time in times.items() if name != precision)
    return (
        f"{NAME} takes {times[precision]} for {EXAMPLE_SECONDS:.0f} seconds of speech on this "
        f"machine with {precision}, which auto chooses{others} ({source})."
    )
