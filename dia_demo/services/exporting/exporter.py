"""Writes an export: prepared weights, config, codec, manifest and card, whole or not at all.

Before the folder gets its name it is loaded, and a short take must have the same codes as from the
original.
"""

from __future__ import annotations

import json
import shutil
import statistics
import threading
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np
from safetensors import SafetensorError
from torch import nn

from dia_demo.checkpoint_config import read_config_file
from dia_demo.checkpoint_files import (
    QUANT_METHOD,
    FileRecord,
    Manifest,
    header_sha256,
    write_manifest,
)
from dia_demo.config import RuntimeConfig
from dia_demo.engine.decoder_model import DecoderModel
from dia_demo.engine.family import ModelInfo
from dia_demo.engine.loading.memory import check_free, gb, model_bytes
from dia_demo.engine.loading.placement import Placement, place_on_cpu
from dia_demo.engine.scheduler import run
from dia_demo.errors import InputError, RunError
from dia_demo.files import new_folder
from dia_demo.model.loading import Stages, run_stage
from dia_demo.model.weights.packed_cache import LAYOUTS, write_packed
from dia_demo.services.exporting.base_model import (
    BaseModel,
    copy_license,
    describe_base,
    fetch_base,
)
from dia_demo.services.exporting.card import Measured, model_card
from dia_demo.services.models import fetch_description
from dia_demo.task import Task

SCRIPT = "[S1] Hello. This is a short check. [S2] Both must sound alike."
# New positions of the short take, beyond those that the delays need.
CHECKED_TOKENS = 48
CODEC_FILES = ("config.json", "model.safetensors")


@dataclass(frozen=True)
class ExportReport:
    """What was written. files: their bytes by name. revision: of the base model on the hub."""

    folder: Path
    precision: str
    base_model: str
    revision: str | None
    license: str | None
    files: dict[str, int]
    measured: Measured

    @property
    def total_bytes(self) -> int:
        return sum(self.files.values())


def export(
    info: ModelInfo, runtime: RuntimeConfig, target: Path, cancel: threading.Event
) -> Generator[tuple[str, float], None, ExportReport]:
    """Write a model to the new folder `target`; yields stages with their fractions.

    Raises InputError for what cannot be done, and RunError where writing fails, the check fails, or
    `cancel` was set: then nothing is left behind.
    """
    target = target.expanduser().absolute()
    check_target(target)
    with closing(Task(_export(info, runtime, target))) as task:
        for step in task:
            if cancel.is_set():
                raise RunError(f"Stopped: {target} was not written.")
            yield step
    return task.result


def check_target(target: Path) -> None:
    """Raise InputError where no new folder can be made as `target`."""
    if not target.parent.is_dir():
        raise InputError(f"The folder {target.parent} does not exist: create it first.")
    try:
        is_free = not target.exists() or (target.is_dir() and not any(target.iterdir()))
    except OSError as error:
        raise InputError(f"{target} cannot be used: {error.strerror}. Choose another.") from error
    if not is_free:
        raise InputError(
            f"{target} already exists and will not be overwritten: choose another folder, or "
            "remove it first."
        )


def _export(info: ModelInfo, runtime: RuntimeConfig, target: Path) -> Stages[ExportReport]:
    what = f"Fetching {info.name}"
    info = yield from run_stage(what, fetch_description(info))
    if (prepared := info.config.prepared) is not None:
        raise InputError(
            f"{info.name} already contains prepared weights, in {prepared.precision}: copy its "
            f"folder, or export {prepared.base}."
        )
    placement = place_on_cpu(runtime, info)
    check_free(info, placement.precision)
    _check_disk(target, model_bytes(info, placement.precision))
    info = yield from run_stage(what, fetch_base(info))
    base = yield from run_stage("Reading the original", describe_base(info))
    try:
        with new_folder(target) as part:
            expected = yield from _write_prepared(part, base, placement)
            licenses = copy_license(base, part)
            measured = yield from _check_codes(part, expected, info, placement)
            yield "Writing the model card", 1.0
            card = model_card(base, part, placement.precision, measured, licenses)
            (part / "README.md").write_text(card, encoding="utf-8")
            files = {
                path.relative_to(part).as_posix(): path.stat().st_size
                for path in sorted(part.rglob("*"))
                if path.is_file()
            }
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RunError(
            f"{target} could not be written ({reason}) and was removed. Free some space there, or "
            "choose another folder."
        ) from error
    return ExportReport(
        target, placement.precision, base.name, base.revision, base.license, files, measured
    )


