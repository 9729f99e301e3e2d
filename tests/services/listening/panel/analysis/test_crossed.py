"""The mean over raters and scripts: complete and incomplete tables, hand-computed values."""

import numpy as np
import pytest
from scipy import stats

from dia_demo.services.listening.panel.analysis.crossed import crossed_mean, crossed_means


def scores_of(raters=6, scripts=8, seed=0):
    random = np.random.default_rng(seed)
    return (
        0.4
        + random.standard_normal((raters, 1))
        + random.standard_normal((1, scripts))
        + random.standard_normal((raters, scripts))
    )


def long(table, present=None):
    present = np.ones(table.shape, bool) if present is None else present
    rows, columns = np.nonzero(present)
    return table[present], rows, columns


def test_the_error_is_that_of_the_mean_squares():
    table = scores_of()
    raters, scripts = table.shape
    mean = table.mean()
    of_raters = scripts * ((table.mean(1) - mean) ** 2).sum() / (raters - 1)
    of_scripts = raters * ((table.mean(0) - mean) ** 2).sum() / (scripts - 1)
    rest = table - table.mean(1, keepdims=True) - table.mean(0, keepdims=True) + mean
    of_rest = (rest**2).sum() / ((raters - 1) * (scripts - 1))
    total = of_raters + of_scripts - of_rest
    spread = (
        of_raters**2 / (raters - 1)
        + of_scripts**2 / (scripts - 1)
        + of_rest**2 / ((raters - 1) * (scripts - 1))
    )
    fit = crossed_mean(*long(table))
    assert fit.estimate == pytest.approx(mean)
    assert fit.error == pytest.approx(np.sqrt(total / table.size))
    assert fit.df == pytest.approx(total**2 / spread)
    assert fit.p_two_sided() == pytest.approx(2 * stats.t.sf(mean / fit.error, fit.df))
    low, high = fit.interval()
    assert (low + high) / 2 == pytest.approx(mean)


def test_without_effects_of_raters_it_is_the_t_test_of_scripts():
    """Each rater gave every script its mean: only scripts vary."""
    by_script = np.random.default_rng(3).standard_normal(9)
    fit = crossed_mean(*long(np.tile(by_script, (5, 1))))
    assert fit.p_two_sided() == pytest.approx(stats.ttest_1samp(by_script, 0).pvalue)
    low, high = fit.interval()
    expected = stats.ttest_1samp(by_script, 0).confidence_interval()
    assert (low, high) == pytest.approx(tuple(expected))


def test_raters_and_scripts_are_exchangeable():
    table = scores_of()
    values, rows, columns = long(table)
    one, other = crossed_mean(values, rows, columns), crossed_mean(values, columns, rows)
    assert one.error == pytest.approx(other.error) and one.df == pytest.approx(other.df)


def test_nearly_complete_tables_are_nearly_the_same():
    table = scores_of(10, 12)
    present = np.ones(table.shape, bool)
    present[0, 0] = False
    whole, part = crossed_mean(*long(table)), crossed_mean(*long(table, present))
    assert part.error == pytest.approx(whole.error, rel=0.05)
    assert part.df == pytest.approx(whole.df, rel=0.1)


def test_variances_of_incomplete_tables_are_unbiased():
    """Each rater has half of the scripts; the deviations are 1, 1 and 1."""
    present = (np.add.outer(np.arange(12), np.arange(12)) // 3) % 2 == 0
    fits = [crossed_mean(*long(scores_of(12, 12, seed), present)) for seed in range(150)]
    for name in ("sd_rater", "sd_script", "sd_rest"):
        mean = np.mean([getattr(fit, name) ** 2 for fit in fits])
        assert mean == pytest.approx(1.0, abs=0.17), name


def test_several_votes_of_a_rater_on_a_script_count_once():
    table = scores_of()
    values, rows, columns = long(table)
    twice = crossed_mean(np.tile(values, 2), np.tile(rows, 2), np.tile(columns, 2))
    assert twice.error == pytest.approx(crossed_mean(values, rows, columns).error)


def test_one_rater_or_one_script_says_nothing_of_others():
    table = scores_of(1, 8)
    assert crossed_mean(*long(table)) is None
    assert crossed_mean(*long(table.T)) is None
    assert crossed_mean([], [], []) is None


def test_shares_are_compared_as_log_odds_and_stay_within_their_limits():
    """Half the log odds of the mean, with the error of the delta method."""
    table = np.sign(scores_of(12, 16) + 1.0)
    plain, shares = crossed_means(table), crossed_means(table, limit=1.0)
    middle = np.arctanh(plain.estimate)
    error = plain.error / (1 - plain.estimate**2)
    reach = stats.t.isf(0.025, plain.df) * error
    assert shares.interval() == pytest.approx((np.tanh(middle - reach), np.tanh(middle + reach)))
    assert shares.p_two_sided() == pytest.approx(2 * stats.t.sf(middle / error, plain.df))
    assert shares.p_above(shares.interval(0.9)[0]) == pytest.approx(0.05)
    halved = crossed_means(table / 2, limit=0.5)
    assert halved.interval() == pytest.approx(tuple(end / 2 for end in shares.interval()))
    ones = crossed_means(np.ones((6, 6)), limit=1.0)
    low, high = ones.interval()
    assert 0 < low < high == 1.0 and 0 < ones.p_two_sided() < 0.05


def test_equal_scores_are_as_many_units_as_there_are_raters_or_scripts():
    """Of n that all agree, the exact 95% interval of the share starts at 0.025 ** (1 / n)."""
    for raters, scripts in ((3, 4), (12, 6)):
        low, _ = crossed_means(np.ones((raters, scripts))).interval()
        share = 0.025 ** (1 / min(raters, scripts))
        assert low == pytest.approx(2 * share - 1)
    assert crossed_means(np.zeros((3, 4))).p_two_sided() == 1.0
