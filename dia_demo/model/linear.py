"""The linears that every decoder step reads: their kernels, and which one is fastest here.

Which kernel is fastest depends on the processor and the precision, so it is found by a short timed
trial on the machine at hand, among those whose error passes, and remembered in the cache folder. A
further kernel is one more entry in KERNELS.

One kernel serves every number of rows: it fixes the order of the weights in memory, and two would
round differently, so that a seed's take would depend on what is made beside it. So the trial asks
for the rows of one utterance, two, four and eight, and takes the kernel that serves them all;
inside a kernel the tiles go by the number of rows.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import logging
import platform
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter

import torch
from torch import Tensor, nn

from dia_demo import processor
from dia_demo.config import ModelConfig
from dia_demo.errors import InputError
from dia_demo.files import cache_folder, write_atomic
from dia_demo.kernels.jit import digest
from dia_demo.model.dia import Dia
from dia_demo.model.packed_linear import PackedLinear

# Rows with guidance, a conditional and an unconditional half: of 1, 2, 4 and 8 utterances.
TRIAL_ROWS = (2, 4, 8, 16)
# Seconds for a kernel and number of rows; calls that are timed together, and how often: at least
# three times unless a call takes longer than SLOW_CALL, since other programs may stall any one.
TRIAL_SECONDS, TRIAL_TIMES, TRIAL_REPEATS, SLOW_CALL = 0.05, 8, 5, 0.5
# A trial is noisy, and two kernels round differently: unless it is clearly slower, the first of
# KERNELS is taken, so that a seed gives the same take after every start.
SLOWER_BY = 1.3
# Relative L2 error against float64 that a kernel may add to what its precision loses anyway.
LARGEST_ERROR = {"float32": 1e-5, "bfloat16": 1e-2, "int8": 2e-2, "int4": 2e-2}
# What the logits keep where the rest has fewer bits.
WIDEST = {"int4": "int8"}

log = logging.getLogger(__name__)


class OneDnnLinear(nn.Module):
    """A linear whose weight lies in the blocked order that oneDNN reads fastest.

    The order belongs to this processor: it is made when the model is loaded and never stored.
    """

    def __init__(self, weight_NK: Tensor, precision: str) -> None:
        super().__init__()
        if precision == "bfloat16" and not processor.multiplies_bfloat16():
            raise NotImplementedError("this processor multiplies bfloat16 in software")
        weight_NK = weight_NK.to(getattr(torch, precision))
        self.width = weight_NK.shape[0]
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight_NK, TRIAL_ROWS[0])

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        out = torch.ops.mkldnn._linear_pointwise(flat, self.packed, None, "none", [], "")
        return out.view(*x.shape[:-1], self.width)


class PlainLinear(nn.Module):
    """torch's own linear on the weight as it lies in the checkpoint, in its input's precision."""

    def __init__(self, weight_NK: Tensor, precision: str = "float32") -> None:
        super().__init__()
        weight_NK = weight_NK.to(getattr(torch, precision))
        self.register_buffer("weight", weight_NK, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight.to(x.dtype))


class PackedInt8Linear(nn.Module):
    """torch's int8 kernel: a scale for every output, activations in bfloat16."""

    def __init__(self, weight_NK: Tensor, precision: str) -> None:
        super().__init__()
        self.outputs, self.inputs = weight_NK.shape
        # It reads past the end of shapes that are not whole.
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
    """One way to run a decoder's linears: which module they become, and who runs a step.

    compiled: the whole step is one function (model/compiled_step.py); use_dot: which of its routes.
    """

    name: str
    build: Callable[[Tensor, str], nn.Module]
    precisions: tuple[str, ...]
    compiled: bool = False
    use_dot: bool = False

    def module(self, name: str, weight_NK: Tensor, precision: str) -> nn.Module:
        """The module of the decoder's linear `name`."""
        width = WIDEST.get(precision, precision) if name.endswith("logits_dense") else precision
        return self.build(weight_NK, width)

    def run(self, linear: nn.Module, x: Tensor, threads: int, times: int = 1) -> Tensor:
        """x [rows, inputs] through a linear as a step runs it, so many times."""
        if not self.compiled:
            for _ in range(times):
                out = linear(x)
            return out
        from dia_demo.model.compiled_step import product

        return product(linear, x, threads, self.use_dot, times)

    def install(self, model: Dia, threads: int) -> None:
        """Have `model`, whose linears this kernel built, run its steps; compiles where needed."""
        model.threads = threads
        if self.compiled:
            from dia_demo.model.compiled_step import CompiledStep

            stepper = CompiledStep(model.decoder, model.rotaries[1], threads, self.use_dot)
            model.decoder.stepper = stepper
            stepper.compile(model)


