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
from dia_demo.model.linear import KernelChoice, choose_kernel
from dia_demo.system import release_free_memory
from dia_demo.task import Task

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
    """Load the checkpoint in `folder`, from its prepared weights if they are stored.

    Raises InputError as `checkpoint.load` does.
    """
    config = read_model_config(folder)
    weight_files(folder)  # Raises before the trial of kernels, which may take seconds.
    choice = yield from _choose(config, precision, threads)
    # Prepared weights in float32 would be read no faster than the checkpoint.
    can_store = choice.kernel.compiled and precision != "float32"
    if not can_store:
        dia = yield from _with_stage(
            "Loading", checkpoint.load(folder, precision, "cpu", choice.kernel)
        )
        return (yield from _install(dia, choice))
    file = packed_cache.prepared_file(folder, precision)
    stored = yield from _with_stage("Loading", packed_cache.read(file, config, precision))
    if stored is not None:
        return (yield from _install(stored, choice))
    loading = checkpoint.load(folder, precision, "cpu", choice.kernel)
    dia = yield from _with_stage(f"Loading, in {precision}", loading)
    yield "Storing the prepared weights for the next start", 0.0
    note = packed_cache.write(dia, file, folder, precision)
    return (yield from _install(dia, choice, note))


def random_model(
    config: ModelConfig, precision: str, threads: int, seed: int = 0
) -> Stages[LoadedModel]:
    """A model of this shape with random weights, as `load_model` would load it."""
    choice = yield from _choose(config, precision, threads)
    making = checkpoint.load_random(config, precision, choice.kernel, seed)
    dia = yield from _with_stage("Making random weights", making)
    return (yield from _install(dia, choice))


def _choose(config: ModelConfig, precision: str, threads: int) -> Stages[KernelChoice]:
    yield "Choosing the fastest kernels for this processor", 0.0
    with torch_threads(threads):
        return choose_kernel(config, precision, threads)


def _with_stage(stage: str, work: Generator[float, None, T]) -> Stages[T]:
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
