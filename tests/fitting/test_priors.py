"""Parameters that are fixed, or known from elsewhere with an error."""

import numpy as np
import pandas as pd
import pytest
from fitting_case import fitted, fitted_group
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from moelaws import laws
from moelaws.fitting.prediction import predict
from moelaws.fitting.priors import WithPriors
from moelaws.spec.errors import UserError

LAW = laws.fittable("chinchilla")
QUICK = {"bootstrap": 1, "protocol": {"sample": 40}}


def test_a_fixed_parameter_leaves_the_best_of_the_others(dense):
    """Against SciPy's minimum over the other four."""
    table = dense(noise=0.01, sizes=6, tokens=5)
    group = fitted_group(LAW, table, fixed={"E": 1.6}, **QUICK)
    N, D, ln_L = (table[name].to_numpy() for name in ("N", "D", "L"))
    ln_L = np.log(ln_L)

    def objective(x):
        L = np.exp(x[0] - x[2] * np.log(N)) + np.exp(x[1] - x[3] * np.log(D)) + 1.6
        r = np.abs(np.log(L) - ln_L)
        return np.where(r < 1e-3, r**2 / 2, 1e-3 * (r - 5e-4)).sum()

    start = LAW.vector(group.estimates())[[0, 1, 3, 4]]
    best = minimize(
        objective, start, method="Nelder-Mead", options={"fatol": 1e-14, "xatol": 1e-10}
    )
    assert group.estimates()["E"] == pytest.approx(1.6, rel=1e-12)
    assert group.objective <= best.fun * (1 + 1e-6)
    assert group.converged
    assert "E is fixed at 1.6" in group.notes
    own, known = group.params["E"], group.diagnostics
    assert own.low == own.high == pytest.approx(1.6)
    assert "E" not in (*known.at_bounds, *known.unidentified)


def test_four_rows_determine_four_parameters(dense):
    table = dense(noise=0.0, sizes=4, tokens=4).iloc[[0, 6, 11, 13]]  # all of other N and D
    with pytest.raises(UserError, match="4 rows"):
        fitted(LAW, table, **QUICK)
    exact = LAW.published["E"]
    report = fitted(LAW, table, fixed={"E": exact}, bootstrap=1)
    (group,) = report.parts
    draws = report.draws[[*group.params]].to_numpy()  # for what is derived from curves
    assert len(draws) == 1
    assert np.isnan(predict(LAW, group, draws, {"N": 1e9, "D": 1e10}, 0.9).low).all()
    assert group.objective == pytest.approx(0, abs=1e-12)
    assert group.intervals == "none, for as many parameters as rows leave no errors to see"
    assert {p.low for p in group.params.values()} == {None}


def test_a_prior_and_the_rows_are_weighted_by_their_errors():
    """Least squares of a mean: the posterior of a normal mean with a normal prior."""
    law = laws.fittable("marin:loss")
    rng = np.random.default_rng(0)
    C = np.geomspace(1e18, 1e21, 200)
    table = pd.DataFrame({"C": C})
    table["L"] = law.predict(law.published, table) * np.exp(0.01 * rng.standard_normal(len(C)))
    fields = {"fixed": {"a": 95.18, "alpha": 0.0941}, "protocol": {"objective": "squared"}}
    group = fitted_group(law, table, bootstrap=1, **fields)
    rows, se = group.estimates()["e"], group.delta_method["e"]["se"]
    prior = (rows + 3 * se, 1.5 * se)
    both = fitted_group(law, table, bootstrap=1, priors={"e": prior}, **fields).estimates()["e"]
    weight = se**-2 / (se**-2 + prior[1] ** -2)
    assert both == pytest.approx(weight * rows + (1 - weight) * prior[0], abs=0.03 * se)


def test_the_interval_of_what_only_a_prior_knows_is_the_priors(dense):
    """Two budgets tell little of the floor."""
    table = dense(noise=0.02, sizes=4, tokens=3).query("D < 2e10")
    group = fitted_group(
        LAW, table, priors={"E": [1.7, 0.02]}, bootstrap=300, protocol={"sample": 40}
    )
    own = group.params["E"]
    assert own.high - own.low == pytest.approx(2 * 1.645 * 0.02, rel=0.25)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1.0, 1.0), min_size=5, max_size=5), st.floats(0.01, 1.0))
def test_the_rows_of_priors_have_the_slopes_and_the_curvature_of_differences(shift, factor):
    columns = {"N": np.geomspace(1e7, 1e10, 7), "D": np.geomspace(1e9, 1e11, 7)}
    index = np.array([2, 3])
    model = WithPriors(LAW.model(columns), index, np.array([factor, 2.0]))
    theta = LAW.vector(LAW.published) * (1 + 0.05 * np.array(shift))
    psi = np.random.default_rng(0).standard_normal((1, 9))
    value, state = model.evaluate(theta[None])
    J = model.jacobian(state)[0]
    curvature = model.curvature(state, psi)[0] - (J * psi) @ J.T  # as the engine takes it off

    def gradient(x):
        _, own = model.evaluate(x[None])
        return model.jacobian(own)[0] @ psi[0]

    for p in range(5):
        step = 1e-5 * np.eye(5)[p]
        (above,), (below,) = (model.evaluate((theta + move)[None])[0] for move in (step, -step))
        slope = above - below
        assert J[p] == pytest.approx(slope / 2e-5, rel=1e-5, abs=1e-8)
        bend = (gradient(theta + step) - gradient(theta - step)) / 2e-5
        assert curvature[p] == pytest.approx(bend, rel=1e-4, abs=1e-6)
    some = model.rows(np.array([0, 3, 8]))
    assert some.evaluate(theta[None])[0] == pytest.approx(value[:, [0, 3, 8]])