INTEGERS, FLOATS = ("int8", "int4"), ("float32", "bfloat16")
KERNELS = (
    Kernel(
        "compiled, dot products",
        PackedLinear.of,
        ("bfloat16", *INTEGERS),
        compiled=True,
        use_dot=True,
    ),
    Kernel("compiled", PackedLinear.of, (*FLOATS, *INTEGERS), compiled=True),
    Kernel("oneDNN packed", OneDnnLinear, FLOATS),
    Kernel("plain", PlainLinear, FLOATS),
    Kernel("torch int8", PackedInt8Linear, ("int8",)),
)


@dataclass(frozen=True)
class Choice:
    """The kernel a model runs with, and its threads.

    milliseconds: of each tried, on one linear, for every number of TRIAL_ROWS.
    """

    kernel: Kernel
    threads: int
    milliseconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        tried = ", ".join(
            f"{name} {' / '.join(f'{ms:.2f}' for ms in each)} ms"
            for name, each in self.milliseconds.items()
        )
        rows = " / ".join(map(str, TRIAL_ROWS))
        return (
            f"{self.kernel.name}: the fastest here, or near it, of those that passed "
            f"(at {rows} rows: {tried})"
        )


def can_compile() -> bool:
    """Whether the compiled kernels can be had: numba is installed and works here."""
    if importlib.util.find_spec("numba") is None:
        return False
    try:
        from dia_demo.kernels import llvm_simd  # noqa: F401
    except (ImportError, OSError, RuntimeError) as reason:
        log.warning("no compiled kernels: %s", reason)
        return False
    return True


