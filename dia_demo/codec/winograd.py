"""Convolutions by fewer products: the Toom-Cook algorithm, also known as Winograd convolution.

F(m, r) computes m neighbouring outputs of a kernel of r taps with n = m + r - 1 products in place
of m * r: y = A ((G w) * (B x)), where B takes the values of the input's polynomial at n points, and
A interpolates. A. Lavin, S. Gray, https://arxiv.org/abs/1509.09308; S. Winograd, Arithmetic
Complexity of Computations, 1980. Large points and many of them lose digits, so m is small.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import torch
from torch import Tensor

# F(6, 7): the relative error in float32 is about 7e-6, and 3e-6 with tiles of 4.
_TAPS, _TILE = 7, 6
_POINTS = tuple(
    Fraction(point) for point in "0 1 -1 2 -2 1/2 -1/2 3/2 -3/2 2/3 -2/3".split()
)  # and infinity.
# Floats of the transformed inputs and of their products that are computed at once, so that they
# stay in the cache; but at least so many tiles, since each block reads all weights.
_BLOCK_FLOATS = 1_000_000
_FEWEST_TILES = 64
# With fewer channels the transforms take longer than the products that they save.
_FEWEST_CHANNELS = 32


class WinogradConvolution:
    """A `Convolution` of stride 1 without padding, for weights that it `supports`."""

    def __init__(self, weight_OIK: Tensor, bias_O: Tensor, dilation: int, rows: int) -> None:
        self.outputs, self.inputs, taps = weight_OIK.shape
        self.bias_O, self.dilation, self.reach = bias_O, dilation, dilation * (taps - 1)
        a_MN, g_NK, b_NN = _transforms()
        self.a_MN, self.b_NN, self.points = a_MN.float(), b_NN.float(), len(b_NN)
        weight_NIO = torch.einsum("nk,oik->nio", g_NK, weight_OIK.double())
        self.weight_NIO = weight_NIO.float().contiguous()
        floats = self.points * (self.inputs + self.outputs)
        self.block = -(-max(_FEWEST_TILES, _BLOCK_FLOATS // floats) // dilation)

    @staticmethod
    def supports(weight_OIK: Tensor) -> bool:
        """Whether it computes such a convolution, in float32, and may be faster at it."""
        is_wide = min(weight_OIK.shape[:2]) >= _FEWEST_CHANNELS
        return weight_OIK.dtype == torch.float32 and weight_OIK.shape[-1] == _TAPS and is_wide

    def __call__(self, x_TI: Tensor) -> Tensor:
        rows = len(x_TI) - self.reach
        # A tile takes every `dilation`-th row, so `dilation` tiles lie inside one another.
        span = _TILE * self.dilation
        groups = -(-rows // span)
        x_TI = x_TI.contiguous()
        missing = groups * span + self.reach - len(x_TI)
        if missing:
            x_TI = torch.cat([x_TI, x_TI.new_zeros(missing, self.inputs)])
        out_TO = x_TI.new_empty(groups * span, self.outputs)
        for first in range(0, groups, self.block):
            count = min(self.block, groups - first)
            self._compute(x_TI, out_TO, first, count)
        return out_TO[:rows]

    def add(self, x_TI: Tensor, out_TO: Tensor) -> None:
        out_TO += self(x_TI)

    def _compute(self, x_TI: Tensor, out_TO: Tensor, first: int, count: int) -> None:
        """The outputs of `count` groups of tiles from the group `first`."""
        d, m, n, inputs = self.dilation, _TILE, self.points, self.inputs
        start = first * m * d
        v_DGNI = x_TI.new_empty(d, count, n, inputs)
        b_GNN = self.b_NN.expand(count, n, n)
        for offset in range(d):
            steps = (m * d * inputs, d * inputs, 1)
            windows_GNI = x_TI.as_strided((count, n, inputs), steps, (start + offset) * inputs)
            torch.bmm(b_GNN, windows_GNI, out=v_DGNI[offset])
        p_NTO = torch.bmm(v_DGNI.view(-1, n, inputs).transpose(0, 1), self.weight_NIO)
        y_MDGO = torch.mm(self.a_MN, p_NTO.view(n, -1)).view(m, d, count, self.outputs)
        block_GMDO = out_TO[start : start + count * m * d].view(count, m, d, self.outputs)
        torch.add(y_MDGO.permute(2, 0, 1, 3), self.bias_O, out=block_GMDO)


@cache
def _transforms() -> tuple[Tensor, Tensor, Tensor]:
    """A [m, n], G [n, taps] and B [n, n] in float64, computed exactly before they are rounded."""
    a = [[point**power for point in _POINTS] for power in range(_TILE)]
    g, b = [], []
    for point in _POINTS:
        basis, norm = [Fraction(1)], Fraction(1)
        for other in _POINTS:
            if other != point:
                basis, norm = _times(basis, -other), norm * (point - other)
        b.append([*basis, Fraction(0)])
        g.append([point**power / norm for power in range(_TAPS)])
    # Infinity: the highest coefficient of each polynomial.
    for power, row in enumerate(a):
        row.append(Fraction(power == _TILE - 1))
    g.append([Fraction(power == _TAPS - 1) for power in range(_TAPS)])
    highest = [Fraction(1)]
    for point in _POINTS:
        highest = _times(highest, -point)
    b.append(highest)
    a_MN, g_NK, b_NN = (
        torch.tensor([[float(value) for value in row] for row in rows], dtype=torch.float64)
        for rows in (a, g, b)
    )
    return _balanced(a_MN, g_NK, b_NN)


def _times(polynomial: list[Fraction], constant: Fraction) -> list[Fraction]:
    """polynomial * (x + constant), coefficients from the lowest power."""
    higher = [Fraction(0), *polynomial]
    return [h + constant * p for h, p in zip(higher, [*polynomial, Fraction(0)], strict=True)]


def _balanced(a_MN: Tensor, g_NK: Tensor, b_NN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same product with rows of one size, so that no intermediate value is much larger."""
    size = b_NN.abs().sum(1)
    b_NN, g_NK = b_NN / size[:, None], g_NK * size[:, None]
    share = (g_NK.abs().sum(1) / a_MN.abs().sum(0)).sqrt()
    return a_MN * share, g_NK / share[:, None], b_NN
