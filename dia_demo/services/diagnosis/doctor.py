"""What this machine has, what would run on it for a model and why, and whether that is possible."""

from __future__ import annotations

import platform
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from dia_demo.accelerator.status import device_status, place_on_device, xpu_status
from dia_demo.checkpoint_files import weight_files
from dia_demo.config import RuntimeConfig
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import PROGRAM, gb, model_bytes, needed_bytes
from dia_demo.engine.loading.placement import Placement, place_on_cpu
from dia_demo.errors import DiaDemoError
from dia_demo.families.resolve import recommended_model
from dia_demo.files import cache_folder
from dia_demo.model.autotune import wrong_results
from dia_demo.services.models import find_model
from dia_demo.services.speed.machine_speed import MachineSpeed
from dia_demo.services.speed.words import full_size_sentences
from dia_demo.services.system_info import Machine, describe_machine, torch_build
from dia_demo.task import result_of


@dataclass(frozen=True)
class DoctorFinding:
    """One line of the report; `ok` is None for plain information."""

    topic: str
    ok: bool | None
    text: str


@dataclass(frozen=True)
class DoctorReport:
    """`ready` is whether a take can be made with this model here, now."""

    ready: bool
    model: str
    machine: Machine
    findings: tuple[DoctorFinding, ...]

    def as_text(self) -> str:
        marks = {True: "ok", False: "NO", None: "--"}
        lines = [f"{marks[f.ok]:>4}  {f.topic}: {f.text}" for f in self.findings]
        verdict = "ready" if self.ready else "not ready: see the lines marked NO"
        return "\n".join([*lines, f"      {self.model}: {verdict}"])


def examine(runtime: RuntimeConfig) -> DoctorReport:
    """Examine the machine. Loads and downloads nothing. Raises InputError for invalid settings."""
    machine = describe_machine()
    findings = [
        DoctorFinding("system", None, f"{machine.system}, Python {platform.python_version()}"),
        DoctorFinding("processor", None, _processor(machine)),
        DoctorFinding("memory", None, _memory(machine)),
        DoctorFinding("torch", None, torch_build()),
        *_wrong_kernels(),
        _cache(cache_folder()),
        *_model_findings(runtime, machine),
        *_speed(runtime),
        DoctorFinding("Intel XPU", None, _xpu()),
    ]
    ready = all(finding.ok is not False for finding in findings)
    return DoctorReport(ready, runtime.model, machine, tuple(findings))


def _processor(machine: Machine) -> str:
    bfloat16 = "bfloat16 in hardware" if machine.fast_bfloat16 else "no bfloat16 in hardware"
    cores = f"{machine.cores} core{'' if machine.cores == 1 else 's'} granted"
    return f"{machine.cpu}, {cores}, {machine.simd}, {bfloat16}"


def _wrong_kernels() -> Iterator[DoctorFinding]:
    """What trials at earlier starts dropped: a processor, or a virtual machine, may announce
    instructions that it does not execute correctly."""
    for operation, errors in wrong_results().items():
        names = ", ".join(f"{name} (relative error {error})" for name, error in errors.items())
        text = f"not used for {operation}, because their results were wrong here: {names}"
        yield DoctorFinding("kernels", None, text)


def _memory(machine: Machine) -> str:
    if machine.memory_bytes is None:
        return "unknown"
    free = "" if machine.free_bytes is None else f", {gb(machine.free_bytes)} free now"
    return f"{gb(machine.memory_bytes)} granted{free}"


