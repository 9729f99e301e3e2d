"""The kernels for the linears that every decoder step reads, and the choice among them.

Kernels round differently, so a take depends on the kernel. The choice is therefore a fixed rule:
of KERNELS, in their order, the first that supports the precision and the processor. The order is
that of their speed, which was the same on all classes of processors (docs/performance.md). A kernel
whose results are wrong on a machine is left out, and the take says which one made it.

One kernel serves every batch size: it fixes the order of the weights in memory, and a take must not
depend on what is generated beside it. Inside a kernel the tile size depends on the number of rows.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from dia_demo.config import ModelConfig
from dia_demo.errors import InputError
from dia_demo.machine import processor
from dia_demo.model.autotune import Case, choose_correct
from dia_demo.model.cpu_model import CpuModel, torch_threads
from dia_demo.model.dia import Dia
from dia_demo.model.packed_linear import PackedLinear

# Rows of activations of 1, 2, 4 and 8 utterances with guidance (conditional and unconditional), and
# the most outputs of the linear that a kernel is checked with.
CHECKED_ROWS, CHECKED_OUTPUTS = (2, 4, 8, 16), 1024
# Relative L2 error against float64 that a kernel may add to that of its precision.
LARGEST_ERROR = {"float32": 1e-5, "bfloat16": 1e-2, "int8": 2e-2, "int5": 2e-2, "int4": 2e-2}
# A step of a model with fewer decoder weights takes a few milliseconds.
SMALL_WEIGHTS = 30_000_000
# The precision of linears outside the layers (logits, further frames) where it has more bits than
# the rest.
WIDEST = {"int4": "int8"}

log = logging.getLogger(__name__)


class OneDnnLinear(nn.Module):
    """A linear with its weight in the blocked order that oneDNN reads fastest.

    The order depends on the processor: it is made when the model is loaded and never stored.
    """

    def __init__(self, weight_NK: Tensor, precision: str) -> None:
        super().__init__()
        if precision == "bfloat16" and not processor.multiplies_bfloat16():
            raise NotImplementedError("this processor multiplies bfloat16 in software")
        weight_NK = weight_NK.to(getattr(torch, precision))
        self.width = weight_NK.shape[0]
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight_NK, CHECKED_ROWS[0])

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        out = torch.ops.mkldnn._linear_pointwise(flat, self.packed, None, "none", [], "")
        return out.view(*x.shape[:-1], self.width)


class PlainLinear(nn.Module):
    """torch's own linear on the weight as the checkpoint stores it, in its input's precision."""

    def __init__(self, weight_NK: Tensor, precision: str = "float32") -> None:
        super().__init__()
        weight_NK = weight_NK.to(getattr(torch, precision))
        self.weight: Tensor
        self.register_buffer("weight", weight_NK, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight.to(x.dtype))


class PackedInt8Linear(nn.Module):
    """torch's int8 kernel: one scale per output, activations in bfloat16."""

    def __init__(self, weight_NK: Tensor, precision: str) -> None:
        super().__init__()
        self.outputs, self.inputs = weight_NK.shape
        # The kernel reads past the end of shapes that are not multiples of 64.
        whole = (0, -self.inputs % 64, 0, -self.outputs % 64)
        weight_NK = nn.functional.pad(weight_NK.float(), whole)
        scale = weight_NK.abs().amax(1).div_(127).clamp_(min=1e-30)
        self.weight = (weight_NK / scale[:, None]).round_().to(torch.int8)
        self.scale = scale.bfloat16()

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, self.inputs).bfloat16()
        flat = nn.functional.pad(flat, (0, self.weight.shape[1] - self.inputs))
        out = torch._weight_int8pack_mm(flat, self.weight, self.scale)[:, : self.outputs]
        return out.reshape(*x.shape[:-1], self.outputs).to(x.dtype)


@dataclass(frozen=True)
class Kernel:
    """One implementation of the decoder's linears.

    build: the module that replaces a linear. compiled: the whole step runs as one function
    (model/compiled_step.py). use_dot: by its dot-product route.
    """

    name: str
    build: Callable[[Tensor, str], nn.Module]
    precisions: tuple[str, ...]
    compiled: bool = False
    use_dot: bool = False

    def module(self, name: str, weight_NK: Tensor, precision: str) -> nn.Module:
        """The module for the decoder's linear `name`."""
        is_in_layer = name.startswith("decoder.layers.")
        width = precision if is_in_layer else WIDEST.get(precision, precision)
        return self.build(weight_NK, width)

    def run(self, linear: nn.Module, x: Tensor, threads: int) -> Tensor:
        """A linear of x [rows, inputs], as a step computes it."""
        if not self.compiled:
            return linear(x)
        from dia_demo.model.compiled_step import ManyRows

        assert isinstance(linear, PackedLinear)
        return ManyRows(threads, self.use_dot)(linear, x)

    def install(self, dia: Dia, threads: int) -> CpuModel:
        """The model as it runs with this kernel, which built its linears; may compile a step."""
        if not self.compiled:
            return CpuModel(dia, threads)
        from dia_demo.model.compiled_step import CompiledStep

        step = CompiledStep(dia.decoder, dia.rotaries[1], threads, self.use_dot)
        step.multiply_prefills(dia)
        # What is left to torch is small, its waiting threads would spin, and how it rounds must not
        # depend on their number.
        with torch_threads(1):
            step.compile(dia)
        return CpuModel(dia, 1, step)


