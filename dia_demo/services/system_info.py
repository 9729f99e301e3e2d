"""What this machine is, as a person would say it."""

from __future__ import annotations

import platform
from dataclasses import dataclass

import torch

from dia_demo import processor, system


@dataclass(frozen=True)
class Machine:
    """cores are those granted to this process; simd names the widest vectors in use.

    memory_bytes is what the process may have at most, free_bytes what it could have now.
    """

    cpu: str
    cores: int
    simd: str
    fast_bfloat16: bool
    memory_bytes: int | None
    free_bytes: int | None
    system: str


def describe_machine() -> Machine:
    """The processor, memory and system of this machine."""
    name = torch.cpu.get_capabilities().get("cpu_name") or platform.processor() or "CPU"
    limited = processor.override()
    return Machine(
        cpu=f"{name} (limited by DIA_CPU={limited})" if limited else str(name),
        cores=system.granted_cores(),
        simd=_simd(torch.backends.cpu.get_cpu_capability(), platform.machine()),
        fast_bfloat16=processor.multiplies_bfloat16(),
        memory_bytes=system.memory_bytes(),
        free_bytes=system.available_bytes(),
        system=f"{platform.system()} {platform.machine()}",
    )


def _simd(capability: str, processor: str) -> str:
    """torch's name for its code, which may be "DEFAULT" for any 64-bit ARM, as a person has it."""
    if capability == "DEFAULT" and processor.lower() in ("aarch64", "arm64"):
        return "NEON"
    return {"AVX512": "AVX-512", "DEFAULT": "no wide vectors"}.get(capability, capability)
