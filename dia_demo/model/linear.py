"""The linears that every decoder step reads: their kernels, and the swap from one to another.

Which kernel is fastest depends on the processor, the precision and the rows of a step, so it is
found by a short timed trial on the machine at hand, among those whose error passes. A further
kernel is one more entry in KERNELS.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor, nn

from dia_demo.model.dia import Dia

# One utterance with guidance: the conditional and the unconditional half.
TRIAL_SLOTS = 2
TRIAL_REPEATS = 7
# A trial is noisy, and two kernels round differently: unless it is clearly slower, the first of
# KERNELS is taken, so that a seed gives the same take after every start.
SLOWER_BY = 1.3
# Relative L2 error against float64 that a kernel of this precision may have.
LARGEST_ERROR = {torch.float32: 1e-5, torch.bfloat16: 1e-2}

log = logging.getLogger(__name__)


class OneDnnLinear(nn.Module):
    """A linear whose weight lies in the blocked order that oneDNN reads fastest.

    The order belongs to this processor: it is made when the model is loaded and never stored.
    """

    def __init__(self, weight_NK: Tensor) -> None:
        super().__init__()
        self.width = weight_NK.shape[0]
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight_NK, TRIAL_SLOTS)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        out = torch.ops.mkldnn._linear_pointwise(flat, self.packed, None, "none", [], "")
        return out.view(*x.shape[:-1], self.width)


class PlainLinear(nn.Module):
    """torch's own linear on the weight as it lies in the checkpoint."""

    def __init__(self, weight_NK: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight_NK, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight)


KERNELS: dict[str, Callable[[Tensor], nn.Module]] = {
    "oneDNN packed": OneDnnLinear,
    "plain": PlainLinear,
}


@dataclass(frozen=True)
class Choice:
    """The kernel a model runs with. `milliseconds` of each one tried, on one of its linears."""

    name: str
    milliseconds: dict[str, float]

    @property
    def reason(self) -> str:
        tried = ", ".join(f"{name} {ms:.2f} ms" for name, ms in self.milliseconds.items())
        return f"{self.name}: the fastest here, or near it, of those that passed ({tried})"


@torch.inference_mode()
def choose(weight_NK: Tensor) -> Choice:
    """Time every kernel on one linear; those that fail or err too much are left out.

    "plain" is torch's own and always passes, so there is always a choice.
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(TRIAL_SLOTS, weight_NK.shape[1], generator=generator).to(weight_NK.dtype)
    expected = x.double() @ weight_NK.double().t()
    milliseconds = {}
    for name, build in KERNELS.items():
        try:
            kernel = build(weight_NK)
            error = (kernel(x).double() - expected).norm() / expected.norm()
        except (RuntimeError, AttributeError, NotImplementedError) as reason:
            log.info("kernel %s does not run here: %s", name, reason)
            continue
        if error <= LARGEST_ERROR[weight_NK.dtype]:
            milliseconds[name] = _fastest(kernel, x)
        else:
            log.warning("kernel %s is off by %.1e here and is not used", name, error)
    clearly_fast = SLOWER_BY * min(milliseconds.values())
    name = next(name for name, took in milliseconds.items() if took <= clearly_fast)
    return Choice(name, milliseconds)


def _fastest(kernel: nn.Module, x: Tensor) -> float:
    """Milliseconds of the best of a few calls."""
    times = []
    for _ in range(TRIAL_REPEATS):
        began = perf_counter()
        kernel(x)
        times.append(perf_counter() - began)
    return 1000 * min(times)


@torch.inference_mode()
def use_fastest(model: Dia) -> Choice:
    """Swap the decoder's step linears, one by one, to the kernel that is fastest here.

    The trial runs on the widest of them, which weighs most in a step. Memory grows by one linear.
    """
    places = list(_step_linears(model))
    widest = max(places, key=lambda place: getattr(*place).weight.numel())
    choice = choose(getattr(*widest).weight)
    for parent, name in places:
        setattr(parent, name, KERNELS[choice.name](getattr(parent, name).weight.detach()))
    return choice


def _step_linears(model: Dia) -> Iterator[tuple[nn.Module, str]]:
    """(parent, attribute) of all linears a decoder step reads.

    Keys and values of cross-attention are made once per row: they stay as they are.
    """
    yield model.decoder, "logits_dense"
    for layer in model.decoder.layers:
        yield layer.self_attention, "qkv_proj"
        yield layer.self_attention, "o_proj"
        yield layer.cross_attention, "q_proj"
        yield layer.cross_attention, "o_proj"
        yield layer.mlp, "gate_up_proj"
        yield layer.mlp, "down_proj"
