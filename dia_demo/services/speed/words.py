"""What this machine's speed means for the recommended model, as a sentence."""

from __future__ import annotations

from dataclasses import replace

from dia_demo.config import RuntimeConfig
from dia_demo.families.resolve import recommended_model
from dia_demo.services.speed.estimate import precision_here
from dia_demo.services.speed.machine_speed import EXAMPLE_SECONDS, MachineSpeed
from dia_demo.services.wording import about_duration

# Faster than what auto chooses, but with some loss of quality, so it is named as well.
FASTEST = "int4"


def recommended_sentence(speed: MachineSpeed) -> str:
    """How long the recommended model takes here, or why it cannot run; empty if that is not
    known."""
    info = recommended_model()
    name, runtime = info.profile.short_name, RuntimeConfig(info.name, threads=speed.threads)
    precision, shortage = precision_here(info, runtime)
    if shortage is not None:
        return f"{name} cannot run on this machine: {shortage.rstrip('.')}."
    times = {}
    for each in dict.fromkeys((precision, FASTEST)):
        rate = speed.seconds_per_second(info, replace(runtime, precision=each))
        if rate is not None:
            times[each] = about_duration(EXAMPLE_SECONDS * rate)
    if precision not in times:
        return ""
    pace = speed.pace(info, runtime, EXAMPLE_SECONDS)
    source = "measured" if pace is not None and pace.measured else "estimated"
    others = "".join(f", {time} with {each}" for each, time in times.items() if each != precision)
    return (
        f"{name} takes {times[precision]} for {EXAMPLE_SECONDS:.0f} seconds of speech on this "
        f"machine with {precision}, which auto chooses{others} ({source})."
    )
