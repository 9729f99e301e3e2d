"""Loads a Dia2 for this CPU: chooses kernels, packs the weights, compiles the parts of a frame."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn

from dia_demo.errors import InputError
from dia_demo.kernels.jit import new_failures
from dia_demo.machine.system import release_free_memory
from dia_demo.model.autotune import Case, choose_correct
from dia_demo.model.cpu_model import torch_threads
from dia_demo.model.dia2 import checkpoint
from dia_demo.model.dia2.calibration import calibrate
from dia_demo.model.dia2.config import Dia2Config
from dia_demo.model.dia2.forced import FrameRecording
from dia_demo.model.dia2.network import Dia2
from dia_demo.model.dia2.packing import bring_together, parts_of
from dia_demo.model.dia2.torch_model import TorchDia2
from dia_demo.model.linear import (
    CHECKED_OUTPUTS,
    CHECKED_ROWS,
    KERNELS,
    LARGEST_ERROR,
    Kernel,
    KernelChoice,
    can_compile,
)
from dia_demo.model.loading import LoadedModel, PreparedModel, Stages, run_stage
from dia_demo.model.packed_linear import PackedLinear
from dia_demo.model.weights import packed_cache
from dia_demo.model.weights.packed_cache import ROUNDING, Shape

COMPILED = tuple(kernel for kernel in KERNELS if kernel.compiled)
# Of torch's own linears.
PLAIN = next(kernel for kernel in KERNELS if kernel.name == "plain")


@dataclass(frozen=True)
class FrameCalibrator:
    """How four and five bits are calibrated before they are stored.

    make_takes: makes takes with a model, yielding the fraction done. why_not: a note for the user
    if that is not possible now; then weights are rounded to the nearest and not stored.
    """

    make_takes: Callable[[TorchDia2], Generator[float, None, Sequence[FrameRecording]]]
    why_not: str = ""


def load_model(
    folder: Path,
    config: Dia2Config,
    precision: str,
    threads: int,
    calibrator: FrameCalibrator | None = None,
) -> Stages[LoadedModel]:
    """The checkpoint in `folder`, from its prepared weights if they are stored. Without a
    calibrator every format is rounded to the nearest.

    Raises InputError as `checkpoint.load` does, and where a format has no kernel here.
    """
    if config.prepared is None:
        checkpoint.check_tensors(folder, config)
    kernels = yield from _choose(config, precision, threads)
    if config.prepared is not None:
        _check_can_pack(kernels)
        reading = packed_cache.read_export(folder, config, precision, SHAPE)
        network = yield from run_stage("Loading", reading)
        return (yield from _install(network, threads, kernels, precision))
    if kernels[0] is PLAIN:
        return (yield from _plain(run_stage("Loading", checkpoint.load(folder, config)), threads))
    if precision == "float32":  # Prepared weights would be read no faster.
        network = yield from run_stage("Loading", checkpoint.load(folder, config, precision))
        return (yield from _install(network, threads, kernels))
    packed = yield from _load_packed(folder, config, precision, threads, calibrator)
    note = packed.note
    if packed.is_new:
        file = packed_cache.prepared_file(folder, precision)
        note = packed_cache.write(packed.network, file, folder, precision)
    return (yield from _install(packed.network, threads, kernels, precision, note))


def prepare_model(
    folder: Path, config: Dia2Config, precision: str, threads: int, calibrator: FrameCalibrator
) -> Stages[PreparedModel]:
    """The checkpoint in packed form. Raises InputError as `load_model` does, and without numba."""
    checkpoint.check_tensors(folder, config)
    kernels = yield from _choose(config, precision, threads)
    _check_can_pack(kernels)
    packed = yield from _load_packed(folder, config, precision, threads, calibrator)
    install = partial(_install, packed.network, threads, kernels, precision)
    return PreparedModel(packed.network, packed.note, install)


@dataclass(frozen=True)
class _PackedNetwork:
    """is_new: it was prepared now, as well as it can be. note: why it is not."""

    network: Dia2
    is_new: bool = False
    note: str = ""


def _load_packed(
    folder: Path,
    config: Dia2Config,
    precision: str,
    threads: int,
    calibrator: FrameCalibrator | None,
) -> Stages[_PackedNetwork]:
    """The checkpoint with packed linears, from its prepared weights if they are stored."""
    file = packed_cache.prepared_file(folder, precision)
    reading = packed_cache.read(file, config, precision, SHAPE)
    if (stored := (yield from run_stage("Loading", reading))) is not None:
        return _PackedNetwork(stored)
    is_rounded = precision in ROUNDING
    if is_rounded and calibrator is not None and not calibrator.why_not:
        network = yield from _calibrate(folder, config, precision, threads, calibrator)
        return _PackedNetwork(network, is_new=True)
    making = checkpoint.load(folder, config, precision)
    network = yield from run_stage(f"Loading, in {precision}", making)
    note = calibrator.why_not if is_rounded and calibrator else ""
    return _PackedNetwork(network, not is_rounded, note)


def _check_can_pack(kernels: list[Kernel]) -> None:
    if kernels[0] is PLAIN:
        raise InputError(
            "Prepared weights of Dia2 need numba, which is not installed or does not work here: "
            "run pip install numba."
        )


def random_model(
    config: Dia2Config, precision: str, threads: int, seed: int = 0
) -> Stages[LoadedModel]:
    """A model of this shape with random weights, not calibrated."""
    kernels = yield from _choose(config, precision, threads)
    packed = None if kernels[0] is PLAIN else precision
    making = run_stage("Making random weights", checkpoint.load_random(config, packed, seed))
    if packed is None:
        return (yield from _plain(making, threads))
    return (yield from _install((yield from making), threads, kernels))


def _choose(config: Dia2Config, precision: str, threads: int) -> Stages[list[Kernel]]:
    yield "Choosing the kernels for this processor", 0.0
    return [choose_kernel(config, part, threads) for part in parts_of(precision)]


def _plain(making: Stages[Dia2], threads: int) -> Stages[LoadedModel]:
    network = yield from making
    release_free_memory()
    return LoadedModel(TorchDia2(network, threads), KernelChoice(PLAIN, threads))


def _install(
    network: Dia2, threads: int, kernels: list[Kernel], precision: str = "", note: str = ""
) -> Stages[LoadedModel]:
    weights = ""
    if precision in ROUNDING:
        weights = packed_cache.weights_name(network, precision)
    bring_together(network.depformer)
    release_free_memory()
    yield "Building the parts of a frame for this processor, kept for the next start", 0.0
    model = compiled_model(network, threads, kernels)
    note = " ".join(filter(None, [note, *new_failures()]))
    return LoadedModel(model, KernelChoice(kernels[0], threads), note, weights)


def _calibrate(
    folder: Path, config: Dia2Config, precision: str, threads: int, calibrator: FrameCalibrator
) -> Stages[Dia2]:
    """The checkpoint, calibrated on takes that it makes in bfloat16."""
    kernels = yield from _choose(config, "bfloat16", threads)
    loading = checkpoint.load(folder, config, "bfloat16")
    network = yield from run_stage(f"Loading, to calibrate {precision}", loading)
    exact = compiled_model(network, threads, kernels)
    doing = f"Calibrating {precision}, once for this model"
    takes = yield from run_stage(f"{doing}: test takes", calibrator.make_takes(exact))
    rounding = calibrate(exact, takes, precision, threads)
    yield from run_stage(f"{doing}: rounding the weights", rounding, 1)
    return exact.network


def _linears(network: Dia2) -> Iterator[str]:
    return (name for name, module in network.named_modules() if isinstance(module, nn.Linear))


SHAPE = Shape(Dia2, _linears)


def compiled_model(network: Dia2, threads: int, kernels: list[Kernel]) -> TorchDia2:
    """A network of packed linears as it runs with the kernels of its two parts."""
    from dia_demo.model.dia2.compiled_frames.model import CompiledDia2

    model = CompiledDia2(network, threads, (kernels[0].use_dot, kernels[1].use_dot))
    with torch_threads(1):
        model.compile()
    return model


def choose_kernel(config: Dia2Config, precision: str, threads: int) -> Kernel:
    """The first compiled kernel for this format that runs here, checked on one linear; torch's own
    linears without numba. Raises InputError where no kernel is right.

    The choice is a fixed rule, as for Dia (model/linear.py).
    """
    if not can_compile():
        if precision == "float32":
            return PLAIN
        raise InputError(
            f"{precision} needs numba, which is not installed or does not work here: run pip "
            "install numba, or choose float32."
        )
    cases = {
        kernel.name: partial(_cases, config, kernel, precision, threads) for kernel in COMPILED
    }
    name = choose_correct(f"Dia2's linears in {precision}", cases)
    if name is None:
        raise InputError(f"No kernel for {precision} works on this machine: choose float32.")
    return next(kernel for kernel in COMPILED if kernel.name == name)


def _cases(config: Dia2Config, kernel: Kernel, precision: str, threads: int) -> list[Case]:
    """A linear of the model's width with every number of CHECKED_ROWS."""
    from dia_demo.model.compiled_step import ManyRows

    generator = torch.Generator().manual_seed(0)
    outputs = min(2 * config.decoder.intermediate_size, CHECKED_OUTPUTS)
    weight = torch.randn(outputs, config.decoder.hidden_size, generator=generator)
    x = torch.randn(max(CHECKED_ROWS), weight.shape[1], generator=generator)
    linear = PackedLinear.from_weight(weight, precision)
    multiply = ManyRows(threads, kernel.use_dot)
    expected = x.double() @ linear.dense(torch.float32).double().t()
    return [
        Case(partial(multiply, linear, x[:rows]), expected[:rows], LARGEST_ERROR[precision])
        for rows in CHECKED_ROWS
    ]
