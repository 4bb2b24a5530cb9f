"""Which runs to train next: draws of laws, the choice among runs, and what it promises."""

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.analysis.choice.ask import Question, ask, models_of
from moelaws.analysis.choice.choose import Beliefs, choose, error_of, spread
from moelaws.analysis.choice.draws import SPREAD, Known, posterior
from moelaws.laws.base import FitProtocol, Parameter, Variable
from moelaws.laws.forms import LinearLaw
from moelaws.laws.vocabulary import LOSS
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit

LINE = LinearLaw(
    id="line",
    title="a straight line",
    source="",
    equation="",
    latex="",
    variables=(Variable("x", "1", "", default=0.0),),
    response=LOSS,
    parameters=tuple(Parameter(n, "1", -50, 50, "", starts=(-2.0, 2.0)) for n in "ab"),
    protocol=FitProtocol("squared"),
    log_response=True,
    features={"a": lambda c: np.ones_like(c["x"]), "b": lambda c: c["x"]},
)
CHINCHILLA, JOINT = laws.fittable("chinchilla"), laws.fittable("joint.loss")
SPECS = {
    "chinchilla": Fit(name="n", law="chinchilla", mapping={"N": "N_active", "L": "L"}),
    "joint.loss": Fit(name="n", law="joint.loss", mapping={"L": "L"}),
}


def test_draws_of_a_linear_law_are_those_of_its_posterior():
    """Against the normal equations, with the weak rows and the prior of the parameters."""
    x, noise = np.array([-1.0, 0.0, 1.0, 2.0]), 0.05
    observed = 0.4 - 0.2 * x
    points = np.array([-3.0, 4.0])
    view = Known(LINE, {"x": x}, observed, np.zeros(4), {"x": points})
    drawn = posterior(view, noise, 4000, seed=0)
    assert drawn.noise == pytest.approx(noise)  # residuals of 0 do not make it smaller
    rows = np.concatenate([x, points])
    X = np.vstack([np.stack([np.ones(6), rows], axis=1), np.eye(2)])
    y = np.concatenate([observed, np.full(2, observed.mean()), np.zeros(2)])
    weight = np.concatenate([np.full(4, noise), np.full(2, SPREAD), np.full(2, 2.0)]) ** -2
    covariance = np.linalg.inv((X.T * weight) @ X)
    mean = covariance @ (X.T @ (weight * y))
    assert drawn.draws.mean(axis=0) == pytest.approx(mean, abs=5e-3)
    assert np.cov(drawn.draws.T) == pytest.approx(covariance, rel=0.15, abs=1e-5)


def test_runs_far_from_the_target_err_more_where_the_law_bends():
    """The losses follow a parabola; the line that is fitted holds near the target alone."""
    x = np.linspace(-3, 0, 12)
    view = Known(LINE, {"x": x}, 0.3 - 0.1 * x + 0.05 * x**2, -x, {"x": np.array([0.0])})
    drawn = posterior(view, 0.003, 200, seed=0)
    assert drawn.rate > 0.01
    at_target = drawn.draws[:, 0]
    straight = np.polynomial.Polynomial.fit(x, view.observed, 1)(0.0)
    assert abs(at_target.mean() - 0.3) < 0.7 * abs(straight - 0.3)


def beliefs(runs, target, of_law=None, noise=0.1):
    B = len(runs)
    of_law = np.zeros(B, int) if of_law is None else of_law
    return Beliefs(runs, target, np.full(B, 1 / B), of_law, np.full(runs.shape[1], noise))


def test_the_expected_error_is_that_of_a_normal_distribution():
    """After one run and after two, against the inverse of the covariance matrix."""
    g = np.random.default_rng(0)
    drawn = g.standard_normal((3000, 5)) @ g.standard_normal((5, 5))
    own = beliefs(drawn[:, :4], drawn[:, 4:], noise=0.3)
    A, T = spread(own, own.runs), spread(own, own.target)
    free = np.array([True, False, True, False])
    plan = choose(own, np.ones(1), np.array([1.0, 1.0, 1.0, 1.0]), 2.0, free)
    assert sorted(one.run for one in plan) == [0, 2]
    for count in (1, 2):
        at = [one.run for one in plan[:count]]
        inverse = np.linalg.inv(A[:, at].T @ A[:, at] + 0.09 * np.eye(count))
        cross = A[:, at].T @ T
        left = T.T @ T - cross.T @ inverse @ cross
        assert plan[count - 1].error == pytest.approx(left[0, 0] ** 0.5, rel=1e-9)