INTEGERS, FLOATS = ("int8", "int4"), ("float32", "bfloat16")
KERNELS = (
    Kernel(
        "compiled, dot products",
        PackedLinear.from_weight,
        ("bfloat16", *INTEGERS),
        compiled=True,
        use_dot=True,
    ),
    Kernel("compiled", PackedLinear.from_weight, (*FLOATS, *INTEGERS), compiled=True),
    Kernel("oneDNN packed", OneDnnLinear, FLOATS),
    Kernel("plain", PlainLinear, FLOATS),
    Kernel("torch int8", PackedInt8Linear, ("int8",)),
)


@dataclass(frozen=True)
class KernelChoice:
    """The kernel that a model runs with, and its threads."""

    kernel: Kernel
    threads: int

    @property
    def reason(self) -> str:
        return f"{self.kernel.name}: the first kernel that this processor supports, by a fixed rule"


def can_compile() -> bool:
    """Whether the compiled kernels are available: numba is installed and works here."""
    if importlib.util.find_spec("numba") is None:
        return False
    try:
        from dia_demo.kernels import llvm_simd  # noqa: F401
    except (ImportError, OSError, RuntimeError) as reason:
        log.warning("no compiled kernels: %s", reason)
        return False
    return True


def step_linears(model: Dia) -> Iterator[str]:
    """Names of all linears that a decoder step reads.

    The keys and values of cross-attention are computed once per row, so they are not included.
    """
    for index in range(model.config.decoder.num_layers):
        layer = f"decoder.layers.{index}"
        yield f"{layer}.self_attention.qkv_proj"
        yield f"{layer}.self_attention.o_proj"
        yield f"{layer}.cross_attention.q_proj"
        yield f"{layer}.cross_attention.o_proj"
        yield f"{layer}.mlp.gate_up_proj"
        yield f"{layer}.mlp.down_proj"
    yield "decoder.logits_dense"
    for number in range(model.config.frames_per_step - 1):
        block = f"decoder.next_frames.{number}"
        yield f"{block}.mlp.gate_up_proj"
        yield f"{block}.mlp.down_proj"
        yield f"{block}.logits_dense"


def convert_packed(model: Dia, kernel: Kernel, precision: str) -> Generator[float, None, None]:
    """Replace the packed linears of a step by those of a kernel that reads another order.

    Yields the fraction done. The compiled kernels read the packed order as it is.
    """
    names = list(step_linears(model))
    for done, name in enumerate(names):
        packed = model.get_submodule(name)
        assert isinstance(packed, PackedLinear)
        above, _, leaf = name.rpartition(".")
        linear = kernel.module(name, packed.dense(torch.float32), precision)
        setattr(model.get_submodule(above), leaf, linear)
        yield (done + 1) / len(names)


def decoder_weights(config: ModelConfig) -> int:
    """The number of weights in the linears that every decoder step reads."""
    d = config.decoder
    self_attention = (2 * d.num_heads + 2 * d.num_kv_heads) * d.head_dim * d.hidden_size
    cross_attention = 2 * d.cross_num_heads * d.cross_head_dim * d.hidden_size
    mlp = 3 * d.hidden_size * d.intermediate_size
    head = d.num_channels * d.vocab_size * d.hidden_size
    further_frames = (config.frames_per_step - 1) * (mlp + head)
    return d.num_layers * (self_attention + cross_attention + mlp) + head + further_frames


def choose_kernel(config: ModelConfig, precision: str, threads: int) -> KernelChoice:
    """The first of KERNELS for this precision that runs here, checked on one linear.

    The linear has the inputs of the model's widest. Raises InputError where no kernel is right.
    """
    outputs = min(2 * config.decoder.intermediate_size, CHECKED_OUTPUTS)
    shape = (outputs, config.decoder.hidden_size)
    kernels = {kernel.name: kernel for kernel in KERNELS if precision in kernel.precisions}
    if not can_compile():
        kernels = {name: kernel for name, kernel in kernels.items() if not kernel.compiled}
    cases = _cases(kernels, shape, precision, threads)
    name = choose_correct(f"linears in {precision}", cases)
    if name is None:
        raise InputError(
            f"No kernel for {precision} works on this machine. It needs numba: run pip install "
            f"numba, or choose {' or '.join(FLOATS)}."
        )
    return KernelChoice(kernels[name], threads)


def _cases(
    kernels: dict[str, Kernel], shape: tuple[int, int], precision: str, threads: int
) -> dict[str, Callable[[], list[Case]]]:
    """The checks of each kernel: a linear of `shape` at every number of CHECKED_ROWS."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(shape, generator=generator)
    x = torch.randn(max(CHECKED_ROWS), shape[1], generator=generator)
    if precision != "float32" and processor.multiplies_bfloat16():
        x = x.bfloat16()
    expected = x.double() @ _round_to_precision(weight, precision).t()

    def cases(kernel: Kernel) -> list[Case]:
        linear = kernel.build(weight, precision)
        return [
            Case(
                partial(kernel.run, linear, x[:rows], threads),
                expected[:rows],
                LARGEST_ERROR[precision],
            )
            for rows in CHECKED_ROWS
        ]

    return {name: partial(cases, kernel) for name, kernel in kernels.items()}


def _round_to_precision(weight_NK: Tensor, precision: str) -> Tensor:
    """float64 weights as this precision stores them, so that only a kernel's own error counts."""
    return PackedLinear.from_weight(weight_NK, precision).dense(torch.float32).double()
