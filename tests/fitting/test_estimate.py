"""What a fit says of its estimates, of its residuals and of a new loss."""

import numpy as np
import pandas as pd
import pytest
from fitting_case import fitted, fitted_group

from moelaws import laws
from moelaws.fitting.errors import criteria, errors
from moelaws.fitting.objective import sigma_huber
from moelaws.fitting.prediction import predict
from moelaws.spec.errors import UserError

LINE = laws.fittable("leverage.allocation:M")  # ln M over ln C


def test_draws_of_an_unidentified_coefficient_still_predict():
    """Three budgets within 2 %: Student's draws of ln coefficient go beyond what exp holds."""
    table = pd.DataFrame({"C": [1e20, 1.01e20, 1.02e20]})
    errors = 0.5 * np.random.default_rng(0).standard_normal(3)
    report = fitted(LINE, table.assign(M=LINE.predict(LINE.published, table) * np.exp(errors)))
    (group,) = report.parts
    draws = report.draws[list(group.params)].to_numpy()
    assert np.isfinite(draws).all()
    prediction = predict(LINE, group, draws, {"C": 1.01e20}, 0.9)
    assert 0 < prediction.low[0] < prediction.value[0] < prediction.high[0] < np.inf
    assert "coefficient" in group.diagnostics.unidentified


def test_an_estimate_that_no_number_holds_is_refused():
    table = pd.DataFrame({"C": [1e20, 1.001e20, 1.002e20], "M": [2e9, 4e9, 1.5e9]})
    with pytest.raises(UserError, match=r"estimate of coefficient is exp\(6646\).*C vary too"):
        fitted(LINE, table)


def test_criteria_are_of_the_weighted_likelihood_and_count_its_scale():
    observed, w = np.linspace(2.0, 3.0, 36), np.linspace(0.5, 1.5, 36)
    predicted = observed * np.exp(0.02 * np.random.default_rng(0).standard_normal(36))
    nll = sigma_huber(np.log(predicted / observed), 1e-3, w)
    known = criteria(observed, predicted, 5, 1e-3, w)
    assert known["aic"] == pytest.approx(2 * 6 + 2 * nll)
    assert known["aicc"] == pytest.approx(known["aic"] + 2 * 6 * 7 / (36 - 7))
    assert known["bic"] == pytest.approx(6 * np.log(36) + 2 * nll)
    for n_params in (34, 35, 36):  # and sigma: n - k - 1 is 0 or less
        assert set(criteria(observed, predicted, n_params, 1e-3, w).values()) == {None}


def test_errors_by_their_definitions():
    observed, predicted = np.array([2.0, 2.5, 4.0]), np.array([2.1, 2.4, 4.4])
    metrics = errors(observed, predicted, 1e-3)
    assert metrics["mse"] == pytest.approx(0.06)
    assert metrics["rmse"] == pytest.approx(0.06**0.5)
    assert metrics["bias"] == pytest.approx(0.4 / 3)
    assert metrics["r2"] == pytest.approx(1 - 0.18 / np.var(observed) / 3)
    ratios = np.abs(np.log(predicted / observed))
    assert metrics["huber_sum"] == pytest.approx((1e-3 * (ratios - 5e-4)).sum())
    assert metrics["huber_mean"] == pytest.approx(metrics["huber_sum"] / 3)
    assert errors(np.full(3, 2.0), predicted, 1e-3)["r2"] is None
    same = np.full(180, 2.1)  # its mean is another number in the last digit
    assert errors(same, same, 1e-3)["r2"] is None
    assert errors(observed - 3, predicted, 1e-3)["huber_sum"] is None


def test_a_saturation_that_no_row_comes_near_is_above_its_lower_end():
    """Table 6's A_max is 5.28e16 for activation ratios up to 1; searches end at starts of e^38."""
    law = laws.fittable("leverage.joint")
    A, G, C = (x.ravel() for x in np.meshgrid(np.geomspace(0.01, 1, 6), [1, 4, 12], [1e18, 1e20]))
    table = pd.DataFrame({"A": A, "G": G, "C": C})
    errors = 0.02 * np.random.default_rng(0).standard_normal(len(table))
    table["EL"] = law.predict(law.published, table) * np.exp(errors)
    group = fitted_group(law, table)
    A_max = group.params["A_max"]
    assert A_max.high is None
    assert 1 < A_max.low < 1e4
    assert any("A_max is above" in warning for warning in group.warnings)
    assert "A_max" in group.diagnostics.unidentified
    others = [p for name, p in group.params.items() if name != "A_max"]
    assert all(p.low < p.estimate < p.high for p in others)


def test_an_exponent_at_zero_is_bounded_by_it(dense):
    """Without effect of the tokens, beta is 0 or above: an end at 0 is no end of a search."""
    law, table = laws.fittable("chinchilla"), dense(noise=0.003)
    table["L"] *= law.predict(law.published, table.assign(D=1e10)) / law.predict(
        law.published, table
    )
    beta = fitted_group(law, table, protocol={"sample": 60}).params["beta"]
    assert beta.low == 0
