"""What a fit says of its estimates: draws, criteria, near-equivalent optima, warnings."""

import numpy as np
import pandas as pd
import pytest
from fitting_case import fitted, fitted_part

from moelaws import laws
from moelaws.fitting.prediction import predict
from moelaws.spec.errors import UserError

LINE = laws.fittable("leverage.allocation:M")  # ln M over ln C
DENSE = laws.fittable("chinchilla")


def _line(C, noise=0.05):
    C = np.asarray(C)
    errors = noise * np.random.default_rng(0).standard_normal(len(C))
    return pd.DataFrame({"C": C, "M": LINE.predict(LINE.published, {"C": C}) * np.exp(errors)})


def test_draws_of_an_unidentified_coefficient_still_predict():
    """Three budgets within 2 %: Student's draws of ln coefficient go beyond what exp holds."""
    table = _line([1e20, 1.01e20, 1.02e20], noise=0.5)
    report = fitted(LINE, table)
    (part,) = report.parts
    draws = report.draws[list(part.params)].to_numpy()
    assert np.isfinite(draws).all()
    prediction = predict(LINE, part.estimates(), draws, part.residuals, {"C": 1.01e20}, 0.9)
    assert 0 < prediction.low[0] < prediction.value[0] < prediction.high[0] < np.inf
    assert "coefficient" in part.diagnostics.unidentified


def test_an_estimate_that_no_number_holds_is_refused():
    table = pd.DataFrame({"C": [1e20, 1.001e20, 1.002e20], "M": [2e9, 4e9, 1.5e9]})
    with pytest.raises(UserError, match=r"estimate of coefficient is exp\(6646\).*C vary too"):
        fitted(LINE, table)


def test_criteria_are_of_the_weighted_likelihood(dense):
    """The objective huber_scale is that likelihood; sigma counts as a parameter."""
    table = dense(sizes=6, tokens=6)
    table["se"] = table["L"] * np.where(np.arange(36) % 2, 0.02, 0.005)
    for weights in ("", "se"):
        protocol = {"objective": "huber_scale", "sample": 40}
        part = fitted_part(DENSE, table, weights=weights, bootstrap=2, protocol=protocol)
        assert part.metrics["aic"] == pytest.approx(2 * 6 + 2 * part.objective, rel=1e-6)
        assert part.metrics["bic"] == pytest.approx(6 * np.log(36) + 2 * part.objective, rel=1e-6)


def test_a_profile_of_a_parameter_that_is_not_there():
    with pytest.raises(UserError, match=r"profile: .* has no parameter 'beta'; it has coefficient"):
        fitted(LINE, _line([1e18, 1e19, 1e20]), profile=("beta",))
