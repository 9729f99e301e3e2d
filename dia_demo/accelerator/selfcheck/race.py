"""Is the device worth it? Steps a second against the CPU at its best on this machine."""

from __future__ import annotations

from pathlib import Path

from dia_demo.accelerator.selfcheck.context import Subject
from dia_demo.accelerator.selfcheck.model_stages import steps_per_second
from dia_demo.accelerator.selfcheck.report import Race
from dia_demo.config import RuntimeConfig
from dia_demo.task import result_of


def race(subject: Subject, folder: Path, threads: int) -> Race:
    """Both run the same row with guidance. The CPU runs as the engine would run it by itself:
    precision "auto" and the fastest kernels."""
    # The engine knows of self-checks, so it cannot be imported before it is needed.
    from dia_demo.engine.engine import Engine

    steps = subject.plan.race_steps
    on_device = steps_per_second(subject.hybrid, steps)
    # Three copies of a large model may not fit: the reference makes room for the CPU's own.
    subject.reference = None
    engine = result_of(Engine.load(RuntimeConfig(model=str(folder), threads=threads)))
    on_cpu = steps_per_second(engine.model, steps)
    return Race(on_device, on_cpu, engine.placement.precision)
