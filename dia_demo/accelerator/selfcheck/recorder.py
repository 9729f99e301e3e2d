"""Comparing a device's results with the CPU's: the largest error, and what was wrong where."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

# Enough to show a pattern; a device that is wrong everywhere would fill pages.
MAX_FINDINGS = 5


@dataclass
class FaultRecord:
    """One kind of fault at one place: how often it occurred, and its largest error."""

    count: int = 0
    error: float = 0.0
    detail: str = ""


@dataclass
class StageRecorder:
    """What one stage measures. `current` is what is being tested, for errors that end the stage."""

    tolerance: float
    unit: str = "relative L2"
    error: float = 0.0
    measured: bool = False
    current: str = ""
    facts: list[str] = field(default_factory=list)
    _faults: dict[tuple[str, str], FaultRecord] = field(default_factory=dict)
    _calls: dict[str, int] = field(default_factory=dict)
    _problems: list[str] = field(default_factory=list)

    def compare(self, actual: Tensor, expected: Tensor, where: str, heads: int = 0) -> None:
        """Relative L2 error of CPU tensors; with `heads`, of the worst head (last dim is H * K)."""
        self._begin(where)
        if actual.shape != expected.shape:
            self._add_fault("has another shape", math.inf, f"{list(actual.shape)}")
            return
        actual, expected = actual.double(), expected.double()
        if not actual.isfinite().all():
            self._add_fault("gives NaN or infinity", math.inf)
        elif not actual.any() and expected.any():
            self._add_fault("gives all zeros", 1.0)
        else:
            error, part = _relative_error(actual, expected, heads)
            self.measure(error, where, part)

    def compare_bits(self, actual: Tensor, expected: Tensor, where: str) -> None:
        """Bitwise equality of CPU tensors."""
        self._begin(where)
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            self._add_fault("has another shape or type", math.inf)
        elif not torch.equal(actual, expected):
            wrong = (actual != expected).double().mean().item()
            self._add_fault("comes out changed", wrong, f"{100 * wrong:.2g}% of the values")

    def measure(self, error: float, where: str, part: str = "") -> None:
        """Compare one measured error with the tolerance."""
        self.current, self.measured = where, True
        self.error = max(self.error, error)
        if not error <= self.tolerance:
            self._add_fault("is off", error, part)

    def add_problem(self, problem: str) -> None:
        """Record a fault that has no error figure."""
        self._problems.append(problem)

    def begin(self, what: str) -> None:
        """Note what is tested next."""
        self.current = what

    @property
    def findings(self) -> tuple[str, ...]:
        """What was wrong, largest error first, at most MAX_FINDINGS of each sort."""
        worst = sorted(self._faults.items(), key=lambda item: -item[1].error)
        lines = [self._line(where, kind, fault) for (where, kind), fault in worst[:MAX_FINDINGS]]
        if len(worst) > MAX_FINDINGS:
            lines.append(f"and {len(worst) - MAX_FINDINGS} more places")
        return (*self._problems[:MAX_FINDINGS], *lines)

    def _begin(self, where: str) -> None:
        self.current, self.measured = where, True
        self._calls[where] = self._calls.get(where, 0) + 1

    def _add_fault(self, kind: str, error: float, detail: str = "") -> None:
        self.error = max(self.error, error)
        fault = self._faults.setdefault((self.current, kind), FaultRecord())
        fault.count += 1
        if error >= fault.error:
            fault.error, fault.detail = error, detail

    def _line(self, where: str, kind: str, fault: FaultRecord) -> str:
        calls = self._calls.get(where, fault.count)
        often = f" in {fault.count} of {calls} calls" if calls > 1 else ""
        by = f" by {fault.error:.1e} (allowed {self.tolerance:.0e})" if kind == "is off" else ""
        detail = f", {fault.detail}" if fault.detail else ""
        return f"{where} {kind}{by}{often}{detail}"


def _relative_error(actual: Tensor, expected: Tensor, heads: int) -> tuple[float, str]:
    if not heads:
        return ((actual - expected).norm() / expected.norm().clamp_min(1e-30)).item(), ""
    actual, expected = (
        x.unflatten(-1, (heads, -1)).transpose(-2, 0).flatten(1) for x in (actual, expected)
    )
    errors = (actual - expected).norm(dim=1) / expected.norm(dim=1).clamp_min(1e-30)
    return errors.max().item(), f"worst at head {errors.argmax().item()} of {heads}"
