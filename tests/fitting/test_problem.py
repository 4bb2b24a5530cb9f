"""The search among starts, and its last steps: nothing is lost, or the report says so."""

import dataclasses
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from fitting_case import fitted_group, objective_of
from scipy.optimize import minimize
from scipy.special import huber

from moelaws import laws
from moelaws.fitting import problem as search
from moelaws.fitting.caveats import require_identifiable
from moelaws.fitting.descent import certify, descend
from moelaws.fitting.objective import Objective
from moelaws.fitting.problem import descend_all, multistart, starts_of
from moelaws.laws.forms import LinearModel
from moelaws.laws.protocol import overridden
from moelaws.spec.errors import UserError

LAW = laws.fittable("chinchilla")


def _starts(law, sample=None, seed=0):
    return starts_of(law, dataclasses.replace(law.protocol, sample=sample), seed)


def test_starts_are_the_whole_grid_or_a_sample_of_it():
    grid = _starts(LAW)
    assert grid.shape == (4500, 5)
    assert len(np.unique(grid, axis=0)) == 4500
    for place, name in enumerate(LAW.names):
        assert set(grid[:, place]) == set(LAW.protocol.grid[name])
    some = _starts(LAW, sample=200, seed=3)
    assert len(np.unique(some, axis=0)) == 200
    assert {tuple(x) for x in some} <= {tuple(x) for x in grid}
    assert (some == _starts(LAW, sample=200, seed=3)).all()
    assert (some != _starts(LAW, sample=200, seed=4)).any()
    assert _starts(laws.fittable("sparsity.loss"), sample=50).shape == (50, 10)


def test_pruning_finds_what_all_starts_run_to_the_end_find(dense):
    """The loss curve of one architecture, from a grid of 1,000 starts."""
    law = laws.fittable("leverage.curve")
    C = np.geomspace(1e18, 1e22, 40)
    errors = 0.01 * np.random.default_rng(0).standard_normal(40)
    table = dense(sizes=8, tokens=5).assign(C=C, L=(50 * C**-0.08 + 1.7) * np.exp(errors))
    grid = {
        "alpha": np.linspace(0, 20, 10).tolist(),
        "beta": np.linspace(-0.4, -0.01, 10).tolist(),
        "b": np.linspace(-1, 1, 10).tolist(),
    }
    protocol = overridden(law, {"grid": grid}, "curve")
    objective, starts = objective_of(law, table), starts_of(law, protocol, 0)
    result = multistart(objective, starts, law.bounds)
    assert result.search.run == len(starts) == 1000
    assert result.search.survived < 1000
    assert not result.search.pruning_lost
    _, values = descend_all([objective], starts, law.bounds)
    assert result.value <= values.min() * (1 + 1e-9)
    assert result.certificate.converged


def test_the_sample_catches_what_pruning_lost(dense, monkeypatch):
    """A ladder that keeps one start by its first objective, among starts that mislead it."""
    objective = objective_of(LAW, dense())
    grid = _starts(LAW, sample=300)
    ends, values = descend_all([objective], grid, LAW.bounds)
    best = values.min()
    wrong, right = ends[values > 2 * best], grid[values <= best * (1 + 1e-6)]
    assert len(wrong), "every start leads to the optimum: these rows mislead nobody"
    # Starts next to a wrong end are lower at first than those that lead to the optimum.
    jitter = 1e-6 * np.random.default_rng(0).standard_normal((700, 5))
    near = wrong[np.arange(700) % len(wrong)] + jitter
    stay = descend_all([objective], near, LAW.bounds)[1] > 2 * best  # some get away on some CPUs
    starts = np.concatenate([near[stay], np.tile(right, (9, 1))])[:1000]
    monkeypatch.setattr(search, "FIRST", (0, 0.0, 1))
    monkeypatch.setattr(search, "SECOND", (0, 0.0, 1))
    result = multistart(objective, starts, LAW.bounds)
    assert (result.search.survived, result.search.reached) == (1, 0)
    assert result.search.pruning_lost
    assert result.search.sample_reached > 0
    assert result.value == pytest.approx(best, rel=1e-9)
    assert result.certificate.converged


def test_the_seed_decides_all_and_the_optimum_hangs_on_none(dense):
    objective = objective_of(LAW, dense(sizes=8, tokens=8))
    results = [
        multistart(objective, _starts(LAW, 600, seed), LAW.bounds, seed) for seed in (1, 1, 2)
    ]
    assert (results[0].phi == results[1].phi).all()
    assert results[0].search == results[1].search
    assert results[0].search.sample == 32
    assert results[0].value == pytest.approx(results[2].value, rel=1e-7)
    assert all(optimum.certificate.converged for optimum in results)


def test_a_point_beside_the_optimum_is_not_certified(dense):
    objective = objective_of(LAW, dense())
    optimum = multistart(objective, _starts(LAW, 60), LAW.bounds)
    assert certify(objective, optimum.phi, LAW.bounds).converged
    for place in range(5):
        moved = optimum.phi + 0.01 * (np.arange(5) == place)
        beside = certify(objective, moved, LAW.bounds)
        assert not beside.converged
        assert beside.decrease > 1e-6
        assert np.isfinite(beside.condition)


