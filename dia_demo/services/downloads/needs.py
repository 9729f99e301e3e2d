"""What a model that is not here needs of this machine, before its download starts."""

from __future__ import annotations

from dataclasses import dataclass

from dia_demo.config import RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import model_bytes, needed_bytes
from dia_demo.machine import system
from dia_demo.services.speed.estimate import precision_here
from dia_demo.services.speed.machine_speed import MachineSpeed


@dataclass(frozen=True)
class Needs:
    """Bytes of memory and disk, and the expected realtime factor.

    precision: the one a take would run in here. prepared: of weights in that precision, which the
    first take writes; 0 where it writes none. free_memory: None if unknown. shortage: why the model
    cannot run here. realtime: None if nothing was measured.
    """

    precision: str
    prepared: int
    memory: int
    free_memory: int | None
    shortage: str | None
    realtime: float | None


def needs_of(info: ModelInfo, runtime: RuntimeConfig, speed: MachineSpeed) -> Needs:
    """What `info`'s model needs with the precision of `runtime`, on the CPU."""
    precision, shortage = precision_here(info, runtime)
    has_own = precision == "float32" or info.config.prepared is not None
    free, wait = system.available_bytes(), speed.seconds_per_second(info, runtime)
    return Needs(
        precision,
        prepared=0 if has_own else model_bytes(info, precision),
        memory=needed_bytes(info, precision),
        # What this program uses now is freed before another model is loaded.
        free_memory=None if free is None else free + system.resident_bytes(),
        shortage=shortage,
        realtime=1 / wait if wait else None,
    )
