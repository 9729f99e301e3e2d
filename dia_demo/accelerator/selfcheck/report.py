"""The result of a self-check: frozen records, as text for a person and as JSON for a bug report."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from dia_demo.accelerator.backend import Card
from dia_demo.errors import RunError

# Titles of the nine stages, by number, in order.
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


class StageVerdict(StrEnum):
    """NOTE: something was wrong that a run does not use."""

    PASS = "pass"
    FAIL = "fail"
    NOTE = "note"
    SKIPPED = "skipped"


MARKS = {
    StageVerdict.PASS: "ok",
    StageVerdict.FAIL: "NO",
    StageVerdict.NOTE: "--",
    StageVerdict.SKIPPED: "..",
}


@dataclass(frozen=True)
class StageReport:
    """One stage. error: the largest measured, in `unit`, None if nothing could be measured.

    findings: what was wrong and where. facts: other observations.
    """

    number: int
    title: str
    verdict: StageVerdict
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
    """What a verdict is valid for. When any of it changes, the check must pass again."""

    device: str
    card: str
    driver: str
    torch: str
    checkpoint: str
    precision: str

    def changed_fields(self, other: VerdictKey) -> tuple[str, ...]:
        """Names of the fields that differ."""
        mine, theirs = asdict(self), asdict(other)
        return tuple(name for name in mine if mine[name] != theirs[name])


@dataclass(frozen=True)
class SelfCheckReport:
    """One self-check, complete or up to where it ended. `model` is the checkpoint's name.

    failure: the reason, where the check ended outside of a stage or a later run failed.
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
        """All nine stages ran, and nothing that a run uses was wrong."""
        accepted = (StageVerdict.PASS, StageVerdict.NOTE)
        numbers = {stage.number for stage in self.stages if stage.verdict in accepted}
        return not self.failure and numbers == set(STAGES)

    @property
    def worth_it(self) -> bool:
        return self.race is not None and self.race.faster

    @property
    def problems(self) -> tuple[str, ...]:
        """The reasons why it did not pass, each with its stage."""
        failed = [stage for stage in self.stages if stage.verdict == StageVerdict.FAIL]
        problems = [
            f"stage {stage.number} ({stage.title}): {'; '.join(stage.findings)}" for stage in failed
        ]
        return (*problems, self.failure) if self.failure else tuple(problems)

    def headline(self) -> str:
        """One sentence: the verdict and its first reason."""
        if self.passed:
            speed = "" if self.race is None else f" {self.race.as_text()}."
            return f"The self-check passed on {self.card.name}.{speed}"
        reason = self.problems[0] if self.problems else "it did not complete all stages"
        return f"The self-check did not pass on {self.card.name}: {reason}."

    def speed_text(self) -> str:
        return self.race.as_text() if self.race else "speed not measured"

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
        """Plain values, the verdict and its reasons first."""
        summary = {"passed": self.passed, "worth_it": self.worth_it}
        return summary | {"problems": list(self.problems)} | asdict(self)

    def save(self, path: Path) -> Path:
        """Write JSON (.json) or text (any other suffix). Raises RunError if writing fails."""
        is_json = path.suffix.lower() == ".json"
        text = json.dumps(self.to_dict(), indent=1) if is_json else self.as_text()
        try:
            path.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise RunError(f"{path} could not be written: {error.strerror}.") from error
        return path


def add_stage(report: SelfCheckReport, stage: StageReport) -> SelfCheckReport:
    """The report with one more stage, in place of an earlier one of that number."""
    others = [other for other in report.stages if other.number != stage.number]
    stages = sorted([*others, stage], key=lambda stage: stage.number)
    return replace(report, stages=tuple(stages))


def finite_or_none(value: float) -> float | None:
    """None in place of NaN and infinity, which JSON does not have: findings mention them."""
    return value if math.isfinite(value) else None
