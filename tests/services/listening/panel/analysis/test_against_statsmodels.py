"""The project's own formulas held against statsmodels, which the program itself does not need."""

import numpy as np
import pytest

from dia_demo.services.listening.panel.analysis.clusters import clustered_strengths
from dia_demo.services.listening.panel.analysis.crossed import crossed_means
from dia_demo.services.listening.panel.analysis.result import holm

pytestmark = pytest.mark.long


def test_a_complete_table_gives_the_variances_of_reml():
    """Where all effects are there, REML and the method of moments agree in complete tables."""
    import pandas
    from statsmodels.regression.mixed_linear_model import MixedLM

    random = np.random.default_rng(7)
    table = 0.5 + random.standard_normal((6, 8)) + 1.5 * random.standard_normal((6, 1))
    table += 1.2 * random.standard_normal((1, 8))
    rows, columns = (one.ravel() for one in np.indices(table.shape))
    frame = pandas.DataFrame({"score": table.ravel(), "rater": rows, "script": columns, "one": 1})
    effects = {"rater": "0 + C(rater)", "script": "0 + C(script)"}
    model = MixedLM.from_formula("score ~ 1", groups="one", vc_formula=effects, data=frame)
    fit = model.fit(reml=True)
    ours = crossed_means(table)
    assert fit.params["Intercept"] == pytest.approx(float(ours.estimate), abs=1e-6)
    assert fit.bse["Intercept"] == pytest.approx(float(ours.error), rel=0.01)
    assert dict(zip(model.exog_vc.names, fit.vcomp, strict=True)) == pytest.approx(
        {"rater": float(ours.sd_rater) ** 2, "script": float(ours.sd_script) ** 2}, rel=0.01
    )
    assert fit.scale == pytest.approx(float(ours.sd_rest) ** 2, rel=0.01)


def test_strengths_have_the_clustered_errors_of_a_logistic_regression():
    import statsmodels.api as sm

    random = np.random.default_rng(8)
    pairs = np.array([(0, 1), (0, 2), (1, 2)])
    shape = (8, 10, 3)
    raters, scripts, which = (one.ravel() for one in np.indices(shape))
    taste = np.array([0.8, 0.2, 0.0]) + 0.5 * random.standard_normal((8, 10, 3))
    lead = taste[..., pairs[:, 0]] - taste[..., pairs[:, 1]]
    scores = np.sign(lead + random.logistic(size=shape)).ravel()
    systems = pairs[which]
    ours = clustered_strengths(systems, scores, raters, scripts, 3)
    columns = np.zeros((len(scores), 2))
    for place in (0, 1):
        columns[:, place] = 1.0 * (systems[:, 0] == place) - (systems[:, 1] == place)
    model = sm.GLM((scores + 1) / 2, columns, family=sm.families.Binomial())
    groups = raters, scripts, raters * 10 + scripts
    by_raters, by_scripts, by_cells = (
        model.fit(
            cov_type="cluster", cov_kwds={"groups": group, "use_correction": False}
        ).cov_params()
        for group in groups
    )
    expected = by_raters * 8 / 7 + by_scripts * 10 / 9 - by_cells
    lead, error, _ = ours.difference(0, 2)
    assert lead == pytest.approx(model.fit().params[0], rel=1e-4)
    assert error == pytest.approx(np.sqrt(expected[0, 0]), rel=1e-3)


def test_holm_is_that_of_statsmodels():
    from statsmodels.stats.multitest import multipletests

    p_values = np.random.default_rng(9).random(10) / 5
    assert holm(p_values.tolist()) == pytest.approx(multipletests(p_values, method="holm")[1])
