"""A description of this machine for people."""

from __future__ import annotations

import platform
from dataclasses import dataclass

import torch

from dia_demo.machine import processor, system


@dataclass(frozen=True)
class Machine:
    """cores: granted to this process. simd: the widest vectors in use. memory_bytes: the most that
    this process may use. free_bytes: what it could use now.
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
    # torch 2.8 does not know the name.
    capabilities: dict = getattr(torch.cpu, "get_capabilities", dict)()
    name = capabilities.get("cpu_name") or platform.processor() or "CPU"
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


def torch_build() -> str:
    """The version of torch, and what to do where it is a CUDA build that nothing here uses."""
    return torch_remark() or torch.__version__


def torch_remark() -> str:
    """A remark on a CUDA build of torch, which takes gigabytes for nothing; empty for others."""
    if torch.version.cuda is None or system.is_zero_gpu():
        return ""
    return (
        f"{torch.__version__} is a build for NVIDIA GPUs, which this program does not use. The CPU "
        "build saves gigabytes: pip uninstall -y torch && pip install -r requirements-cpu.txt"
    )


def _simd(capability: str, processor: str) -> str:
    """The instruction set by its usual name; torch calls that of any 64-bit ARM "DEFAULT"."""
    if capability == "DEFAULT" and processor.lower() in ("aarch64", "arm64"):
        return "NEON"
    return {"AVX512": "AVX-512", "DEFAULT": "no wide vectors"}.get(capability, capability)
