"""Looking at a result before the planned number: levels of O'Brien and Fleming, and an e-value.

A result that may be seen whenever it looks good makes chance look like a result. Looks that were
planned spread the 5% over all of them; an e-value may be seen after every rater.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

# Constants for two-sided 5% and 2 to 10 equally spaced looks (Jennison and Turnbull, Group
# Sequential Methods, 2000, table 2.3).
_OBRIEN_FLEMING = {
    1: 1.960,
    2: 1.977,
    3: 2.004,
    4: 2.024,
    5: 2.040,
    6: 2.053,
    7: 2.063,
    8: 2.072,
    9: 2.080,
    10: 2.087,
}
# An e-value of 1/5% happens by chance in 5% of tests at most, however often it is looked at.
E_LIMIT = 20.0
_BETS = np.array([0.5, 1.0, 2.0])
METHOD_LOOKS = "levels of O'Brien and Fleming"
METHOD_E_VALUE = (
    "e-value (a mixture of bets on the signs of the raters' mean scores; Ramdas et al. 2023)"
)


def look_levels(looks: int) -> tuple[float, ...]:
    """The two-sided level of each of so many looks, 1 to 10."""
    from scipy.stats import norm

    constant = _OBRIEN_FLEMING[looks]
    return tuple(
        float(2 * norm.sf(constant * (looks / look) ** 0.5)) for look in range(1, looks + 1)
    )


def raters_of_looks(raters: int, looks: int) -> tuple[int, ...]:
    """After how many raters each look is."""
    return tuple(ceil(raters * look / looks) for look in range(1, looks + 1))


def e_values(rater_means: Sequence[float] | np.ndarray) -> np.ndarray:
    """The e-value after each rater [..., raters], against no difference for these scripts.

    Sides are drawn at random, so without a difference each rater's mean score has either sign with
    the same chance, whatever its size. exp(bet x mean) / cosh(bet x mean) is then 1 on average, so
    is the product over raters whenever it is looked at, and so is the mean of products for several
    bets. Means are measured by the mean size so far, which tells nothing of the next sign.
    """
    means = np.asarray(rater_means, float)
    sizes = np.cumsum(np.abs(means), -1) / np.arange(1, means.shape[-1] + 1)
    scaled = np.divide(means, sizes, out=np.zeros_like(means), where=sizes > 0)
    bets = np.concatenate([_BETS, -_BETS])[:, None] * scaled[..., None, :]
    return np.exp(np.cumsum(bets - np.log(np.cosh(bets)), -1)).mean(-2)
