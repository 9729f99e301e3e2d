"""Dia2's linears in blocks: a format for each of its two parts, and the depth's weights together.

A precision names the format of both parts, or of each: "int8+int5" is a temporal transformer in
int8 and a depth transformer in int5.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import suppress

import torch
from torch import Tensor, nn

from dia_demo.model.dia2.config import Dia2Config
from dia_demo.model.dia2.network import Depth, Dia2
from dia_demo.model.layers import Embedding, Linear
from dia_demo.model.packed_linear import PackedLinear

# The precision of linears outside the layers, which give logits or take the text and the state.
WIDEST = {"int5": "int8", "int4": "int8"}
HUGE_PAGE, LINE = 2**21, 64


def parts_of(precision: str) -> tuple[str, str]:
    """The formats of the temporal and of the depth transformer."""
    temporal, _, depth = precision.partition("+")
    return temporal, depth or temporal


class Packer:
    """Gives a network on meta its parameters, one at a time, in the formats of its parts.

    precision: None leaves everything in float32, and the linears to torch.
    """

    def __init__(self, config: Dia2Config, precision: str | None) -> None:
        with torch.device("meta"):
            self.network = Dia2(config)
        self._is_packed = precision is not None
        temporal, depth = parts_of(precision or "float32")
        self._formats = {"transformer": temporal, "depformer": depth}

    def place(self, name: str, tensor: Tensor) -> None:
        """Take a whole parameter, by its name in the network."""
        path = name.removesuffix(".weight")
        module, part = self.network.get_submodule(path), path.partition(".")[0]
        precision = self._formats[part]
        if self._is_packed and isinstance(module, Linear):
            is_in_layer = path.startswith(f"{part}.layers.")
            width = precision if is_in_layer else WIDEST.get(precision, precision)
            set_module(self.network, path, PackedLinear.from_weight(tensor, width))
            return
        if isinstance(module, Embedding) and precision != "float32":
            tensor = tensor.bfloat16()
        module.weight = nn.Parameter(tensor.contiguous(), requires_grad=False)

    def finish(self) -> Dia2:
        """The network, ready to run."""
        return self.network.requires_grad_(False).eval()


def set_module(network: nn.Module, path: str, module: nn.Module) -> None:
    """Replace the module at `path`."""
    above, _, leaf = path.rpartition(".")
    owner = network.get_submodule(above)
    if isinstance(owner, nn.ModuleDict):
        owner[leaf] = module
    elif isinstance(owner, nn.ModuleList):
        owner[int(leaf)] = module
    else:
        setattr(owner, leaf, module)


def bring_together(depth: Depth) -> None:
    """Copy the weights that the stages read again and again into one piece of memory, in the order
    of their use, on huge pages where the system has them.

    A set of them stays in the cache for all stages of a frame: nothing else lies between, and few
    entries of the processor's table of pages cover it.
    """
    linears = [linear for linear in _ordered_linears(depth) if isinstance(linear, PackedLinear)]
    sizes = [-(-linear.nbytes // LINE) * LINE for linear in linears]
    memory = _huge_pages(sum(sizes))
    start = 0
    for linear, size in zip(linears, sizes, strict=True):
        blocks = memory[start : start + linear.nbytes].view(linear.blocks.shape)
        linear.blocks = blocks.copy_(linear.blocks)
        start += size


def _ordered_linears(depth: Depth) -> Iterator[nn.Module]:
    for name in depth.depformer_in:
        for layer in depth.layers:
            yield layer.self_attention.in_proj[name]
            yield layer.self_attention.out_proj[name]
    for layer in depth.layers:
        yield layer.mlp.wi
        yield layer.mlp.wo


def _huge_pages(size: int) -> Tensor:
    """uint8 [size] that begins with a huge page, if the system grants them."""
    area = mmap.mmap(-1, size + HUGE_PAGE)
    with suppress(AttributeError, OSError):  # Only Linux has them, and not everywhere.
        area.madvise(mmap.MADV_HUGEPAGE)
    memory = torch.frombuffer(area, dtype=torch.uint8)
    first = -memory.data_ptr() % HUGE_PAGE
    return memory[first : first + size]