def _cache(folder: Path) -> DoctorFinding:
    """Whether files can be cached; without a cache every start takes longer."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        reason = error.strerror or error
        text = (
            f"{folder} cannot be written ({reason}), so every start prepares everything again: "
            "set DIA_CACHE to another folder"
        )
        return DoctorFinding("cache", None, text)
    return DoctorFinding("cache", True, f"{folder}, {gb(free)} free on its disk")


def _xpu() -> str:
    status = xpu_status()
    if status.card is None or not status.usable:
        return f"off: {status.reason}"
    return (
        f"{status.card.name}. Experimental, and off until its self-check has passed: "
        "python -m dia_demo doctor --device xpu"
    )


def _speed(runtime: RuntimeConfig) -> Iterator[DoctorFinding]:
    """The speed of this machine, if an app has measured it here."""
    if text := full_size_sentences(MachineSpeed(runtime.threads)):
        yield DoctorFinding("speed", None, text)


def _model_findings(runtime: RuntimeConfig, machine: Machine) -> Iterator[DoctorFinding]:
    try:
        info = find_model(runtime.model)
    except DiaDemoError as error:
        yield DoctorFinding("model", False, str(error))
        return
    yield _weights(info)
    yield _codec(info)
    try:
        placement = _place(runtime, info)
    except DiaDemoError as error:
        yield DoctorFinding("model", False, str(error))
        yield from _choices(runtime, info, None, machine)
        return
    how = "chosen" if runtime.precision == "auto" else "as requested"
    yield DoctorFinding("precision", None, f"{placement.precision}, {how}: {placement.reason}")
    yield DoctorFinding("threads", None, f"{placement.threads}: {placement.why_threads}")
    yield _memory_needed(info, placement, machine)
    yield from _choices(runtime, info, placement, machine)


def _place(runtime: RuntimeConfig, info: ModelInfo) -> Placement:
    if runtime.device == "cpu":
        return place_on_cpu(runtime, info)
    return place_on_device(runtime, device_status(runtime.device))


def _weights(info: ModelInfo) -> DoctorFinding:
    if info.folder is None:
        known = info if info.profile.short_name else recommended_model()
        download = gb(model_bytes(known, "float32"))
        if known is not info:
            download += f" for {known.profile.short_name}"
        text = f"{info.name} will be downloaded from the hub ({download})."
        return DoctorFinding("weights", None, text)
    try:
        files = weight_files(info.folder)
    except DiaDemoError as error:
        return DoctorFinding("weights", False if info.is_local else None, str(error))
    size = sum(file.stat().st_size for file in files) / 1e6
    text = f"{len(files)} file(s), {size:,.1f} MB in {info.folder}"
    if (prepared := info.config.prepared) is not None:
        text += f", of {prepared.base}, prepared in {prepared.precision}"
    return DoctorFinding("weights", True, text)


def _codec(info: ModelInfo) -> DoctorFinding:
    codecs = info.family.codecs
    if info.folder is not None and codecs.is_here(info.folder):
        return DoctorFinding("codec", True, result_of(codecs.find(info.folder)).label)
    return DoctorFinding(
        "codec", None, f"not on this machine; {codecs.repository} is downloaded when needed."
    )


def _memory_needed(info: ModelInfo, placement: Placement, machine: Machine) -> DoctorFinding:
    """Whether enough memory is free. The total memory was checked before."""
    needed, free = needed_bytes(info, placement.precision), machine.free_bytes
    need = f"a take in {placement.precision} needs about {gb(needed)}, codec included"
    if free is None:
        return DoctorFinding("room", None, need)
    if needed - PROGRAM > free:
        text = f"{need}, and {gb(free)} are free: close other programs or choose fewer bits"
        return DoctorFinding("room", False, text)
    return DoctorFinding("room", True, f"{need}, and {gb(free)} are free")


def _choices(
    runtime: RuntimeConfig, info: ModelInfo, placement: Placement | None, machine: Machine
) -> Iterator[DoctorFinding]:
    """A line for each precision of the weights: the memory it needs, whether this machine has that,
    and whether auto chooses it."""
    automatic = _auto_placement(runtime, info)
    for precision in info.config.precisions:
        needed, granted = needed_bytes(info, precision), machine.memory_bytes
        notes = [f"about {gb(needed)}"]
        if granted is not None and needed > granted:
            notes.append(f"more than the {gb(granted)} of this machine")
        elif machine.free_bytes is not None and needed - PROGRAM > machine.free_bytes:
            notes.append(f"more than the {gb(machine.free_bytes)} that are free now")
        else:
            notes.append("fits")
        if automatic and precision == automatic.precision:
            notes.append("what auto chooses here")
        if placement and runtime.precision == precision:
            notes.append("requested")
        yield DoctorFinding(f"in {precision}", None, ", ".join(notes))


def _auto_placement(runtime: RuntimeConfig, info: ModelInfo) -> Placement | None:
    try:
        return place_on_cpu(replace(runtime, precision="auto", device="cpu", threads=None), info)
    except DiaDemoError:
        return None
