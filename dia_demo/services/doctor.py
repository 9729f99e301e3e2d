"""What the machine has, what would be chosen for a model, and whether that can work."""

from __future__ import annotations

import platform
from dataclasses import dataclass

import torch

from dia_demo.config import RuntimeConfig
from dia_demo.engine.devices import decoder_weights, place, xpu_status
from dia_demo.errors import DiaDemoError
from dia_demo.model.checkpoint import local_folder
from dia_demo.model.codec import codec_source
from dia_demo.model.hub import cached_config
from dia_demo.model.weights import weight_files
from dia_demo.services.catalogue import describe
from dia_demo.services.machine import Machine, describe_machine

BYTES = {"float32": 4, "bfloat16": 2}
GIB = 2**30
# Caches, activations, codec and Python beside the weights.
BESIDE_WEIGHTS = 1.5 * GIB


@dataclass(frozen=True)
class Finding:
    """One line of the report; `ok` None means it is only told."""

    topic: str
    ok: bool | None
    text: str


@dataclass(frozen=True)
class Report:
    """`ready` is whether a take can be made with this model here, now."""

    ready: bool
    model: str
    machine: Machine
    findings: tuple[Finding, ...]

    def as_text(self) -> str:
        marks = {True: "ok", False: "NO", None: "--"}
        lines = [f"{marks[f.ok]:>4}  {f.topic}: {f.text}" for f in self.findings]
        verdict = "ready to speak" if self.ready else "not ready: see the lines marked NO"
        return "\n".join([*lines, f"      {self.model}: {verdict}"])


def examine(runtime: RuntimeConfig) -> Report:
    """Look without loading or fetching anything. Raises InputError for an impossible setting."""
    machine = describe_machine()
    memory = "unknown" if machine.memory_bytes is None else f"{machine.memory_bytes / GIB:.1f} GiB"
    findings = [
        Finding("system", None, f"{machine.system}, Python {platform.python_version()}"),
        Finding("processor", None, f"{machine.cpu}, {machine.cores} cores, {machine.simd}"),
        Finding("memory", None, memory),
        Finding("torch", None, torch.__version__),
        *_model_findings(runtime, machine),
        Finding("Intel XPU", None, _xpu()),
    ]
    ready = all(finding.ok is not False for finding in findings)
    return Report(ready, runtime.model, machine, tuple(findings))


def _xpu() -> str:
    status = xpu_status()
    if not status.usable:
        return f"off: {status.reason}"
    return (
        f"{status.card.name} is here. It is experimental and off until its self-check has passed: "
        "python -m dia_demo doctor --device xpu"
    )


def _model_findings(runtime: RuntimeConfig, machine: Machine) -> list[Finding]:
    try:
        info = describe(runtime.model)
        placement = place(runtime, info.config)
    except DiaDemoError as error:
        return [Finding("model", False, str(error))]
    return [
        _weights(runtime.model),
        _codec(runtime.model),
        Finding("precision", None, f"{placement.precision}: {placement.reason}"),
        Finding("threads", None, f"{placement.threads}"),
        _room(info.config, placement.precision, machine),
    ]


def _weights(name: str) -> Finding:
    folder = local_folder(name) or cached_config(name)
    if folder is None:
        return Finding("weights", None, f"{name} will be fetched from the hub (6.4 GB for Dia).")
    try:
        files = weight_files(folder)
    except DiaDemoError as error:
        return Finding("weights", None if local_folder(name) is None else False, str(error))
    size = sum(file.stat().st_size for file in files) / 1e6
    return Finding("weights", True, f"{len(files)} file(s), {size:,.1f} MB in {folder}")


def _codec(name: str) -> Finding:
    folder = local_folder(name) or cached_config(name)
    try:
        return Finding("codec", True, codec_source(folder, allow_download=False).label)
    except DiaDemoError as error:
        return Finding("codec", None, f"not here yet; it will be fetched when needed. {error}")


def _room(config, precision: str, machine: Machine) -> Finding:
    needed = decoder_weights(config) * 1.3 * BYTES[precision] + BESIDE_WEIGHTS
    if machine.memory_bytes is None:
        return Finding("room", None, f"about {needed / GIB:.1f} GiB are needed")
    ok = needed <= machine.memory_bytes
    return Finding("room", ok, f"about {needed / GIB:.1f} of {machine.memory_bytes / GIB:.1f} GiB")
