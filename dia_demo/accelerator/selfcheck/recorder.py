"""Comparing a device's results with the CPU's: the worst error, and what was wrong where."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

# Enough to see a pattern; a device that is wrong everywhere would fill pages.
TOLD = 5


@dataclass
class Fault:
    """One kind of wrongness at one place: how often, and at worst by how much."""

    count: int = 0
    error: float = 0.0
    detail: str = ""


@dataclass
class Tally:
    """What one stage measures. `now` is what is being tried, for errors that break it off."""

    tolerance: float
    unit: str = "relative L2"
    error: float = 0.0
    measured: bool = False
    now: str = ""
    facts: list[str] = field(default_factory=list)
    _faults: dict[tuple[str, str], Fault] = field(default_factory=dict)
    _calls: dict[str, int] = field(default_factory=dict)
    _problems: list[str] = field(default_factory=list)

    def compare(self, got: Tensor, expected: Tensor, where: str, heads: int = 0) -> None:
        """Relative L2 error of CPU tensors; with `heads`, of the worst head (last dim is H * K)."""
        self._begin(where)
        if got.shape != expected.shape:
            self._fault("has another shape", math.inf, f"{list(got.shape)}")
            return
        got, expected = got.double(), expected.double()
        if not got.isfinite().all():
            self._fault("gives NaN or infinity", math.inf)
        elif not got.any() and expected.any():
            self._fault("gives all zeros", 1.0)
        else:
            error, part = _relative_error(got, expected, heads)
            self.measure(error, where, part)

    def same(self, got: Tensor, expected: Tensor, where: str) -> None:
        """Bit for bit the same."""
        self._begin(where)
        if got.shape != expected.shape or got.dtype != expected.dtype:
            self._fault("has another shape or type", math.inf)
        elif not torch.equal(got, expected):
            wrong = (got != expected).double().mean().item()
            self._fault("comes out changed", wrong, f"{100 * wrong:.2g}% of the values")

    def measure(self, error: float, where: str, part: str = "") -> None:
        """Hold one measured figure against the tolerance."""
        self.now, self.measured = where, True
        self.error = max(self.error, error)
        if not error <= self.tolerance:
            self._fault("is off", error, part)

    def wrong(self, problem: str) -> None:
        """Something that no figure measures."""
        self._problems.append(problem)

    def trying(self, what: str) -> None:
        self.now = what

    @property
    def findings(self) -> tuple[str, ...]:
        """What was wrong, worst named first, at most TOLD of each sort."""
        worst = sorted(self._faults.items(), key=lambda one: -one[1].error)
        lines = [self._line(where, kind, fault) for (where, kind), fault in worst[:TOLD]]
        if len(worst) > TOLD:
            lines.append(f"and {len(worst) - TOLD} more places")
        return (*self._problems[:TOLD], *lines)

    def _begin(self, where: str) -> None:
        self.now, self.measured = where, True
        self._calls[where] = self._calls.get(where, 0) + 1

    def _fault(self, kind: str, error: float, detail: str = "") -> None:
        self.error = max(self.error, error)
        fault = self._faults.setdefault((self.now, kind), Fault())
        fault.count += 1
        if error >= fault.error:
            fault.error, fault.detail = error, detail

    def _line(self, where: str, kind: str, fault: Fault) -> str:
        calls = self._calls.get(where, fault.count)
        often = f" in {fault.count} of {calls} calls" if calls > 1 else ""
        by = f" by {fault.error:.1e} (allowed {self.tolerance:.0e})" if kind == "is off" else ""
        detail = f", {fault.detail}" if fault.detail else ""
        return f"{where} {kind}{by}{often}{detail}"


def _relative_error(got: Tensor, expected: Tensor, heads: int) -> tuple[float, str]:
    if not heads:
        return ((got - expected).norm() / expected.norm().clamp_min(1e-30)).item(), ""
    got, expected = (
        x.unflatten(-1, (heads, -1)).transpose(-2, 0).flatten(1) for x in (got, expected)
    )
    errors = (got - expected).norm(dim=1) / expected.norm(dim=1).clamp_min(1e-30)
    return errors.max().item(), f"worst at head {errors.argmax().item()} of {heads}"
