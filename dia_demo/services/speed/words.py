"""What this machine's speed means for models of full size, as sentences."""

from __future__ import annotations

from dataclasses import replace

from dia_demo.config import RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.families.resolve import assumed_info, known_models
from dia_demo.services.speed.estimate import precision_here
from dia_demo.services.speed.machine_speed import EXAMPLE_SECONDS, MachineSpeed
from dia_demo.services.wording import about_duration

# Faster than what auto chooses, but with some loss of quality, so it is named as well.
FASTEST = "int4"


def full_size_sentences(speed: MachineSpeed, without: str | None = None) -> str:
    """How long the recommended model takes here, or why it cannot run, and how long the other
    listed ones take that were measured here; empty if nothing is known.

    without: the name of a model that is left out.
    """
    infos = [info for info in map(assumed_info, known_models()) if not info.profile.included]
    known = (_sentence(info, speed) for info in infos if info.name != without)
    return " ".join(sentence for sentence in known if sentence)


def _sentence(info: ModelInfo, speed: MachineSpeed) -> str:
    name, runtime = info.profile.short_name, RuntimeConfig(info.name, threads=speed.threads)
    precision, shortage = precision_here(info, runtime)
    if shortage is not None:
        is_told = info.is_recommended
        return f"{name} cannot run on this machine: {shortage.rstrip('.')}." if is_told else ""
    times = {}
    for each in dict.fromkeys((precision, FASTEST)):
        rate = speed.seconds_per_second(info, replace(runtime, precision=each))
        if rate is not None:
            times[each] = about_duration(EXAMPLE_SECONDS * rate)
    if precision not in times:
        return ""
    pace = speed.pace(info, runtime, EXAMPLE_SECONDS)
    is_measured = pace is not None and pace.measured
    if not is_measured and not info.is_recommended:
        return ""
    source = "measured" if is_measured else "estimated"
    others = "".join(f", {time} with {each}" for each, time in times.items() if each != precision)
    return (
        f"{name} takes {times[precision]} for {EXAMPLE_SECONDS:.0f} seconds of speech on this "
        f"machine with {precision}, which auto chooses{others} ({source})."
    )
