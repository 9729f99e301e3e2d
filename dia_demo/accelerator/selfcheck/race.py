"""Is the device worth using? Its steps a second against those of the CPU at its best here."""

from __future__ import annotations

from dia_demo.accelerator.selfcheck.context import CheckContext
from dia_demo.accelerator.selfcheck.model_stages import steps_per_second
from dia_demo.accelerator.selfcheck.report import Race
from dia_demo.config import RuntimeConfig
from dia_demo.engine.engine import Engine
from dia_demo.engine.family import ModelInfo
from dia_demo.task import result_of


def race(context: CheckContext, info: ModelInfo, threads: int) -> Race:
    """Run the same row with guidance on both, on the CPU as the engine would by default: precision
    "auto" and the fastest kernels."""
    steps = context.plan.race_steps
    on_device = steps_per_second(context.device_model, steps)
    # Three copies of a large model may not fit into memory, so the reference goes first.
    context.drop_reference()
    engine = result_of(Engine.load(info, RuntimeConfig(info.name, threads=threads)))
    on_cpu = steps_per_second(engine.model, steps)
    return Race(on_device, on_cpu, engine.placement.precision)
