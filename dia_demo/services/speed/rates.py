"""What was measured of this machine's speed, and the machine that it belongs to."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from typing import Any

from dia_demo.services.measurements.types import QuickResult
from dia_demo.services.system_info import describe_machine


@cache
def machine_identity() -> dict[str, Any]:
    """What the rates depend on. If any of it differs, they are those of another machine."""
    machine = describe_machine()
    versions = {name: _version(name) for name in ("torch", "numba")}
    own = {name: getattr(machine, name) for name in ("cpu", "cores", "simd", "system")}
    return own | versions


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@dataclass
class Rates:
    """The measured rates.

    takes: by model, precision and threads; for each of the latest takes, the seconds per step and
    the seconds to decode a second of audio. stretches: seconds to change the speed of a second of
    audio. loads: seconds to load a model, by its name, precision and what it was loaded from.
    """

    quick: QuickResult | None = None
    takes: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    stretches: list[float] = field(default_factory=list)
    loads: dict[str, list[float]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> Rates:
        """Raises ValueError, TypeError, KeyError or AttributeError for invalid contents."""
        quick = None if raw["quick"] is None else QuickResult(**raw["quick"])
        takes = {
            str(key): [(_positive_rate(step), _positive_rate(codec)) for step, codec in last]
            for key, last in raw["takes"].items()
            if last
        }
        stretches = [_positive_rate(seconds) for seconds in raw["stretches"]]
        # Files that were written before there were any have none.
        loads = {
            str(key): [_positive_rate(seconds) for seconds in last]
            for key, last in raw.get("loads", {}).items()
            if last
        }
        if quick is not None:
            for name, rate in asdict(quick).items():
                if name != "undisturbed":
                    _positive_rate(rate)
        return cls(quick, takes, stretches, loads)


def _positive_rate(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"not a number: {value!r}")
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"not a rate: {value!r}")
    return float(value)