def step_linears(model: Dia) -> Iterator[str]:
    """Names of all linears a decoder step reads.

    Keys and values of cross-attention are made once per row: they are not among them.
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


def decoder_weights(config: ModelConfig) -> int:
    """Weights of the linears that every decoder step reads."""
    d = config.decoder
    self_attention = (2 * d.num_heads + 2 * d.num_kv_heads) * d.head_dim * d.hidden_size
    cross_attention = 2 * d.cross_num_heads * d.cross_head_dim * d.hidden_size
    mlp = 3 * d.hidden_size * d.intermediate_size
    head = d.num_channels * d.vocab_size * d.hidden_size
    return d.num_layers * (self_attention + cross_attention + mlp) + head


def choose(config: ModelConfig, precision: str, threads: int) -> Choice:
    """The kernel for a model of this shape: remembered, or found by timing each on one linear.

    The linear has the shape of the widest of the model. Kernels that fail or err too much at any
    number of rows are left out. InputError where none is left.
    """
    shape = (2 * config.decoder.intermediate_size, config.decoder.hidden_size)
    key = _key(shape, precision, threads)
    remembered = _remembered().get(key)
    candidates = {kernel.name: kernel for kernel in KERNELS if precision in kernel.precisions}
    if remembered and remembered["name"] in candidates:
        return Choice(candidates[remembered["name"]], threads, remembered["milliseconds"])
    if not can_compile():
        candidates = {n: kernel for n, kernel in candidates.items() if not kernel.compiled}
    milliseconds = _try_all(candidates.values(), shape, precision, threads)
    if not milliseconds:
        raise InputError(
            f"No kernel for {precision} runs here. It needs numba: pip install numba, or choose "
            f"{' or '.join(FLOATS)}."
        )
    name = _serves_all(milliseconds)
    _remember(key, {"name": name, "milliseconds": milliseconds})
    return Choice(candidates[name], threads, milliseconds)


def _serves_all(milliseconds: dict[str, list[float]]) -> str:
    """The first that is nowhere clearly slower than the fastest there; else the one least so."""
    fastest = [min(column) for column in zip(*milliseconds.values(), strict=True)]
    behind = {
        name: max(ms / least for ms, least in zip(each, fastest, strict=True))
        for name, each in milliseconds.items()
    }
    near = (name for name, ratio in behind.items() if ratio <= SLOWER_BY)
    return next(near, min(behind, key=behind.get))


@torch.inference_mode()
def _try_all(
    kernels: Iterable[Kernel], shape: tuple[int, int], precision: str, threads: int
) -> dict[str, list[float]]:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(shape, generator=generator)
    x = torch.randn(max(TRIAL_ROWS), shape[1], generator=generator)
    if precision != "float32" and processor.multiplies_bfloat16():
        x = x.bfloat16()
    expected = x.double() @ _as_kept(weight, precision).t()
    milliseconds = {}
    for kernel in kernels:
        try:
            linear = kernel.build(weight, precision)
            errors, took = [], []
            for rows in TRIAL_ROWS:
                run = partial(kernel.run, linear, x[:rows], threads)
                off = run().double() - expected[:rows]
                errors.append(float(off.norm() / expected[:rows].norm()))
                took.append(_fastest(run))
        except (RuntimeError, AttributeError, NotImplementedError, ImportError) as reason:
            log.info("kernel %s does not run here: %s", kernel.name, reason)
            continue
        if all(error <= LARGEST_ERROR[precision] for error in errors):
            milliseconds[kernel.name] = took
        else:
            log.warning("kernel %s is off by %s here and is not used", kernel.name, errors)
    return milliseconds


def _as_kept(weight_NK: Tensor, precision: str) -> Tensor:
    """float64 weights as their precision keeps them: a kernel answers for its own error only."""
    kept = PackedLinear.of(weight_NK, precision).weights(torch.float32)
    return kept.transpose(1, 2).flatten(0, 1)[: len(weight_NK), : weight_NK.shape[1]].double()


def _fastest(run: Callable[[int], object]) -> float:
    """Milliseconds of one call, the best of a few; some kernels take seconds on some processors."""
    began = perf_counter()
    run(1)
    once = perf_counter() - began
    times = TRIAL_TIMES if once * TRIAL_TIMES < TRIAL_SECONDS else 1
    took, until = [once], began + TRIAL_SECONDS
    least = 3 if once < SLOW_CALL else 1
    while len(took) < least or (len(took) <= TRIAL_REPEATS and perf_counter() < until):
        began = perf_counter()
        run(times)
        took.append((perf_counter() - began) / times)
    return 1000 * min(took)


def _key(shape: tuple[int, int], precision: str, threads: int) -> str:
    """What a trial's result depends on."""
    compiler = None
    if can_compile():
        compiler = importlib.metadata.version("numba")
    tried = [kernel.name for kernel in KERNELS if precision in kernel.precisions]
    return json.dumps(
        [platform.machine(), digest(), torch.__version__, compiler, precision, shape, threads]
        + [tried, TRIAL_ROWS],
        default=str,
    )


def _trials() -> Path:
    return cache_folder() / "kernels.json"


def _remembered() -> dict:
    try:
        found = json.loads(_trials().read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def _remember(key: str, result: dict) -> None:
    """Keep a trial's result; without a writable folder it is found anew at every start."""
    text = json.dumps(_remembered() | {key: result}, indent=1)
    with suppress(OSError):
        _trials().parent.mkdir(parents=True, exist_ok=True)
        with write_atomic(_trials()) as part:
            part.write_text(text, encoding="utf-8")
