"""Loading a model for this CPU: kernel chosen, weights packed, step compiled."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from dia_demo.checkpoint_config import read_model_config
from dia_demo.checkpoint_files import weight_files
from dia_demo.config import ModelConfig
from dia_demo.kernels.jit import new_failures
from dia_demo.model import checkpoint, packed_cache
from dia_demo.model.cpu_model import CpuModel, torch_threads
from dia_demo.model.dia import Dia
from dia_demo.model.linear import KernelChoice, choose_kernel
from dia_demo.system import give_back_memory
from dia_demo.task import Task

# Yields what is being done and the fraction of it that is done.
Stages = Generator[tuple[str, float], None, "LoadedModel"]


@dataclass(frozen=True)
class LoadedModel:
    """A model, the kernel it runs with, and what a person should know about its loading."""

    model: CpuModel
    choice: KernelChoice
    note: str = ""


def load_model(folder: Path, precision: str, threads: int) -> Stages:
    """The checkpoint in `folder`, from its prepared weights where they are kept.

    Raises InputError as `checkpoint.load` does.
    """
    config = read_model_config(folder)
    weight_files(folder)  # Said before kernels are tried, which takes seconds the first time.
    choice = yield from _choose(config, precision, threads)
    # A prepared file as large as float32 would be read no faster than the checkpoint.
    can_keep = choice.kernel.compiled and precision != "float32"
    if not can_keep:
        dia = yield from _with_stage(
            "Loading", checkpoint.load(folder, precision, "cpu", choice.kernel)
        )
        return (yield from _install(dia, choice))
    file, note = packed_cache.prepared_file(folder, precision), ""
    dia = yield from _with_stage("Loading", packed_cache.read(file, config, precision))
    if dia is None:
        loading = checkpoint.load(folder, precision, "cpu", choice.kernel)
        dia = yield from _with_stage(f"Loading, in {precision}", loading)
        yield "Keeping the prepared weights for the next start", 0.0
        note = packed_cache.keep(dia, file, folder, precision)
    return (yield from _install(dia, choice, note))


def random_model(config: ModelConfig, precision: str, threads: int, seed: int = 0) -> Stages:
    """A model of random weights, of this shape, as `load_model` would make it."""
    choice = yield from _choose(config, precision, threads)
    making = checkpoint.load_random(config, precision, choice.kernel, seed)
    dia = yield from _with_stage("Making random weights", making)
    return (yield from _install(dia, choice))


def _choose(config: ModelConfig, precision: str, threads: int) -> Generator:
    yield "Choosing the fastest kernels for this processor", 0.0
    with torch_threads(threads):
        return choose_kernel(config, precision, threads)


def _with_stage(what: str, work: Generator[float, None, Dia | None]) -> Generator:
    task = Task(work)
    for fraction in task:
        yield what, fraction
    return task.result


def _install(dia: Dia, choice: KernelChoice, note: str = "") -> Stages:
    # The tensors as read, and intermediate ones, are no longer needed.
    give_back_memory()
    if choice.kernel.compiled:
        yield "Building the decoder for this processor, kept for the next start", 0.0
    model = choice.kernel.install(dia, choice.threads)
    return LoadedModel(model, choice, " ".join(filter(None, [note, *new_failures()])))
