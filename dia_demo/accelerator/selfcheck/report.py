"""What a self-check found: frozen records, as text for a person and as JSON for a bug report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dia_demo.accelerator.backend import Card
from dia_demo.errors import RunError

PASS, FAIL, NOTE, SKIPPED = "pass", "fail", "note", "skipped"
# Titles by number: the nine stages, in order.
STAGES = {
    1: "Device, memory, place",
    2: "Linears at this model's shapes",
    3: "Attention over poisoned memory",
    4: "Norms, rotation, cache, reshapes",
    5: "Top-k, sort, softmax (sampling stays on the CPU)",
    6: "Copies, and the same input again",
    7: "Codec layers (the codec stays on the CPU)",
    8: "Teacher-forced steps against the CPU",
    9: "Soak: memory and drift",
}
MARKS = {PASS: "ok", FAIL: "NO", NOTE: "--", SKIPPED: ".."}


@dataclass(frozen=True)
class StageReport:
    """One stage. error is the worst measured, in `unit`, None where nothing could be measured.

    verdict: "pass", "fail", "note" (found wrong, but never used here) or "skipped". findings name
    what was wrong and where; facts tell what was seen.
    """

    number: int
    title: str
    verdict: str
    tolerance: float
    unit: str
    error: float | None = None
    seconds: float = 0.0
    findings: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()

    def as_text(self) -> str:
        measured = "nothing measured" if self.error is None else f"{self.error:.1e}"
        head = (
            f"{MARKS[self.verdict]:>4}  {self.number}. {self.title}: {measured} of "
            f"{self.tolerance:.0e} {self.unit}, {self.seconds:.1f} s"
        )
        return "\n".join([head, *(f"      {line}" for line in (*self.findings, *self.facts))])


@dataclass(frozen=True)
class Race:
    """Decoder steps a second with guidance, on the device and on the CPU at its best here."""

    device_steps: float
    cpu_steps: float
    cpu_precision: str

    @property
    def faster(self) -> bool:
        return self.device_steps > self.cpu_steps

    def as_text(self) -> str:
        verdict = "faster" if self.faster else "NOT faster"
        return (
            f"{self.device_steps:.1f} steps/s here, {self.cpu_steps:.1f} on the CPU "
            f"({self.cpu_precision}): {verdict}"
        )


@dataclass(frozen=True)
class VerdictKey:
    """What a verdict holds for. When any of it changes, the check must pass again."""

    device: str
    card: str
    driver: str
    torch: str
    checkpoint: str
    precision: str

    def changed(self, other: VerdictKey) -> tuple[str, ...]:
        """Names of the fields that differ."""
        mine, theirs = asdict(self), asdict(other)
        return tuple(name for name in mine if mine[name] != theirs[name])


@dataclass(frozen=True)
class Report:
    """One self-check, whole or as far as it got. `model` is the checkpoint's name.

    `failure` says how a check or a later run ended, if that was no stage's own verdict.
    """

    key: VerdictKey
    card: Card
    model: str
    made_at: str
    stages: tuple[StageReport, ...] = ()
    race: Race | None = None
    seconds: float = 0.0
    failure: str = ""

    @property
    def passed(self) -> bool:
        """All nine stages ran, and nothing that is used here was wrong."""
        done = {stage.number for stage in self.stages if stage.verdict in (PASS, NOTE)}
        return not self.failure and done == set(STAGES)

    @property
    def worth_it(self) -> bool:
        return self.race is not None and self.race.faster

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it did not pass, each with its stage."""
        failed = [stage for stage in self.stages if stage.verdict == FAIL]
        told = [f"stage {one.number} ({one.title}): {'; '.join(one.findings)}" for one in failed]
        return (*told, self.failure) if self.failure else tuple(told)

    def headline(self) -> str:
        """One sentence: the verdict and its first reason."""
        if self.passed:
            speed = "" if self.race is None else f" {self.race.as_text()}."
            return f"The self-check passed on {self.card.name}.{speed}"
        why = self.problems[0] if self.problems else "it did not get through all stages"
        return f"The self-check did not pass on {self.card.name}: {why}."

    def as_text(self) -> str:
        key = self.key
        lines = [
            f"Self-check of {self.card.name} ({key.device}), {self.made_at}",
            f"driver {key.driver}, torch {key.torch}, {key.precision}, {self.model} "
            f"[{key.checkpoint}], integrated: {self.card.integrated}",
            *(stage.as_text() for stage in self.stages),
        ]
        if self.race is not None:
            lines.append(f"Race: {self.race.as_text()}")
        if self.failure:
            lines.append(f"Ended early: {self.failure}")
        verdict = "PASSED" if self.passed else "DID NOT PASS"
        return "\n".join([*lines, f"{verdict} in {self.seconds:.0f} s"])

    def to_dict(self) -> dict:
        """Plain values; what a person would ask first stands at the top."""
        asked = {"passed": self.passed, "worth_it": self.worth_it}
        return asked | {"problems": list(self.problems)} | asdict(self)

    @classmethod
    def from_dict(cls, raw: Mapping) -> Report:
        """Raises KeyError or TypeError for what `to_dict` did not write."""
        stages = tuple(
            StageReport(**{**one, "findings": tuple(one["findings"]), "facts": tuple(one["facts"])})
            for one in raw["stages"]
        )
        return cls(
            key=VerdictKey(**raw["key"]),
            card=Card(**raw["card"]),
            model=str(raw["model"]),
            made_at=str(raw["made_at"]),
            stages=stages,
            race=None if raw["race"] is None else Race(**raw["race"]),
            seconds=float(raw["seconds"]),
            failure=str(raw["failure"]),
        )

    def save(self, path: Path) -> Path:
        """Write JSON (.json) or text (any other name). Raises RunError where that cannot be."""
        is_json = path.suffix.lower() == ".json"
        text = json.dumps(self.to_dict(), indent=1) if is_json else self.as_text()
        try:
            path.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise RunError(f"{path} could not be written: {error.strerror}.") from error
        return path


def with_stage(report: Report, stage: StageReport) -> Report:
    """The report with one more stage, in place of an earlier one of that number."""
    kept = [one for one in report.stages if one.number != stage.number]
    return replace(report, stages=tuple(sorted([*kept, stage], key=lambda one: one.number)))


def finite(value: float) -> float | None:
    """JSON knows neither NaN nor infinity: findings name them."""
    return value if math.isfinite(value) else None
