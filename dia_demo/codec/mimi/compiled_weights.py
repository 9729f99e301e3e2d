"""The weights of Mimi's decoder as the compiled call reads them (kernels/frames/mimi_step.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dia_demo.codec.mimi.config import STRIDE
from dia_demo.codec.mimi.weights import StoredMimi, codebook_names, layer_linears
from dia_demo.kernels.packing import BLOCK, padded_size
from dia_demo.model.packed_linear import PackedLinear


@dataclass(frozen=True)
class MimiLinear:
    """A linear of windows. count: the numbers of a window; bias: of all outputs, in whole blocks.

    group: so many rows are one row of the result, of [group, outputs].
    """

    packed: PackedLinear
    bias: Tensor
    count: int
    group: int


class CompiledWeights:
    """The decoder's weights as the kernel reads them."""

    def __init__(self, stored: StoredMimi, precision: str) -> None:
        self.config, self._stored, self._precision = stored.config, stored, precision
        self.linears: dict[str, MimiLinear] = {}
        self.vectors: dict[str, Tensor] = {}
        self._add_quantizers(stored)
        for number in range(stored.config.num_hidden_layers):
            self._add_transformer_layer(f"decoder_transformer.layers.{number}")
        self._add_convolutions()

    def _add_quantizers(self, stored: StoredMimi) -> None:
        tables, projections = [], []
        for name, codebooks in codebook_names(stored.config):
            tables += [stored.codebook(codebook) for codebook in codebooks]
            projections.append(self._stored.read(f"{name}.output_proj.weight").flatten(1))
        self.tables_CVD = torch.stack(tables)
        self.table_addresses = np.array([table.data_ptr() for table in self.tables_CVD])
        self._add("quantizer", torch.cat(projections, dim=1).unsqueeze(1))
        # [C, 1, 2 * stride] to the factors of the newer and of the older frame.
        weight_CK = self._stored.read("upsample.conv.weight")[:, 0]
        self.vectors["upsample"] = weight_CK.t().contiguous()

    def _add_transformer_layer(self, name: str) -> None:
        for part, weight_OI in layer_linears(self._stored, name).items():
            self._add(f"{name}.{part}", weight_OI.unsqueeze(1))
        for norm in ("input", "post_attention"):
            for end in ("weight", "bias"):
                tensor = f"{name}.{norm}_layernorm.{end}"
                self.vectors[tensor] = self._stored.read(tensor)

    def _add_convolutions(self) -> None:
        config, rows = self.config, STRIDE
        name, stages = "decoder.layers", len(config.upsampling_ratios)
        self._add_convolution(f"{name}.0")
        for stage, ratio in enumerate(config.upsampling_ratios):
            self._add_transposed(f"{name}.{3 * stage + 2}")
            rows *= ratio
            unit = f"{name}.{3 * stage + 3}.block"
            inner = config.num_filters * 2 ** (stages - stage - 1) // config.compress
            group = _group(inner, rows) if inner > 1 else 1  # An even number is read.
            self._add_convolution(f"{unit}.1", group)
            self._add_convolution(f"{unit}.3", width=inner if group > 1 else None)
        self._add_convolution(f"{name}.{3 * stages + 2}", _group(1, rows))

    def _add_convolution(self, name: str, group: int = 1, width: int | None = None) -> None:
        """A causal convolution. group: so many rows of its result are computed as one, of a window
        with a row more for each; width: of its input, where that is not padded."""
        weight_OKI = self._stored.read(f"{name}.conv.weight").transpose(1, 2)
        bias_O = self._stored.read(f"{name}.conv.bias")
        outputs, kernel, inputs = weight_OKI.shape
        spread = weight_OKI.new_zeros(group, outputs, kernel + group - 1, inputs)
        for row in range(group):
            spread[row, :, row : row + kernel] = weight_OKI
        self._add(name, spread.flatten(0, 1), bias_O.repeat(group), group, width)

    def _add_transposed(self, name: str) -> None:
        """A causal transposed convolution of kernel 2 * stride: its `stride` outputs after an input
        depend on that input and the one before, so they are one row of a linear of windows of two.
        """
        weight_IOK = self._stored.read(f"{name}.conv.weight")
        stride, outputs = weight_IOK.shape[-1] // 2, weight_IOK.shape[1]
        missing = padded_size(outputs) - outputs
        # [I, O, tap, stride] to [stride, O, tap, I]; the first tap is the older input's.
        taps = weight_IOK.unflatten(-1, (2, stride)).flip(2).permute(3, 1, 2, 0)
        taps = functional.pad(taps, (0, 0, 0, 0, 0, missing))
        bias = functional.pad(self._stored.read(f"{name}.conv.bias"), (0, missing))
        self._add(name, taps.flatten(0, 1), bias.repeat(stride))

    def _add(
        self,
        name: str,
        weight_ORI: Tensor,
        bias_O: Tensor | None = None,
        group: int = 1,
        width: int | None = None,
    ) -> None:
        outputs, rows, inputs = weight_ORI.shape
        width = padded_size(inputs) if width is None else width
        spread = functional.pad(weight_ORI, (0, width - inputs)).flatten(1)
        bias = torch.zeros(padded_size(outputs))
        if bias_O is not None:
            bias[:outputs] = bias_O
        packed = PackedLinear.from_weight(spread, self._precision)
        self.linears[name] = MimiLinear(packed, bias, rows * width, group)


def _group(outputs: int, rows: int) -> int:
    """How many rows of so many outputs fill a block, if a frame's rows can be so divided."""
    group = max(1, BLOCK // outputs)
    return 1 if BLOCK % outputs or rows % group else group
