"""The processor's features, and an override to behave as on a processor with fewer.

No other module detects features. They have LLVM's names ("avx512vnni", "bf16"), since the kernels
are compiled for what LLVM detects.

For contributors: DIA_CPU limits torch, oneDNN, MKL and numba to a class of processors, such as
"avx2". The libraries read their settings when they load, so `dia_demo/__init__.py` applies the
override before anything else is imported. `NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES`, which set the
processor that numba compiles for, are respected here as well.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata

from dia_demo.errors import InputError

VARIABLE = "DIA_CPU"
NATIVE = "native"


@dataclass(frozen=True)
class ProcessorClass:
    """Processors with the same instructions, and the libraries' settings that limit them to these.

    required: the features of LLVM that a processor of another class needs to act as one of these.
    numba_cpu: a processor known to LLVM without features beyond `required`.
    """

    required: tuple[str, ...]
    numba_cpu: str
    torch: str
    onednn: str
    mkl: str

    @property
    def settings(self) -> dict[str, str]:
        """The libraries' environment variables."""
        return {
            "ATEN_CPU_CAPABILITY": self.torch,
            "ONEDNN_MAX_CPU_ISA": self.onednn,
            "MKL_ENABLE_INSTRUCTIONS": self.mkl,
            "NUMBA_CPU_NAME": self.numba_cpu,
            "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in self.required),
        }

    @property
    def missing(self) -> list[str]:
        """What this machine's processor lacks; nothing if its features are not known."""
        host = _host_features()
        return sorted(set(self.required) - host) if host else []


_AVX2 = tuple("avx avx2 bmi bmi2 f16c fma lzcnt movbe popcnt".split())
_AVX512 = (*_AVX2, *"avx512f avx512cd avx512bw avx512dq avx512vl".split())
CLASSES = {
    # Haswell to Comet Lake, Zen 1 to Zen 3.
    "avx2": ProcessorClass(_AVX2, "haswell", "avx2", "AVX2", "AVX2"),
    # Alder Lake and later without AVX-512.
    "avx-vnni": ProcessorClass((*_AVX2, "avxvnni"), "haswell", "avx2", "AVX2_VNNI", "AVX2"),
    # Skylake servers.
    "avx512": ProcessorClass(_AVX512, "skylake-avx512", "avx512", "AVX512_CORE", "AVX512"),
    # Cascade Lake, Ice Lake, and virtual machines that hide bfloat16 and AMX.
    "avx512-vnni": ProcessorClass(
        (*_AVX512, "avx512vnni"), "cascadelake", "avx512", "AVX512_CORE_VNNI", "AVX512"
    ),
}


def apply_override() -> None:
    """Limit the libraries to the class in DIA_CPU; does nothing if it is not set.

    What `check_override` rejects is ignored here. Raises RuntimeError if torch or numba is
    already loaded, since it would have no effect on them.
    """
    name = override()
    if name is None:
        return
    settings = CLASSES[name].settings
    late = [library for library in ("torch", "numba") if sys.modules.get(library)]
    if late and any(os.environ.get(key) != value for key, value in settings.items()):
        raise RuntimeError(f"{VARIABLE} has no effect after {late[0]}: import dia_demo first.")
    os.environ.update(settings)


def check_override(env: Mapping[str, str]) -> None:
    """Raise InputError if DIA_CPU is not a class, or the class is not possible on this machine."""
    name = env.get(VARIABLE) or NATIVE
    if name != NATIVE and name not in CLASSES:
        allowed = ", ".join((NATIVE, *CLASSES))
        raise InputError(f"{VARIABLE} must be one of {allowed}, not {name!r}.")
    if name == NATIVE:
        return
    if not is_x86():
        raise InputError(f"{VARIABLE}={name} needs an x86-64 processor: leave it unset here.")
    if missing := CLASSES[name].missing:
        raise InputError(
            f"{VARIABLE}={name} needs a processor with {', '.join(missing)}: leave it unset here."
        )


def classes_here() -> list[str]:
    """The classes that DIA_CPU can limit this machine's processor to."""
    return [name for name, limits in CLASSES.items() if is_x86() and not limits.missing]


def override() -> str | None:
    """The class that DIA_CPU limits this process to, None without a limit."""
    name = os.environ.get(VARIABLE, "")
    return name if name in CLASSES and is_x86() and not CLASSES[name].missing else None


@cache
def features() -> frozenset[str]:
    """Instruction sets that may be used, by LLVM's names.

    Empty if llvmlite is missing or does not know the processor: then only the architecture's
    baseline is assumed.
    """
    if os.environ.get("NUMBA_CPU_NAME"):
        listed = os.environ.get("NUMBA_CPU_FEATURES", "").split(",")
        return frozenset(name[1:] for name in listed if name.startswith("+"))
    return _host_features()


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


def class_name() -> str:
    """The class of processors that rounds as this one does: a name in CLASSES, "avx512-bf16" with
    all instructions that the kernels use, or else the architecture."""
    if "avx512bf16" in features() and set(CLASSES["avx512-vnni"].required) <= features():
        return "avx512-bf16"
    fitting = [name for name, limits in CLASSES.items() if set(limits.required) <= features()]
    return fitting[-1] if fitting else platform.machine()


def is_arm64() -> bool:
    """Whether it is a 64-bit ARM, which always has NEON."""
    return platform.machine() in ("aarch64", "arm64", "ARM64")


def is_x86() -> bool:
    """Whether it is a 64-bit x86."""
    return platform.machine() in ("x86_64", "AMD64")


@cache
def _host_features() -> frozenset[str]:
    """The features of this machine's processor, whatever the libraries are limited to."""
    try:
        import llvmlite.binding as llvm

        return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    except (ImportError, OSError, RuntimeError):
        return frozenset()


# What decides how sums are rounded, and with that which take a seed gives: the order of additions
# depends on the processor's instructions and on the libraries, and one other bit in a step may
# become another take. So a take says where it was made.

# What must be the same for the same take, in words.
_NAMES = {
    "processor": "a processor of the class",
    "torch": "torch",
    "numba": "numba",
    "weights": "int4 weights",
}
_MOST_CHARACTERS = 40


@cache
def _version(package: str) -> str:
    """The version without the name of the build."""
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:
        return "none"


def numerics_here() -> dict[str, str]:
    """The class of this processor and the versions of the libraries."""
    return {"processor": class_name()} | {name: _version(name) for name in ("torch", "numba")}


def numerics_from(saved: object) -> dict[str, str]:
    """The numerics in a file; what cannot be one is left out."""
    saved = saved if isinstance(saved, Mapping) else {}
    return {
        name: value
        for name, value in saved.items()
        if name in _NAMES and isinstance(value, str) and len(value) <= _MOST_CHARACTERS
    }


def why_it_may_differ(saved: object, weights: str | None = None) -> str | None:
    """A sentence, if what was made elsewhere may come out differently here; None if it will not,
    or if the file does not say (earlier versions).

    weights: those of int4 here, as `numerics` names them; None if they are not known.
    """
    here = numerics_here() | ({} if weights is None else {"weights": weights})
    there = numerics_from(saved).items()
    other = {name: value for name, value in there if value != here.get(name, value)}
    if not other:
        return None
    made = " and ".join(f"{_NAMES[name]} {value}" for name, value in other.items())
    this = " and ".join(f"{_NAMES[name]} {here[name]}" for name in other)
    return (
        f"It was made with {made}, but this machine has {this}. They round differently, so the "
        "same seed may give a different take."
    )
