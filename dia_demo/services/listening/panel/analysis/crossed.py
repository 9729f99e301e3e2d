"""The mean of scores that raters gave to scripts, where both are random samples.

Two votes of one rater are not independent, nor are two votes on one script, so neither can be
counted as if they were. The variance of the mean is that of crossed random effects, by the method
of moments (ANOVA; Henderson's method I where cells are missing), and its degrees of freedom are
Satterthwaite's, as in Clark's quasi-F (1973), but never fewer than those of the raters or the
scripts alone. Means of shares are compared as log odds, since their variance depends on them.
tools/simulate_raters measures false alarms and coverage. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

METHOD = (
    "mean with crossed random effects of raters and scripts (method of moments, Satterthwaite's "
    "degrees of freedom)"
)
METHOD_SHARES = "tests and intervals of shares as log odds"


@dataclass(frozen=True)
class CrossedMean:
    """A mean with its standard error and degrees of freedom, numbers or arrays [...].

    limit: of means of shares, which are between -limit and limit: tests and intervals are made with
    atanh(mean / limit), half the log odds, whose variance depends less on the mean. sd_rater,
    sd_script, sd_rest: the standard deviations between raters, between scripts, and of what is
    left, which contains their interaction.
    """

    estimate: np.ndarray
    error: np.ndarray
    df: np.ndarray
    sd_rater: np.ndarray
    sd_script: np.ndarray
    sd_rest: np.ndarray
    limit: float | None = None

    def interval(self, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """The interval of the mean."""
        from scipy.special import stdtrit

        quantile = stdtrit(self.df, (1 + confidence) / 2)
        low, high = (self.estimate + sign * quantile * self.error for sign in (-1, 1))
        if self.limit is None:
            return low, high
        is_inside, middle, error = self._log_odds(self.limit)
        ends = (self.limit * np.tanh(middle + sign * quantile * error) for sign in (-1, 1))
        low, high = (
            np.where(is_inside, end, np.clip(plain, -self.limit, self.limit))
            for end, plain in zip(ends, (low, high), strict=True)
        )
        return low, high

    def p_above(self, value: float = 0.0) -> np.ndarray:
        """The one-sided p-value against a mean of `value` or less."""
        from scipy.special import stdtr

        return stdtr(self.df, -self._distance(value))

    def p_below(self, value: float = 0.0) -> np.ndarray:
        """The one-sided p-value against a mean of `value` or more."""
        from scipy.special import stdtr

        return stdtr(self.df, self._distance(value))

    def p_two_sided(self, value: float = 0.0) -> np.ndarray:
        """The two-sided p-value against a mean of `value`."""
        return np.minimum(1.0, 2 * np.minimum(self.p_above(value), self.p_below(value)))

    def _distance(self, value: float) -> np.ndarray:
        """How many standard errors the mean is above `value`."""
        plain = (self.estimate - value) / self.error
        if self.limit is None:
            return plain
        is_inside, middle, error = self._log_odds(self.limit)
        return np.where(is_inside, (middle - np.arctanh(value / self.limit)) / error, plain)

    def _log_odds(self, limit: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whether the mean is within its limits, half its log odds, and their standard error."""
        share = self.estimate / limit
        is_inside = np.abs(share) < 1
        share = np.where(is_inside, share, 0.0)
        return is_inside, np.arctanh(share), self.error / limit / (1 - share**2)


def crossed_means(scores: np.ndarray, limit: float | None = None) -> CrossedMean:
    """Of complete scores [..., raters, scripts], at least two of each: one mean for each [...]."""
    raters, scripts = scores.shape[-2:]
    mean = scores.mean((-2, -1))
    by_rater = scores.mean(-1) - mean[..., None]
    by_script = scores.mean(-2) - mean[..., None]
    rest = scores - mean[..., None, None] - by_rater[..., None] - by_script[..., None, :]
    rest_square = (rest**2).sum((-2, -1)) / ((raters - 1) * (scripts - 1))
    rater_variance = (by_rater**2).sum(-1) / (raters - 1) - rest_square / scripts
    script_variance = (by_script**2).sum(-1) / (scripts - 1) - rest_square / raters
    shares = 1 / raters, 1 / scripts, 1 / (raters * scripts)
    freedom = raters - 1, scripts - 1, (raters - 1) * (scripts - 1)
    variances = rater_variance, script_variance, rest_square
    return _from_variances(mean, variances, shares, freedom, limit)


def crossed_mean(
    values: Sequence[float] | np.ndarray,
    raters: Sequence,
    scripts: Sequence,
    limit: float | None = None,
) -> CrossedMean | None:
    """Of single values [n], each of a rater and a script; several of one rater on one script are
    averaged first. None where fewer than two raters or scripts make a variance impossible."""
    table, present = _table(np.asarray(values, float), raters, scripts)
    count = int(present.sum())
    if min(table.shape) < 2:
        return None
    if present.all():
        return crossed_means(table, limit)
    rest_freedom = count - sum(table.shape) + 1
    if rest_freedom < 1:
        return None
    return _incomplete(table, present, rest_freedom, limit)


