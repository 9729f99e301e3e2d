"""Loads a model for this CPU: chooses a kernel, packs the weights, compiles the step."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dia_demo.checkpoint_config import read_model_config
from dia_demo.checkpoint_files import weight_files
from dia_demo.config import ModelConfig
from dia_demo.kernels.jit import new_failures
from dia_demo.model import checkpoint, packed_cache
from dia_demo.model.cpu_model import CpuModel, torch_threads
from dia_demo.model.dia import Dia
from dia_demo.model.linear import KERNELS, KernelChoice, choose_kernel, convert_packed
from dia_demo.system import release_free_memory
from dia_demo.task import Task

# Packs the linears in the order that is stored, which all compiled kernels read.
PACKING_KERNEL = next(kernel for kernel in KERNELS if kernel.compiled)

T = TypeVar("T")
# Yields the current stage and the fraction of it that is done.
Stages = Generator[tuple[str, float], None, T]


@dataclass(frozen=True)
class LoadedModel:
    """A model, the kernel it runs with, and a note for the user about its loading."""

    model: CpuModel
    choice: KernelChoice
    note: str = ""


def load_model(folder: Path, precision: str, threads: int) -> Stages[LoadedModel]:
    """Load the checkpoint in `folder`, from its prepared weights if they are stored there or here.

    Raises InputError as `checkpoint.load` does.
    """
    config = read_model_config(folder)
    weight_files(folder)  # Raises before the trial of kernels, which may take seconds.
    choice = yield from choose(config, precision, threads)
    if config.prepared is not None:
        reading = packed_cache.read_export(folder, config, precision)
        dia = yield from with_stage("Loading", reading)
        return (yield from install_packed(dia, choice, precision))
    # Prepared weights in float32 would be read no faster than the checkpoint.
    can_store = choice.kernel.compiled and precision != "float32"
    if not can_store:
        dia = yield from with_stage(
            "Loading", checkpoint.load(folder, precision, "cpu", choice.kernel)
        )
        return (yield from _install(dia, choice))
    dia, is_new = yield from load_packed(folder, config, precision)
    note = ""
    if is_new:
        yield "Storing the prepared weights for the next start", 0.0
        file = packed_cache.prepared_file(folder, precision)
        note = packed_cache.write(dia, file, folder, precision)
    return (yield from _install(dia, choice, note))


def load_packed(folder: Path, config: ModelConfig, precision: str) -> Stages[tuple[Dia, bool]]:
    """The checkpoint with packed linears, and whether it was prepared now: where its prepared
    weights are stored, they are read."""
    file = packed_cache.prepared_file(folder, precision)
    stored = yield from with_stage("Loading", packed_cache.read(file, config, precision))
    if stored is not None:
        return stored, False
    loading = checkpoint.load(folder, precision, "cpu", PACKING_KERNEL)
    return (yield from with_stage(f"Loading, in {precision}", loading)), True


def install_packed(dia: Dia, choice: KernelChoice, precision: str) -> Stages[LoadedModel]:
    """The model ready to run; its packed linears are converted where the kernel needs another
    order of the weights."""
    if not choice.kernel.compiled:
        converting = convert_packed(dia, choice.kernel, precision)
        yield from with_stage("Loading, for this processor's kernels", converting)
    return (yield from _install(dia, choice))


def random_model(
    config: ModelConfig, precision: str, threads: int, seed: int = 0
) -> Stages[LoadedModel]:
    """A model of this shape with random weights, as `load_model` would load it."""
    choice = yield from choose(config, precision, threads)
    making = checkpoint.load_random(config, precision, choice.kernel, seed)
    dia = yield from with_stage("Making random weights", making)
    return (yield from _install(dia, choice))


def choose(config: ModelConfig, precision: str, threads: int) -> Stages[KernelChoice]:
    """The kernel for a model of this shape, with progress."""
    yield "Choosing the fastest kernels for this processor", 0.0
    with torch_threads(threads):
        return choose_kernel(config, precision, threads)


def with_stage(stage: str, work: Generator[float, None, T]) -> Stages[T]:
    """The fractions of `work` as those of a stage."""
    task = Task(work)
    for fraction in task:
        yield stage, fraction
    return task.result


def _install(dia: Dia, choice: KernelChoice, note: str = "") -> Stages[LoadedModel]:
    release_free_memory()  # That of the tensors as stored in the files.
    if choice.kernel.compiled:
        yield "Building the decoder for this processor, kept for the next start", 0.0
    model = choice.kernel.install(dia, choice.threads)
    return LoadedModel(model, choice, " ".join(filter(None, [note, *new_failures()])))
