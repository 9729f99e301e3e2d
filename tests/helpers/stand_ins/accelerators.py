"""Devices with a fault behind the interface of a real one, and services that run on them."""

import threading
from functools import partial

from dia_demo.accelerator.accelerator import Accelerator
from dia_demo.accelerator.guard import Limits, WaveformBounds
from dia_demo.accelerator.selfcheck.report import (
    STAGES,
    Race,
    SelfCheckReport,
    StageReport,
    StageVerdict,
)
from dia_demo.accelerator.selfcheck.verdicts import VerdictStore
from dia_demo.accelerator.status import DeviceStatus
from dia_demo.config import GenerationParams, RuntimeConfig
from dia_demo.families.resolve import resolve
from dia_demo.services.settings import Settings
from dia_demo.services.synthesis import Synthesis
from dia_demo.services.take import Request
from tests.accelerator.test_selfcheck import PLAN
from tests.helpers.stand_ins.faults import CARD, MIB, FaultyBackend

ANYTHING = WaveformBounds(high_band=2.0, clipped=2.0, dc=9.0, crest_db=-1.0)
LIMITS = Limits(step_seconds=3.0, drift_every=4, memory_slack=64 * MIB)
FASTER = Race(2.0, 1.0, "float32")


def stand_in(fault="healthy", late=10, bounds=ANYTHING, limits=LIMITS, store=None) -> Accelerator:
    """A device with a fault, behind the interface of a real one."""
    return Accelerator(
        device="xpu",
        store=store or VerdictStore(None),
        open=partial(FaultyBackend, fault, late),
        status=lambda: DeviceStatus(True, "", CARD),
        plan=PLAN,
        bounds=bounds,
        limits=limits,
    )


def mark_trusted(accelerator: Accelerator, folder, race=FASTER, failure="") -> Accelerator:
    """With a verdict in the store, as after a passed check."""
    stages = tuple(
        StageReport(n, title, StageVerdict.PASS, 1e-4, "L2", 0.0) for n, title in STAGES.items()
    )
    key = accelerator.key(folder, "float32")
    accelerator.store.keep(SelfCheckReport(key, CARD, "small", "now", stages, race, 1.0, failure))
    return accelerator


def service(accelerator: Accelerator) -> Synthesis:
    return Synthesis(Settings(), lambda device: accelerator)


def request(folder, device="xpu", seed=5, sound=False, **runtime) -> Request:
    params = GenerationParams(temperature=1.0, max_tokens=60, top_k=20, seed=seed)
    runtime = RuntimeConfig(model=str(folder), device=device, threads=1, **runtime)
    script = "[S1] Hello there. [S2] Hi."
    return Request(script, params, resolve(str(folder)), runtime, with_audio=sound)


def events_of(synthesis, asked) -> list:
    return list(synthesis.stream(asked, threading.Event()))