def _table(
    values: np.ndarray, raters: Sequence, scripts: Sequence
) -> tuple[np.ndarray, np.ndarray]:
    """Cell means [raters, scripts], 0 where there is none, and where there is one."""
    row_names, rows = np.unique(np.asarray(raters), return_inverse=True)
    column_names, columns = np.unique(np.asarray(scripts), return_inverse=True)
    sums = np.zeros((len(row_names), len(column_names)))
    counts = np.zeros_like(sums)
    np.add.at(sums, (rows, columns), values)
    np.add.at(counts, (rows, columns), 1)
    return sums / np.maximum(counts, 1), counts > 0


def _incomplete(
    table: np.ndarray, present: np.ndarray, rest_freedom: int, limit: float | None
) -> CrossedMean:
    """Henderson's method I: three sums of squares equal their expectations."""
    rows, columns = np.nonzero(present)
    values, count = table[present], int(present.sum())
    raters, scripts = present.shape
    per_rater, per_script = present.sum(1), present.sum(0)
    mean = values.mean()
    square = rest_square(values, rows, columns) / rest_freedom
    by_rater = np.bincount(rows, values) / per_rater - mean
    by_script = np.bincount(columns, values) / per_script - mean
    concentration_r = (per_rater**2).sum() / count
    concentration_s = (per_script**2).sum() / count
    expected = np.array(
        [
            [count - concentration_r, raters - concentration_s],
            [scripts - concentration_r, count - concentration_s],
        ]
    )
    observed = np.array(
        [
            (per_rater * by_rater**2).sum() - square * (raters - 1),
            (per_script * by_script**2).sum() - square * (scripts - 1),
        ]
    )
    rater_variance, script_variance = np.linalg.solve(expected, observed)
    shares = concentration_r / count, concentration_s / count, 1 / count
    freedom = raters - 1, scripts - 1, rest_freedom
    variances = rater_variance, script_variance, square
    return _from_variances(mean, variances, shares, freedom, limit)


def rest_square(values: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> float:
    """The sum of squares of values [n] that effects of their rows and columns leave over."""
    design = np.zeros((len(values), rows.max() + columns.max() + 2))
    design[np.arange(len(values)), rows] = 1
    design[np.arange(len(values)), rows.max() + 1 + columns] = 1
    fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return float(((values - fitted) ** 2).sum())


def _from_variances(mean, variances, shares, freedom, limit: float | None) -> CrossedMean:
    """variances: between raters, scripts, and of the rest; those of effects may be negative.
    shares: of each in that of the mean."""
    mean = np.asarray(mean, float)
    rater, script, rest = (np.asarray(one, float) for one in variances)
    of_rest = rest * shares[2]
    # What a mean square would be divided by the number of scores; those of incomplete tables are
    # differences, which can be negative.
    of_rater = np.maximum(rater * shares[0] + of_rest, of_rest / 10)
    of_script = np.maximum(script * shares[1] + of_rest, of_rest / 10)
    least = np.minimum(np.minimum(of_rater, of_script), of_rest)
    variance = np.maximum(of_rater + of_script - of_rest, least)
    has_rater, has_script = of_rater > of_rest, of_script > of_rest
    # An effect that is not there adds no uncertainty of its own.
    spread = np.where(has_rater, of_rater**2 / freedom[0], 0.0)
    spread = spread + np.where(has_script, of_script**2 / freedom[1], 0.0)
    spread = spread + np.where(has_rater == has_script, of_rest**2 / freedom[2], 0.0)
    fewest = min(freedom[:2])
    df = np.divide(variance**2, spread, out=np.full_like(variance, fewest), where=spread > 0)
    error = np.where(variance > 0, np.sqrt(variance), _error_without_variance(mean, fewest + 1))
    of_raters, of_scripts, left = (np.sqrt(np.maximum(one, 0.0)) for one in (rater, script, rest))
    df = np.maximum(df, fewest)
    return CrossedMean(mean, error, df, of_raters, of_scripts, left, limit)


def _error_without_variance(mean: np.ndarray, units: int) -> np.ndarray:
    """The standard error where all scores are equal: as many raters or scripts agree, whichever
    are fewer, and the 95% interval is the exact one of a share that was seen `units` times in
    `units`."""
    from scipy.special import stdtrit

    reach = 2 * np.abs(mean) * (1 - 0.025 ** (1 / units))
    return np.maximum(reach / stdtrit(units - 1, 0.975), np.finfo(float).tiny)
