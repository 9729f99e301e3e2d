"""Loads a model for this CPU: chooses a kernel, packs the weights, compiles the step."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from dia_demo.checkpoint_files import weight_files
from dia_demo.config import ModelConfig
from dia_demo.kernels.jit import new_failures
from dia_demo.machine.system import release_free_memory
from dia_demo.model.calibration.calibration import CalibrationTake, calibrate
from dia_demo.model.cpu_model import CpuModel, torch_threads
from dia_demo.model.dia import Dia
from dia_demo.model.linear import KERNELS, KernelChoice, choose_kernel, convert_packed
from dia_demo.model.weights import checkpoint, packed_cache
from dia_demo.task import Task

# Packs the linears in the order that is stored, which all compiled kernels read.
PACKING_KERNEL = next(kernel for kernel in KERNELS if kernel.compiled)

T = TypeVar("T")
# Yields the current stage and the fraction of it that is done.
Stages = Generator[tuple[str, float], None, T]


@dataclass(frozen=True)
class LoadedModel:
    """A model, the kernel it runs with, and a note for the user about its loading.

    model: satisfies engine/decoder_model.py, or the interface of another family.
    weights: which of several roundings its weights have (packed_cache.weights_name).
    """

    model: Any
    choice: KernelChoice
    note: str = ""
    weights: str = ""


@dataclass(frozen=True)
class PreparedModel:
    """A model of any family as it is stored, see weights/packed_cache.

    network: with packed linears. why_not: why it should not be passed on, if it is less exact than
    it can be. install: makes it ready to run, after which the network is no longer stored.
    """

    network: nn.Module
    why_not: str
    install: Callable[[], Stages[LoadedModel]]


@dataclass(frozen=True)
class Calibrator:
    """How int4 is calibrated before it is stored.

    make_takes: makes takes with a model, yielding the fraction done (engine/loading/calibration).
    why_not: a note for the user if that is not possible now; then int4 is rounded to the nearest
    and not stored.
    """

    make_takes: Callable[[CpuModel], Generator[float, None, Sequence[CalibrationTake]]]
    why_not: str = ""


@dataclass(frozen=True)
class PackedModel:
    """A model with packed linears, and a note for the user about its loading.

    is_new: it was prepared now, and can be stored. weights: see `LoadedModel`.
    """

    dia: Dia
    is_new: bool = False
    note: str = ""
    weights: str = ""


def load_model(
    folder: Path, config: ModelConfig, precision: str, threads: int, calibrator: Calibrator
) -> Stages[LoadedModel]:
    """Load the checkpoint in `folder`, from its prepared weights if they are stored there or here.

    Raises InputError as `checkpoint.load` does.
    """
    weight_files(folder)  # Raises before the kernels are compiled, which may take seconds.
    choice = yield from choose(config, precision, threads)
    if config.prepared is not None:
        reading = packed_cache.read_export(folder, config, precision)
        dia = yield from run_stage("Loading", reading)
        weights = packed_cache.weights_name(dia, precision)
        loaded = yield from install_packed(dia, choice, precision)
        return replace(loaded, weights=weights)
    # Prepared weights in float32 would be read no faster than the checkpoint.
    can_store = choice.kernel.compiled and precision != "float32"
    if not can_store:
        loading = checkpoint.load(folder, precision, "cpu", choice.kernel, config)
        dia = yield from run_stage("Loading", loading)
        return replace((yield from _install(dia, choice)), weights=_default_rounding(precision))
    packed = yield from prepare(folder, config, precision, threads, calibrator)
    loaded = yield from _install(packed.dia, choice, packed.note)
    return replace(loaded, weights=packed.weights)


def prepare(
    folder: Path, config: ModelConfig, precision: str, threads: int, calibrator: Calibrator
) -> Stages[PackedModel]:
    """`load_packed`, and store what is new; the note also says if that failed."""
    packed = yield from load_packed(folder, config, precision, threads, calibrator)
    if not packed.is_new:
        return packed
    yield "Storing the prepared weights for the next start", 0.0
    file = packed_cache.prepared_file(folder, precision)
    failure = packed_cache.write(packed.dia, file, folder, precision)
    return replace(packed, note=" ".join(filter(None, [packed.note, failure])))


def load_packed(
    folder: Path, config: ModelConfig, precision: str, threads: int, calibrator: Calibrator
) -> Stages[PackedModel]:
    """The checkpoint with packed linears. Where its prepared weights are stored, they are read."""
    file = packed_cache.prepared_file(folder, precision)
    stored = yield from run_stage("Loading", packed_cache.read(file, config, precision))
    if stored is not None:
        return PackedModel(stored, weights=packed_cache.weights_name(stored, precision))
    if precision == "int4" and not calibrator.why_not:
        return (yield from _calibrate(folder, config, threads, calibrator))
    loading = checkpoint.load(folder, precision, "cpu", PACKING_KERNEL, config)
    dia = yield from run_stage(f"Loading, in {precision}", loading)
    if precision == "int4":
        return PackedModel(dia, note=calibrator.why_not, weights=_default_rounding(precision))
    return PackedModel(dia, is_new=True)


def _calibrate(
    folder: Path, config: ModelConfig, threads: int, calibrator: Calibrator
) -> Stages[PackedModel]:
    """The checkpoint in int4, calibrated on takes that it makes in bfloat16."""
    choice = yield from choose(config, "bfloat16", threads)
    loading = checkpoint.load(folder, "bfloat16", "cpu", choice.kernel, config)
    dia = yield from run_stage("Loading, to calibrate int4", loading)
    exact = yield from _install(dia, choice)
    doing = "Calibrating int4, once for this model"
    takes = yield from run_stage(f"{doing}: test takes", calibrator.make_takes(exact.model))
    rounding = calibrate(dia, takes, threads)
    yield from run_stage(f"{doing}: rounding the weights", rounding, 1)
    return PackedModel(dia, True, exact.note, packed_cache.weights_name(dia, "int4"))


def _default_rounding(precision: str) -> str:
    return packed_cache.NOT_CALIBRATED if precision in packed_cache.ROUNDING else ""


def install_packed(dia: Dia, choice: KernelChoice, precision: str) -> Stages[LoadedModel]:
    """The model ready to run; its packed linears are converted where the kernel needs another
    order of the weights."""
    if not choice.kernel.compiled:
        converting = convert_packed(dia, choice.kernel, precision)
        yield from run_stage("Loading, for this processor's kernels", converting)
    return (yield from _install(dia, choice))


def random_model(
    config: ModelConfig, precision: str, threads: int, seed: int = 0
) -> Stages[LoadedModel]:
    """A model of this shape with random weights, as `load_model` would load it, but for the
    calibration, on which its speed does not depend."""
    choice = yield from choose(config, precision, threads)
    making = checkpoint.load_random(config, precision, choice.kernel, seed)
    dia = yield from run_stage("Making random weights", making)
    return (yield from _install(dia, choice))


def choose(config: ModelConfig, precision: str, threads: int) -> Stages[KernelChoice]:
    """The kernel for a model of this shape, with progress."""
    yield "Choosing the kernels for this processor", 0.0
    with torch_threads(threads):
        return choose_kernel(config, precision, threads)


def run_stage(stage: str, work: Generator[float, None, T], threads: int | None = None) -> Stages[T]:
    """The fractions of `work` as those of a stage. threads: of torch's operations in it, as many
    as before if left out."""
    yield stage, 0.0
    task = Task(work)
    fractions = iter(task)
    while True:
        # Not around the yield: another thread may continue this generator.
        with torch_threads(threads):
            fraction = next(fractions, None)
        if fraction is None:
            return task.result
        yield stage, fraction


def _install(dia: Dia, choice: KernelChoice, note: str = "") -> Stages[LoadedModel]:
    release_free_memory()  # That of the tensors as stored in the files.
    if choice.kernel.compiled:
        yield "Building the decoder for this processor, kept for the next start", 0.0
    model = choice.kernel.install(dia, choice.threads)
    return LoadedModel(model, choice, " ".join(filter(None, [note, *new_failures()])))