def test_the_allocation_law_is_recovered_from_its_grid():
    """Its exponential term is no power law: a model of its own."""
    law = laws.fittable("allocation.loss")
    rng = np.random.default_rng(0)
    n = 200
    columns = {
        "N": 10 ** rng.uniform(8, 10, n),
        "D": 10 ** rng.uniform(9.5, 11.5, n),
        "S": rng.choice([0.0, 0.5, 0.75, 0.875, 0.9375, 0.969], n),
        "r": rng.uniform(0.3, 8, n),
        "r_star": rng.uniform(1, 4, n),
    }
    truth = law.predict(law.published, columns)
    errors = 0.003 * rng.standard_normal(n)
    objective = Objective(law.model(columns), np.log(truth) + errors, 1e-3)
    at_truth = objective.value(law.vector(law.published)[None])[0]
    result = multistart(objective, _starts(law, 20), law.bounds)
    assert result.certificate.converged
    assert result.value < at_truth
    predicted = law.predict_batch(result.phi[None], columns)[0]
    assert np.abs(predicted / truth - 1).max() < 0.004


def peak_memory(work, *arguments):
    tracemalloc.start()
    try:
        work(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_many_rows_take_memory_in_proportion(dense):
    table = dense(sizes=150, tokens=100)
    objective, starts = objective_of(LAW, table), _starts(LAW, sample=100)
    peak = peak_memory(descend_all, [objective], starts, LAW.bounds, 2)
    assert peak < 50e6  # 100 starts at once would take 200 MB
    columns = {name: table[name].to_numpy() for name in ("N", "D")}
    peak = peak_memory(require_identifiable, LAW, columns)
    assert peak < 100 * 8 * 15_000  # a hundred numbers a row; a square matrix has 15,000


def test_a_step_that_meets_a_bound_goes_on_along_it():
    """Cut off at the bound, a Newton step along the valley of two columns alike leads uphill."""
    X = np.array([[1.0, 0.99], [0.99, 1.0]])
    objective = Objective(LinearModel(X), X @ [-1.0, 2.0], np.inf)
    end, _ = descend(objective, np.array([[0.5, 0.0]]), np.array([[0.0, 9.0]] * 2), iterations=8)
    one = X[:, 1] @ X @ [-1.0, 2.0] / (X[:, 1] @ X[:, 1])  # the other is 0
    assert end[0] == pytest.approx([0.0, one], abs=1e-6)


def test_a_step_to_where_the_law_has_no_value_is_refused():
    """Eq 1 has none where A_start > A_max, to which leverage that is only noise leads."""
    law = laws.fittable("leverage.activation")
    rng = np.random.default_rng(39)
    n = rng.integers(4, 9)
    table = pd.DataFrame({"A": np.geomspace(0.01, 1, n), "EL": np.exp(rng.normal(0, 0.05, n))})
    group = fitted_group(law, table, bootstrap=1)
    estimates = group.estimates()
    assert estimates["A_start"] < estimates["A_max"]
    assert np.isfinite(group.objective)
    flat = float(np.sum(np.log(table["EL"]) ** 2))  # a_A = 0: EL = 1
    assert group.objective <= flat * (1 + 1e-9)


def test_a_law_without_a_finite_value_at_any_start_is_refused():
    class Nowhere:
        n, n_params, metric, log_of_sum = 3, 1, np.eye(1), False

        def evaluate(self, theta_BP):
            return np.full((len(theta_BP), 3), np.nan), (theta_BP,)

        def jacobian(self, state):
            return np.full((len(state[0]), 1, 3), np.nan)

    objective = Objective(Nowhere(), np.zeros(3), 1e-3)
    with pytest.raises(UserError, match="no finite value for these rows at any of its starts"):
        multistart(objective, np.zeros((4, 1)), np.array([[-1.0, 1.0]]))


def test_a_search_arrives_at_the_end_of_a_valley_that_bends(solved):
    """Four rows and three parameters: over a factor of 100 in b, the floor falls by a thousandth.

    Two rows lie within a hundredth of the threshold. A step along the floor takes one across it,
    where its curvature vanishes, and a search that does not foresee this stops on the way.
    """
    law = laws.fittable("leverage.curve")
    ln_C = np.array([21.82580002, 21.324584, 20.20775727, 20.71040136])
    ln_L = np.array([1.6529652104547174, 1.667428650373057, 1.682073449934577, 1.683961100633788])
    task, solution = solved(law, {"C": np.exp(ln_C)}, np.exp(ln_L))

    def with_least_b(x):
        residual = np.log(np.exp(x[0] + x[1] * (ln_C - 21)) + 1e-3) - ln_L
        return huber(task.protocol.delta, residual).sum()

    options = {"xatol": 1e-12, "fatol": 1e-18, "maxiter": 10_000}
    end = minimize(with_least_b, [1.66, -0.01], method="Nelder-Mead", options=options)
    assert solution.certificate.converged
    assert solution.value == pytest.approx(end.fun, rel=1e-6)
    assert law.natural(task.working(solution.phi))[law.names.index("b")] == pytest.approx(1e-3)