def _check_disk(target: Path, needed: int) -> None:
    free = shutil.disk_usage(target.parent).free
    if free < needed:
        raise InputError(
            f"The export needs about {gb(needed)}, and {gb(free)} are free in {target.parent}: "
            "free some space there, or choose another folder."
        )


def _write_prepared(part: Path, base: BaseModel, placement: Placement) -> Stages[np.ndarray]:
    """Prepare the model, write it to `part`, and return the codes of its short take."""
    info = base.info
    assert info.folder is not None, "it was fetched"
    prepared = yield from info.family.prepare(info, placement.precision, placement.threads)
    if prepared.why_not:
        raise InputError(f"The export would be less exact than it can be: {prepared.why_not}")
    yield "Writing the prepared weights", 0.0
    _write_files(prepared.network, part, info.folder, base, placement.precision)
    loaded = yield from prepared.install()
    yield "Making a short take with the original", 0.0
    return _short_take(loaded.model, info)[0]


def _write_files(
    network: nn.Module, part: Path, folder: Path, base: BaseModel, precision: str
) -> None:
    """Everything that loading reads; the manifest last."""
    weights = f"prepared-{precision.replace('+', '-')}.safetensors"
    write_packed(network, part / weights, precision, base.name)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {
        "quant_method": QUANT_METHOD,
        "precision": precision,
        "layout": LAYOUTS[precision],
        "base_model": base.name,
    }
    (part / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    # safetensors lets only the owner read its files.
    (part / weights).chmod((part / "config.json").stat().st_mode)
    beside = ("generation_config.json", *base.info.family.files)
    copied = [name for name in beside if (folder / name).is_file()]
    if base.codec.get("folder"):
        (part / "codec").mkdir()
        copied += [f"codec/{name}" for name in CODEC_FILES]
    for name in copied:
        shutil.copyfile(folder / name, part / name)
    records = {
        name: FileRecord.from_file(part / name) for name in ("config.json", *copied, weights)
    }
    about = {
        "precision": precision,
        "layout": LAYOUTS[precision],
        "base_model": {
            "name": base.name,
            "revision": base.revision,
            "files": {name: vars(record) for name, record in base.files.items()},
        },
        "codec": base.codec,
        "license": base.license,
    }
    write_manifest(part, Manifest(weights, header_sha256(part / weights), records), about)


def _check_codes(
    part: Path, expected: np.ndarray, info: ModelInfo, placement: Placement
) -> Stages[Measured]:
    """Load the export in `part`; its short take must have the codes of the original's."""
    began = perf_counter()
    config = info.family.read_config(read_config_file(part), part)
    exported = replace(info, name=str(part), folder=part, config=config)
    loaded = yield from info.family.load(exported, placement.precision, placement.threads)
    load_seconds = perf_counter() - began
    yield "Making the same take with the export", 0.0
    codes, step_seconds = _short_take(loaded.model, info)
    if not np.array_equal(codes, expected):
        raise RunError(
            "The export's output differs from the original's; it was discarded. Please report this."
        )
    measured = Measured(
        same_codes=int(codes.size),
        steps=len(step_seconds),
        milliseconds_per_step=1000 * statistics.median(step_seconds),
        load_seconds=load_seconds,
        threads=placement.threads,
        kernels=loaded.choice.kernel.name,
    )
    del loaded  # Some systems rename no folder with a mapped file in it.
    return measured


def _short_take(model: DecoderModel, info: ModelInfo) -> tuple[np.ndarray, list[float]]:
    """Codes of a take with the checkpoint's own settings, and the seconds of its steps."""
    config, family = info.config, info.family
    most = min(config.shortest_max_tokens + CHECKED_TOKENS, config.decoder.max_positions)
    row = family.row(config, family.encode(SCRIPT, ""), replace(config.defaults, max_tokens=most))
    seconds, began = [], perf_counter()
    with closing(run(model, [row])) as stepping:
        for _ in stepping:
            seconds.append(perf_counter() - began)
            began = perf_counter()
    if row.failure is not None:
        raise RunError(row.failure)
    return row.codes(), seconds[1:] or seconds  # The first step reads the text as well.
