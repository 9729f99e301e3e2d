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

_TAPS = 7
# The interpolation points of tiles of 6 and 4 outputs, besides infinity. In float32 the relative
# error is about 9e-6 with tiles of 6, and 5e-6 with tiles of 4.
_POINTS = {
    6: "0 1 -1 2 -2 1/2 -1/2 3/2 -3/2 2/3 -2/3",
    4: "0 1 -1 2 -2 1/2 -1/2 3/4 -3/4",
}
# Floats of the transformed inputs and of their products that are computed at once, so that they
# stay in the cache; but at least so many tiles, since each block reads all weights.
_BLOCK_FLOATS = 1_000_000
_FEWEST_TILES = 64


class WinogradConvolution:
    """A `Convolution` of stride 1 without padding, for weights that it `supports`.

    Its products are a batch of torch's matrix products.
    """

    tile = 6
    # With fewer channels the transforms take longer than the products that they save.
    fewest_channels = 32

    def __init__(self, weight_OIK: Tensor, bias_O: Tensor, dilation: int, rows: int) -> None:
        self.outputs, self.inputs, taps = weight_OIK.shape
        self.bias_O, self.dilation, self.reach = bias_O, dilation, dilation * (taps - 1)
        a_MN, g_NK, b_NN = _transforms(self.tile)
        self.a_MN, self.b_NN, self.points = a_MN.float(), b_NN.float(), len(b_NN)
        self.block = self._choose_block(rows)
        weight_NOI = torch.einsum("nk,oik->noi", g_NK, weight_OIK.double())
        self.weight = self._pack(weight_NOI.float())

    @classmethod
    def supports(cls, weight_OIK: Tensor) -> bool:
        """Whether it computes such a convolution, in float32, and may be faster at it."""
        is_wide = min(weight_OIK.shape[:2]) >= cls.fewest_channels
        return weight_OIK.dtype == torch.float32 and weight_OIK.shape[-1] == _TAPS and is_wide

    def __call__(self, x_TI: Tensor) -> Tensor:
        rows = len(x_TI) - self.reach
        # A tile takes every `dilation`-th row, so `dilation` tiles lie inside one another.
        span = self.tile * self.dilation
        groups = self._round_up(-(-rows // span))
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
        d, m, n, inputs = self.dilation, self.tile, self.points, self.inputs
        start = first * m * d
        v_DGNI = x_TI.new_empty(d, count, n, inputs)
        b_GNN = self.b_NN.expand(count, n, n)
        begin = x_TI.storage_offset()  # as_strided counts from the start of the memory.
        for offset in range(d):
            steps = (m * d * inputs, d * inputs, 1)
            at = begin + (start + offset) * inputs
            windows_GNI = x_TI.as_strided((count, n, inputs), steps, at)
            torch.bmm(b_GNN, windows_GNI, out=v_DGNI[offset])
        y_TMO = self._multiply(v_DGNI.view(-1, n, inputs))
        block_GMDO = out_TO[start : start + count * m * d].view(count, m, d, self.outputs)
        y_DGMO = y_TMO.view(d, count, m, self.outputs)
        torch.add(y_DGMO.permute(1, 2, 0, 3), self.bias_O, out=block_GMDO)

    def _most_tiles(self) -> int:
        """How many tiles to compute at once."""
        floats = self.points * (self.inputs + self.outputs)
        return max(_FEWEST_TILES, _BLOCK_FLOATS // floats)

    def _choose_block(self, rows: int) -> int:
        """How many groups of tiles are computed at once, for the usual number of outputs."""
        return -(-self._most_tiles() // self.dilation)

    def _round_up(self, groups: int) -> int:
        """So many groups of tiles, or more if they must be a multiple of a number."""
        return groups

    def _pack(self, weight_NOI: Tensor) -> Tensor:
        return weight_NOI.transpose(1, 2).contiguous()

    def _multiply(self, v_TNI: Tensor) -> Tensor:
        """The tiles' outputs [T, m, O] of their transformed inputs."""
        p_NTO = torch.bmm(v_TNI.transpose(0, 1), self.weight)
        y_MTO = torch.mm(self.a_MN, p_NTO.view(self.points, -1))
        return y_MTO.view(self.tile, -1, self.outputs).transpose(0, 1)


class GroupedWinogradConvolution(WinogradConvolution):
    """Its products are one convolution of oneDNN with a group for each point.

    oneDNN has kernels for processors where torch's matrix products use half of the lanes (MKL on
    AMD). It rounds more, so tiles are smaller.
    """

    tile = 4
    fewest_channels = 192

    def _choose_block(self, rows: int) -> int:
        # oneDNN is much slower with another number of tiles than the weights were packed for. A
        # stream's blocks have the usual number of rows or half of it.
        groups = -(-rows // (2 * self.tile * self.dilation))
        return -(-groups // max(1, round(groups * self.dilation / self._most_tiles())))

    def _round_up(self, groups: int) -> int:
        return -(-groups // self.block) * self.block

    def _pack(self, weight_NOI: Tensor) -> Tensor:
        line = [1, self.points * self.inputs, 1, self.block * self.dilation]
        return torch.ops.mkldnn._reorder_convolution_weight(
            weight_NOI.reshape(-1, self.inputs, 1, 1), [0, 0], [1, 1], [1, 1], self.points, line
        )

    def _multiply(self, v_TNI: Tensor) -> Tensor:
        line_1C1T = v_TNI.flatten(1).t()[None, :, None, :]
        p_1C1T = torch.ops.mkldnn._convolution_pointwise(
            line_1C1T, self.weight, None, [0, 0], [1, 1], [1, 1], self.points, "none", [], ""
        )
        p_TNO = p_1C1T[0, :, 0].t().reshape(-1, self.points, self.outputs)
        return torch.bmm(self.a_MN.expand(len(p_TNO), -1, -1), p_TNO)


@cache
def _transforms(tile: int) -> tuple[Tensor, Tensor, Tensor]:
    """For tiles of m outputs, A [m, n], G [n, taps] and B [n, n] in float64.

    They are computed exactly before they are rounded.
    """
    points = [Fraction(point) for point in _POINTS[tile].split()]
    a = [[point**power for point in points] for power in range(tile)]
    g, b = [], []
    for point in points:
        basis, norm = [Fraction(1)], Fraction(1)
        for other in points:
            if other != point:
                basis, norm = _times(basis, -other), norm * (point - other)
        b.append([*basis, Fraction(0)])
        g.append([point**power / norm for power in range(_TAPS)])
    # Infinity: the highest coefficient of each polynomial.
    for power, row in enumerate(a):
        row.append(Fraction(power == tile - 1))
    g.append([Fraction(power == _TAPS - 1) for power in range(_TAPS)])
    highest = [Fraction(1)]
    for point in points:
        highest = _times(highest, -point)
    b.append(highest)
    a_MN, g_NK, b_NN = (
        torch.tensor([[float(value) for value in row] for row in rows], dtype=torch.float64)
        for rows in (a, g, b)
    )
    return _balance(a_MN, g_NK, b_NN)


def _times(polynomial: list[Fraction], constant: Fraction) -> list[Fraction]:
    """polynomial * (x + constant), coefficients from the lowest power."""
    higher = [Fraction(0), *polynomial]
    return [h + constant * p for h, p in zip(higher, [*polynomial, Fraction(0)], strict=True)]


def _balance(a_MN: Tensor, g_NK: Tensor, b_NN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same product with rows of one size, so that no intermediate value is much larger."""
    size = b_NN.abs().sum(1)
    b_NN, g_NK = b_NN / size[:, None], g_NK * size[:, None]
    share = (g_NK.abs().sum(1) / a_MN.abs().sum(0)).sqrt()
    return a_MN * share, g_NK / share[:, None], b_NN
