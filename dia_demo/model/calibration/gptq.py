"""GPTQ: four-bit weights whose errors cancel out on the inputs that a linear really receives.

The inputs' weights are rounded one after another, and each is first corrected by the errors before
it, as far as its input is correlated with theirs (Frantar et al., arXiv 2210.17323; in the form of
Chee et al., arXiv 2307.13304, which needs one Cholesky decomposition and no inverse). The largest
inputs come first, so that their errors can be corrected in many others. Sweeps over
the groups then round every weight again, now corrected by all other errors, with the group's best
scale (Behdin et al., arXiv 2309.01885). The result has the same format as weights rounded to the
nearest.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import torch
from torch import Tensor, nn

from dia_demo.kernels.packing import HALF, padded_size
from dia_demo.model.packed_linear import (
    GRIDS,
    Grid,
    PackedLinear,
    rounded_scale,
)

# Added to the diagonal of the Hessian, relative to its mean: without it, a few inputs that were
# seen together would decide everything. The second is for a linear that saw only zeros.
DAMPING, LEAST_DAMPING = 0.01, 1e-9
SWEEPS = 2
# Inputs whose corrections by all others are one matrix product: several groups, because a product
# with few rows runs at half the speed.
AT_ONCE = 8 * HALF
# Inputs of which the Hessian is computed at once.
HESSIAN_PART = 1024


def quantize(
    weight_KN: Tensor, x_SK: Tensor, precision: str = "int4"
) -> Generator[float, None, PackedLinear]:
    """A linear of float32 weights in int4 or int5, with little error on S samples of its input.

    Yields the fraction done. Temporary memory: 16 bytes for each pair of inputs, besides copies of
    the arguments.
    """
    inputs, outputs = weight_KN.shape
    missing = padded_size(inputs) - inputs
    weight_KN = nn.functional.pad(weight_KN, (0, padded_size(outputs) - outputs, 0, missing))
    x_SK = nn.functional.pad(x_SK.float(), (0, missing))
    order_K = _rounding_order(x_SK)
    rounding = _Rounding(weight_KN[order_K].contiguous(), x_SK[:, order_K], GRIDS[precision])
    yield 0.0
    rounds = [rounding.round_part, *[rounding.improve_part] * SWEEPS]
    for number, round_part in enumerate(rounds):
        for start in range(0, padded_size(inputs), AT_ONCE):
            end = min(start + AT_ONCE, padded_size(inputs))
            round_part(slice(start, end))
            yield (number + end / padded_size(inputs)) / len(rounds)
    return PackedLinear(rounding.blocks(order_K.argsort()), precision, outputs, inputs)


def _rounding_order(x_SK: Tensor) -> Tensor:
    """The order in which inputs [K] are rounded: by mean square, HALF by HALF."""
    squares_Gg = x_SK.square().mean(0).view(-1, HALF)
    within_Gg = squares_Gg.argsort(dim=1, descending=True, stable=True)
    groups_G = squares_Gg.mean(1).argsort(descending=True, stable=True)
    return (groups_G.unsqueeze(1) * HALF + within_Gg[groups_G]).flatten()


class _Rounding:
    """Values and scales of a linear, and what they lack: `error` is weight minus stored weight.

    A group is HALF inputs, which share a scale.
    """

    def __init__(self, weight_KN: Tensor, x_SK: Tensor, grid: Grid) -> None:
        self._weight_KN, self._grid = weight_KN, grid
        self._hessian_KK = _hessian(x_SK)
        diagonal = self._hessian_KK.diagonal()
        diagonal.add_(DAMPING * diagonal.mean() + LEAST_DAMPING)
        self._feedback_KK, self._importance_K = _decompose(self._hessian_KK)
        self._error_KN, self._value_KN = torch.empty_like(weight_KN), torch.empty_like(weight_KN)
        self._scale_GN = weight_KN.new_empty(len(weight_KN) // HALF, weight_KN.shape[1])
        self._output_scale_N = grid.output_scales(weight_KN.t().unsqueeze(1)).flatten()

    def round_part(self, part: slice) -> None:
        """Choose the scales and values of the groups of `part`; inputs before it must be done."""
        feedback_KK, error_KN = self._feedback_KK, self._error_KN
        before = slice(part.start)
        target_KN = self._weight_KN[part].addmm(feedback_KK[before, part].t(), error_KN[before])
        for group, later in _groups(part):
            local, local_later = _shift(group, part), _shift(later, part)
            self._round_group(group, target_KN[local])
            target_KN[local_later].addmm_(feedback_KK[group, later].t(), error_KN[group])

    def _round_group(self, group: slice, target_KN: Tensor) -> None:
        """target_KN: the weights, corrected by the errors of all groups before; it is changed."""
        output_scale_N11 = self._output_scale_N.view(-1, 1, 1)
        importance_K = self._importance_K[group]
        target_N1K = target_KN.t().unsqueeze(1)
        scale_N = self._grid.scales(target_N1K, output_scale_N11, importance_K).flatten()
        self._scale_GN[group.start // HALF] = scale_N
        step_N = scale_N * self._output_scale_N
        for k in range(group.start, group.stop):
            value_N = self._grid.nearest(target_KN[k - group.start] / step_N)
            self._value_KN[k] = value_N
            torch.sub(self._weight_KN[k], value_N * step_N, out=self._error_KN[k])
            feedback = self._feedback_KK[k, k + 1 : group.stop]
            target_KN[k - group.start + 1 :].addr_(feedback, self._error_KN[k])

    def improve_part(self, part: slice) -> None:
        """Choose the scales and values of the groups of `part` again, given those of all others."""
        # Half of the gradient of the error on the samples, negated.
        slope_KN = self._hessian_KK[part] @ self._error_KN
        for group, later in _groups(part):
            local, local_later = _shift(group, part), _shift(later, part)
            before_KN = self._error_KN[group].clone()
            self._improve_group(group, slope_KN[local])
            change_KN = before_KN.sub_(self._error_KN[group])
            slope_KN[local_later].addmm_(self._hessian_KK[later, group], change_KN, alpha=-1)

    def _improve_group(self, group: slice, slope_KN: Tensor) -> None:
        """slope_KN: that of the group, after the changes of all groups before; it is changed."""
        hessian = self._hessian_KK[group, group]
        step_N = self._best_step(group, hessian, slope_KN)
        for k in range(group.start, group.stop):
            column = hessian[k - group.start]
            before_N = self._value_KN[k]
            correction_N = slope_KN[k - group.start] / (column[k - group.start] * step_N)
            value_N = self._grid.nearest(before_N + correction_N)
            change_N = (value_N - before_N).mul_(step_N)
            self._value_KN[k] = value_N
            self._error_KN[k] -= change_N
            slope_KN.addr_(column, change_N, alpha=-1)

    def _best_step(self, group: slice, hessian: Tensor, slope_KN: Tensor) -> Tensor:
        """Change a group's scales to those of least error for its values, and return them times the
        scales of the outputs."""
        scale_N = self._scale_GN[group.start // HALF]
        before_N = scale_N * self._output_scale_N
        value_KN = self._value_KN[group]
        response_KN = hessian @ value_KN
        change_N = (value_KN * slope_KN).sum(0) / (value_KN * response_KN).sum(0).clamp_(1e-30)
        scale_N.copy_(rounded_scale((before_N + change_N) / self._output_scale_N))
        step_N = scale_N * self._output_scale_N
        change_N = step_N - before_N
        self._error_KN[group] -= value_KN * change_N
        slope_KN -= response_KN * change_N
        return step_N

    def blocks(self, order_K: Tensor) -> Tensor:
        """The linear's blocks, as packed_linear.py stores them, with the inputs in this order,
        which keeps groups together."""
        groups, outputs = self._scale_GN.shape
        scale_GN = self._scale_GN[order_K[::HALF] // HALF]
        value_NGh = self._value_KN[order_K].t().reshape(outputs, groups, HALF)
        output_scale_N11 = self._output_scale_N.view(-1, 1, 1)
        return self._grid.blocks(value_NGh, scale_GN.t().unsqueeze(2), output_scale_N11)


def _groups(part: slice) -> Iterator[tuple[slice, slice]]:
    """The groups of a part of the inputs, each with what comes after it in the part."""
    for start in range(part.start, part.stop, HALF):
        yield slice(start, start + HALF), slice(start + HALF, part.stop)


def _shift(inputs: slice, part: slice) -> slice:
    """These inputs, counted from the first one of the part."""
    return slice(inputs.start - part.start, inputs.stop - part.start)


def _hessian(x_SK: Tensor) -> Tensor:
    """x' x: its upper half is computed, part by part, and copied to the lower."""
    K = x_SK.shape[1]
    hessian_KK = x_SK.new_empty(K, K)
    for start in range(0, K, HESSIAN_PART):
        end = min(start + HESSIAN_PART, K)
        torch.mm(x_SK[:, start:end].t(), x_SK[:, start:], out=hessian_KK[start:end, start:])
        hessian_KK[end:, start:end] = hessian_KK[start:end, end:].t()
    return hessian_KK


def _decompose(hessian_KK: Tensor) -> tuple[Tensor, Tensor]:
    """M [K, K], upper triangular with ones on the diagonal, and D [K]: the Hessian is M diag(D) M'.

    M[j, k] is how much of the error of weight j weight k > j should take back, D[k] how much an
    error of weight k counts after that.
    """
    # The decomposition gives a lower triangle: both axes are reversed before and after it.
    lower = torch.linalg.cholesky(hessian_KK.flip(0, 1).double())
    diagonal = lower.diagonal().clone()
    return lower.div_(diagonal).float().flip(0, 1), diagonal.square().float().flip(0)
