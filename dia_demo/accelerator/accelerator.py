"""An accelerator and what has been proved of it: without a passed self-check it does not run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch

from dia_demo.accelerator.backend import Backend
from dia_demo.accelerator.guard import Limits, Usual, explain_failure
from dia_demo.accelerator.remote import RemoteDia, RunSpec
from dia_demo.accelerator.selfcheck.context import Plan
from dia_demo.accelerator.selfcheck.report import Report, VerdictKey
from dia_demo.accelerator.selfcheck.runner import Checking, CheckSpec, check
from dia_demo.accelerator.selfcheck.verdicts import VerdictStore
from dia_demo.checkpoint_config import read_model_config
from dia_demo.checkpoint_files import fingerprint
from dia_demo.config import ModelConfig, RuntimeConfig
from dia_demo.engine.placement import Placement, XpuStatus, device_status, place
from dia_demo.errors import InputError
from dia_demo.files import cache_folder


@dataclass(frozen=True)
class Accelerator:
    """One device other than the CPU, behind the same check whichever it is.

    open (which must pickle), status, plan, usual and limits can be replaced, so that a device with
    known faults can stand in for a real one.
    """

    device: str
    store: VerdictStore
    open: Callable[[], Backend]
    status: Callable[[], XpuStatus]
    plan: Plan = field(default_factory=Plan)
    usual: Usual = field(default_factory=Usual)
    limits: Limits | None = None

    @classmethod
    def named(cls, device: str, store: VerdictStore) -> Accelerator:
        """A real device: "xpu" or "cuda"."""
        return cls(device, store, partial(Backend, device), partial(device_status, device))

    def key(self, folder: Path, precision: str) -> VerdictKey:
        """What a verdict on this device and this checkpoint is kept under."""
        card = self.status().card
        return VerdictKey(
            device=card.device,
            card=card.name,
            driver=card.driver,
            torch=torch.__version__,
            checkpoint=fingerprint(folder),
            precision=precision,
        )

    def place(self, runtime: RuntimeConfig, config: ModelConfig, folder: Path) -> Placement:
        """Where the model runs. InputError unless the device is there, has passed its self-check
        with this checkpoint, and was faster than the CPU or is insisted on."""
        placement = place(runtime, config, self.status())
        self.admit(folder, placement.precision, runtime.insist)
        return placement

    def admit(self, folder: Path, precision: str, insist: bool) -> Report:
        """The report that lets this device run, or an InputError that says why none does."""
        name = self.device.upper()
        how = f"Run it with: python -m dia_demo doctor --device {self.device}"
        key = self.key(folder, precision)
        report = self.store.find(key)
        if report is None:
            changed = self.store.expired(key)
            since = f" ({', '.join(changed)} changed since the last one)" if changed else ""
            raise InputError(
                f"The {name} has not passed its self-check with this model in {precision}{since}. "
                f"{how}"
            )
        if not report.passed:
            raise InputError(f"The {name} may not run. {report.headline()} {how}")
        if not report.worth_it and not insist:
            raise InputError(
                f"The {name} passed its self-check but is no faster than the CPU: "
                f"{report.race.as_text()}. Use the CPU, or insist (--insist)."
            )
        return report

    def check(
        self,
        runtime: RuntimeConfig,
        folder: Path,
        name: str,
        cancel: threading.Event | None = None,
    ) -> Generator[Checking, None, Report]:
        """Run the self-check on a checkpoint and keep its verdict; yields as it goes.

        Raises InputError where there is no such device.
        """
        status = self.status()
        placement = place(runtime, read_model_config(folder), status)
        spec = CheckSpec(
            open=self.open,
            folder=folder,
            model=name,
            key=self.key(folder, placement.precision),
            card=status.card,
            threads=placement.threads,
            plan=self.plan,
        )
        report = yield from check(spec, cancel)
        self.store.keep(report)
        return report

    def load(self, placement: Placement, folder: Path) -> Generator[float, None, RemoteDia]:
        """The model in the device's own process; yields the fraction loaded."""
        report = self.store.find(self.key(folder, placement.precision))
        spec = RunSpec(
            open=self.open,
            folder=folder,
            precision=placement.precision,
            card=report.card,
            threads=placement.threads,
            limits=self.limits or Limits.of(report),
        )
        return RemoteDia.load(spec)

    def failed(self, folder: Path, precision: str, what: str) -> str:
        """A run failed: its verdict no longer holds. Returns what to tell the person."""
        self.store.revoke(self.key(folder, precision), f"a run failed after the check: {what}")
        return explain_failure(self.device, what)


def default_verdicts() -> Path:
    """Where verdicts are kept: the app's cache folder."""
    return cache_folder() / "verdicts.json"
