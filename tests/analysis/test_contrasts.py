"""How what is read off a fitted law moves with each loss, and the errors that follow."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.analysis.contrasts import (
    ContrastErrors,
    Minimum,
    contrast_errors,
    influence,
    linear_influence,
    seed_sd,
)
from moelaws.analysis.inputs import Inputs
from moelaws.fitting.problem import problem, solve
from moelaws.fitting.variables import Observations
from moelaws.records.paired import PairedLosses
from moelaws.studies.leverage.laws.curve import LAW as CURVE


def test_the_surface_moves_exactly_as_its_influence_says():
    rng = np.random.default_rng(0)
    law = laws.fittable("sparsity.isoflop")
    rows = {"N": np.exp(rng.uniform(10, 14, 24)), "S": rng.choice([0, 0.5, 0.75, 0.875], 24)}
    design = law.design(law.columns(rows))
    L = rng.normal(3, 0.1, 24)
    moved = L + rng.normal(0, 0.1, 24)
    first, second = (np.linalg.lstsq(design, y, rcond=None)[0] for y in (L, moved))
    at = {"N": np.array([3e5, 2e4]), "S": np.array([0.6, 0.0])}
    change = law.predict_batch(second[None], at)[0] - law.predict_batch(first[None], at)[0]
    moves = linear_influence(law, rows, at)
    np.testing.assert_allclose(moves @ (moved - L), change, rtol=1e-5)
    np.testing.assert_allclose(moves.sum(1), 1, rtol=1e-6)  # all losses up, the surface up


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("objective", ["huber", "squared"])
def test_a_curve_moves_with_each_loss_as_a_refit_to_it_does(objective, seed):
    """Five budgets, whose scatter is larger than the threshold: by brute force."""
    C = np.geomspace(1e10, 1e13, 5)
    truth = {"alpha": 60.0, "beta": -0.1, "b": 1.5}
    rng = np.random.default_rng(seed)
    L = CURVE.predict(truth, {"C": C}) * np.exp(0.003 * rng.normal(size=5))
    protocol = dataclasses.replace(CURVE.protocol, objective=objective)

    def refit(losses):
        rows = Observations(columns={"C": C}, response=losses)
        return solve(problem(CURVE, rows, protocol, 0), 0)

    def predicted(losses):
        return CURVE.predict_batch(refit(losses).phi[None], at)[0]

    at = {"C": np.array([3e11, 5e13])}
    fitted = refit(L)
    params = dict(zip(CURVE.names, CURVE.natural(fitted.phi), strict=True))
    bounds = np.array(CURVE.names)[fitted.certificate.at_bound].tolist()
    delta = np.inf if objective == "squared" else protocol.delta
    moves = influence(CURVE, Minimum(params, {"C": C}, L, delta, bounds), at)
    h = 2e-5
    brute = [(predicted(L + h * row) - predicted(L - h * row)) / (2 * h) for row in np.eye(5)]
    np.testing.assert_allclose(moves, np.transpose(brute), rtol=0.01, atol=0.003)
    assert np.isnan(influence(CURVE, Minimum(params, {"C": C}, L, np.nan), at)).all()
    # Three budgets determine the curve: its loss at each is that run's own
    through = Minimum(params, {"C": C[:3]}, CURVE.predict(params, {"C": C[:3]}), delta)
    np.testing.assert_allclose(influence(CURVE, through, {"C": C[:3]}), np.eye(3), atol=1e-5)


def alone(one, other, paired=None):
    """Two runs, each a trunk of its own, with their spreads between seeds."""
    return ContrastErrors(np.array([one, other]), ["a", "b"], ["a", "b"], 1.0, paired)


def test_errors_of_documents_and_of_seeds_stand_beside_each_other():
    rng = np.random.default_rng(2)
    tokens = rng.integers(100, 900, 60)
    nats = (3 + rng.normal(0, 0.4, 60) + rng.normal(0, 0.02, (2, 60))) * tokens
    errors = alone(0.01, 0.01, PairedLosses(("a", "b"), tokens, nats))
    assert errors.seeds([1, -1]) == pytest.approx(0.01 * 2**0.5)
    assert errors.seeds([[0.5, -0.5], [0, 0]]) == pytest.approx([0.01 / 2**0.5, 0])
    assert 0 < errors.documents([1, -1]) < 0.1 * errors.documents([1, 0])
    assert alone(0.03, 0.04).seeds([1, -1]) == pytest.approx(0.05)
    unknown = alone(np.nan, np.nan)
    assert np.isnan(unknown.documents(np.eye(2))).all()
    assert np.isnan(unknown.seeds([1, -1]))


def test_runs_of_a_trunk_err_alone_or_together_whichever_is_more():
    errors = ContrastErrors(np.array([0.03, 0.04, 0.01]), [*"123"], [*"aab"], 1.0)
    # Together, alone, and with a run of another trunk
    assert errors.seeds([[1, 1, 0], [1, -1, 0]]) == pytest.approx([0.07, 0.05])
    assert errors.seeds([[1, 1, 1], [0, 0, 1]]) == pytest.approx([0.005**0.5, 0.01])
    twice = ContrastErrors(np.array([0.03, 0.04, 0.03]), [*"121"], [*"aba"], 1.0)
    assert twice.seeds([[1, 1, -1], [1, 0, 1]]) == pytest.approx([0.04, 0.06])  # it errs once


def test_seeds_are_pooled_over_what_was_repeated():
    L = np.array([3.0, 3.02, 3.1, 3.0, 2.5])
    frame = pd.DataFrame({"C": [1e9, 1e9, 1e10, 1e10, 1e10], "L": L, "n_seeds": [2, 2, 2, 2, 1]})
    frame["L_seed_sd"] = [L[:2].std(ddof=1)] * 2 + [L[2:4].std(ddof=1)] * 2 + [np.nan]
    assert seed_sd(frame) == pytest.approx(np.sqrt((0.02**2 + 0.1**2) / 4))
    assert np.isnan(seed_sd(frame.assign(n_seeds=1)))


def test_a_budget_with_enough_repeats_has_a_spread_of_its_own():
    C = np.repeat([1e9, 1e10, 1e11], [10, 10, 4])
    sd = np.repeat([0.03, 0.01, 0.05], [10, 10, 4]) * (1 + 1e-6 * (np.arange(24) // 2))
    frame = pd.DataFrame(
        {"run_id": [f"run{i}" for i in range(24)], "source": "simulated", "status": "completed",
         "C": C, "L": 3.0, "n_seeds": 2, "L_seed_sd": sd, "trunk": (np.arange(24) // 3).astype(str)}
    )  # fmt: skip
    errors = contrast_errors(Inputs(frame=frame), ["run12", "run0", "run22"])
    both = np.sqrt((5 * 0.03**2 + 5 * 0.01**2 + 2 * 0.05**2) / 12)  # two repeats at 1e11
    assert errors.sd == pytest.approx([0.01, 0.03, both], rel=1e-4)
    assert errors.freedom == 4  # of eight trunks with two seeds, and not of 24 runs
