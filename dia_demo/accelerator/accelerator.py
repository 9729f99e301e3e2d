"""An accelerator and the verdict on it: it does not run without a passed self-check."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch

from dia_demo.accelerator.backend import Backend, Card
from dia_demo.accelerator.guard import Limits, WaveformBounds, explain_failure, how_to_check
from dia_demo.accelerator.guarded_model import GuardedModel
from dia_demo.accelerator.remote import RemoteModel, RunSpec
from dia_demo.accelerator.selfcheck.context import CheckPlan
from dia_demo.accelerator.selfcheck.report import SelfCheckReport, VerdictKey
from dia_demo.accelerator.selfcheck.runner import Checking, CheckSpec, check
from dia_demo.accelerator.selfcheck.verdicts import VerdictStore
from dia_demo.accelerator.status import DeviceStatus, device_status, place_on_device
from dia_demo.checkpoint_files import fingerprint
from dia_demo.config import RuntimeConfig
from dia_demo.engine.events import Loading
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.model_loader import PlacedModel, loading_events
from dia_demo.engine.loading.placement import Placement
from dia_demo.errors import InputError
from dia_demo.files import cache_folder
from dia_demo.model.weights.checkpoint import check_original


@dataclass(frozen=True)
class Accelerator:
    """One device other than the CPU, and the store of its verdicts.

    open (which must be picklable), status, plan, bounds and limits can be replaced, so that a
    device with known faults can stand in for a real one.
    """

    device: str
    store: VerdictStore
    open: Callable[[], Backend]
    status: Callable[[], DeviceStatus]
    plan: CheckPlan = field(default_factory=CheckPlan)
    bounds: WaveformBounds = field(default_factory=WaveformBounds)
    limits: Limits | None = None

    @classmethod
    def for_device(cls, device: str, store: VerdictStore) -> Accelerator:
        """A real device: "xpu" or "cuda"."""
        return cls(device, store, partial(Backend, device), partial(device_status, device))

    def key(self, folder: Path, precision: str) -> VerdictKey:
        """The key of verdicts on this device with this checkpoint and precision."""
        card = self._card()
        return VerdictKey(
            device=card.device,
            card=card.name,
            driver=card.driver,
            torch=torch.__version__,
            checkpoint=fingerprint(folder),
            precision=precision,
        )

    def place(self, info: ModelInfo, runtime: RuntimeConfig) -> Placement:
        """How the model runs on this device. InputError unless the device is available, has passed
        its self-check with this checkpoint, and is faster than the CPU or `runtime.insist` is set.
        """
        placement, folder = self._place(info, runtime)
        self.verdict(folder, placement.precision, runtime.insist)
        return placement

    def verdict(self, folder: Path, precision: str, insist: bool) -> SelfCheckReport:
        """The report that allows this device to run. InputError, with the reason, if none does."""
        name = self.device.upper()
        how = how_to_check(self.device)
        key = self.key(folder, precision)
        report = self.store.find(key)
        if report is None:
            changed = self.store.expired_fields(key)
            since = f" ({', '.join(changed)} changed since the last one)" if changed else ""
            raise InputError(
                f"The {name} has not passed its self-check with this model in {precision}{since}. "
                f"{how}"
            )
        if not report.passed:
            raise InputError(f"{name} cannot be used here. {report.headline()} {how}")
        if not report.worth_it and not insist:
            raise InputError(
                f"The {name} passed its self-check but is no faster than the CPU: "
                f"{report.speed_text()}. Use the CPU, or add --insist on the command line."
            )
        return report

    def check(
        self, info: ModelInfo, runtime: RuntimeConfig, cancel: threading.Event | None = None
    ) -> Generator[Checking, None, SelfCheckReport]:
        """Run the self-check with a checkpoint and store its verdict; yields its progress.

        Raises InputError if the device is not available.
        """
        placement, folder = self._place(info, runtime)
        spec = CheckSpec(
            open=self.open,
            model=info,
            key=self.key(folder, placement.precision),
            card=self._card(),
            threads=placement.threads,
            plan=self.plan,
        )
        report = yield from check(spec, cancel)
        self.store.keep(report)
        return report

    def load(
        self, info: ModelInfo, runtime: RuntimeConfig
    ) -> Generator[Loading, None, PlacedModel]:
        """The engine's ModelLoader of this device. Raises InputError as `place` does."""
        placement, folder = self._place(info, runtime)
        report = self.verdict(folder, placement.precision, runtime.insist)
        spec = RunSpec(
            open=self.open,
            folder=folder,
            config=info.config,
            precision=placement.precision,
            card=report.card,
            threads=placement.threads,
            limits=self.limits or Limits.from_report(report),
        )
        what = f"Loading {info.name} on the {runtime.device.upper()}"
        remote = yield from loading_events(what, RemoteModel.load(spec))
        on_failure = partial(self.revoke, folder, placement.precision)
        model = GuardedModel(remote, on_failure, self.bounds)
        return PlacedModel(model, placement, check_take=model.check_take, close=model.close)

    def revoke(self, folder: Path, precision: str, reason: str) -> str:
        """A run failed, so the verdict is no longer valid. Returns the message for the person."""
        self.store.revoke(self.key(folder, precision), f"a run failed after the check: {reason}")
        return explain_failure(self.device, reason)

    def _place(self, info: ModelInfo, runtime: RuntimeConfig) -> tuple[Placement, Path]:
        """How the model would run on this device, and its folder."""
        placement = place_on_device(runtime, self.status())
        assert info.folder is not None, "its files are on this machine"
        check_original(info.folder, info.config)
        return placement, info.folder

    def _card(self) -> Card:
        status = self.status()
        if status.card is None:
            raise InputError(f"{self.device.upper()} cannot be used here: {status.reason}")
        return status.card


def default_verdicts() -> Path:
    """The file of verdicts in the app's cache folder."""
    return cache_folder() / "verdicts.json"
