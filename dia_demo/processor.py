"""The processor's features, and an override to behave as on a processor with fewer.

No other module detects features. They have LLVM's names ("avx512vnni", "bf16"), since the kernels
are compiled for what LLVM detects.

For contributors: DIA_CPU=avx2 limits torch, oneDNN, MKL and numba to AVX2. The libraries read their
settings when they load, so `dia_demo/__init__.py` applies the override before anything else is
imported. `NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES`, which set the processor that numba compiles
for, are respected here as well.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from functools import cache

from dia_demo.errors import InputError

VARIABLE = "DIA_CPU"
NATIVE = "native"
HASWELL_FEATURES = "avx avx2 bmi bmi2 f16c fma lzcnt movbe popcnt"
# The libraries' settings, for each class of processor.
CLASSES: dict[str, dict[str, str]] = {
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in HASWELL_FEATURES.split()),
    },
}


def apply_override() -> None:
    """Limit the libraries to the class in DIA_CPU; does nothing if it is not set.

    A name that `check_override` rejects is ignored here. Raises RuntimeError if torch or numba is
    already loaded, since it would have no effect on them.
    """
    settings = CLASSES.get(os.environ.get(VARIABLE, ""))
    if settings is None or not _is_x86():
        return
    late = [name for name in ("torch", "numba") if sys.modules.get(name)]
    if late and any(os.environ.get(name) != value for name, value in settings.items()):
        raise RuntimeError(f"{VARIABLE} has no effect after {late[0]}: import dia_demo first.")
    os.environ.update(settings)


def check_override(env: Mapping[str, str]) -> None:
    """Raise InputError if DIA_CPU is not a class, or the class is not possible on this machine."""
    name = env.get(VARIABLE) or NATIVE
    if name != NATIVE and name not in CLASSES:
        allowed = ", ".join((NATIVE, *CLASSES))
        raise InputError(f"{VARIABLE} must be one of {allowed}, not {name!r}.")
    if name != NATIVE and not _is_x86():
        raise InputError(f"{VARIABLE}={name} needs an x86-64 processor: leave it unset here.")


def override() -> str | None:
    """The class that DIA_CPU limits this process to, None without a limit."""
    name = os.environ.get(VARIABLE)
    return name if name in CLASSES and _is_x86() else None


@cache
def features() -> frozenset[str]:
    """Instruction sets that may be used, by LLVM's names.

    Empty if llvmlite is missing or does not know the processor: then only the architecture's
    baseline is assumed.
    """
    if os.environ.get("NUMBA_CPU_NAME"):
        listed = os.environ.get("NUMBA_CPU_FEATURES", "").split(",")
        return frozenset(name[1:] for name in listed if name.startswith("+"))
    try:
        import llvmlite.binding as llvm

        return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    except (ImportError, OSError, RuntimeError):
        return frozenset()


def multiplies_bfloat16() -> bool:
    """Whether the processor has instructions for products of bfloat16.

    Without them torch multiplies bfloat16 in software, up to 500 times slower than float32.
    """
    return not features().isdisjoint(("avx512bf16", "amx-bf16", "bf16"))


def byte_product_lanes() -> int:
    """int32 lanes of the processor's dot product of bytes: 16, 8 or, without one, 0."""
    if {"avx512vnni", "avx512vl"} <= features():
        return 16
    return 8 if "avxvnni" in features() or "avx2" in features() else 0


def adds_byte_products_at_once() -> bool:
    """Whether one instruction adds four products of bytes (vpdpbusd); AVX2 alone takes three."""
    return {"avx512vnni", "avx512vl"} <= features() or "avxvnni" in features()


def has_avx512() -> bool:
    """Whether there are 32 registers of 512 bits; otherwise 16 of 256 bits are assumed."""
    return "avx512f" in features()


def _is_x86() -> bool:
    return platform.machine() in ("x86_64", "AMD64")