def test_laws_that_disagree_are_asked_where_they_disagree():
    """Two laws differ at run 1 and at the target; each alone is unsure at run 0 alone."""
    g = np.random.default_rng(0)
    side = np.repeat([1.0, -1.0], 500)
    runs = np.stack([g.standard_normal(1000), side + 0.1 * g.standard_normal(1000)], axis=1)
    own = beliefs(runs, side[:, None] + 0.1 * g.standard_normal((1000, 1)), (side > 0).astype(int))
    (one,) = choose(own, np.ones(1), np.ones(2), 1.0, np.ones(2, bool))
    assert one.run == 1
    assert one.between > 0.9
    assert one.error < 0.3 * error_of(own, np.ones(1))


def test_twice_the_gain_is_worth_four_times_the_cost():
    """Run 0 shares half of the target's variance, run 1 all of it: a gain of 2, for 3 or 5."""
    target = np.random.default_rng(0).standard_normal((4000, 1))
    other = np.random.default_rng(1).standard_normal((4000, 1))
    own = beliefs(np.hstack([target + other, target]), target, noise=1e-4)
    for dear, best in ((3.0, 1), (5.0, 0)):
        plan = choose(own, np.ones(1), np.array([1.0, dear]), 6.0, np.ones(2, bool))
        assert plan[0].run == best


def pool_of(budgets=(1e18, 1e19, 1e20)):
    rows = [
        {"C": C, "N_active": N, "N_total": E * N, "E": float(E), "k": 1, "S": 1 - 1 / E,
         "D": C / (6 * N), "run_id": f"{C:g} {N:g} {E}"}
        for C in budgets for N in np.geomspace(0.2, 5, 5) * (C / 120) ** 0.5 for E in (1, 4, 16)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(L=np.nan)


def asked(pool, budget, compute=1e21, is_budget=True, names=("chinchilla", "joint.loss"), seed=0):
    costs, free = pool["C"].to_numpy(float), pool["L"].isna().to_numpy()
    target = models_of(pool, costs, compute)
    own, specs = ([of(name) for name in names] for of in (laws.fittable, SPECS.get))
    return ask(
        Question(own, specs, pool, costs, free, target, compute, is_budget), 0.003, budget, seed
    )


def truth(frame):
    values = {name: frame[name] for name in ("N_active", "E", "D")}
    return np.log(JOINT.predict(JOINT.published, values))


def test_the_order_of_the_rows_and_the_call_do_not_matter():
    pool = pool_of()
    pool.loc[::9, "L"] = np.exp(truth(pool))[::9]
    first = [pool["run_id"][one.run] for one in asked(pool, 2e20).chosen]
    assert first == [pool["run_id"][one.run] for one in asked(pool, 2e20).chosen]
    mixed = pool.sample(frac=1, random_state=1).reset_index(drop=True)
    assert first == [mixed["run_id"][one.run] for one in asked(mixed, 2e20).chosen]
    assert not set(first) & set(pool["run_id"][::9])
    answer = asked(pool, 5e19)  # what is chosen is affordable, and promises less error
    assert sum(one.cost for one in answer.chosen) <= 5e19
    errors = [answer.error, *(one.error for one in answer.chosen)]
    assert errors == sorted(errors, reverse=True)


def test_models_of_a_budget_spend_it():
    pool = pool_of()
    scaled = models_of(pool, pool["C"], 1e22)
    spent = 6 * scaled["N_active"] * scaled["D"]
    assert spent.to_numpy() == pytest.approx(np.full(len(scaled), 1e22))
    ratio = scaled["N_total"] / scaled["N_active"]
    assert ratio.to_numpy() == pytest.approx(scaled["E"].to_numpy())
    with pytest.raises(UserError, match="needs columns of parameters"):
        models_of(pool.drop(columns="D"), pool["C"], 1e22)
