"""Slopes of the isoFLOP surfaces' optima, against the vertices of Eq 8 in closed form."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.studies.sparsity.derived.surface import Surface, predictions
from moelaws.studies.sparsity.derived.trends import (
    Slope,
    over_sparsity,
    sizes_over_budget,
    sparsity_over_budget,
    sparsity_over_size,
    with_means,
)
from sparsity_case import BOWL

SPARSITIES = (0.0, 0.5, 0.75, 0.9, 0.98)
V = -np.log1p(-np.array(SPARSITIES))


def vertex(own, other, p=BOWL):
    """Where the surface is least in u (``own`` a) or v (b), at the other of the two."""
    return -(p[f"{own}1"] + p["c1"] * other) / (2 * (p[f"{own}2"] + p["c2"] * other**2))


def bowl(C=1e20, low=1e7, high=1e11, **changes):
    params = {**BOWL, **changes}
    sizes = np.geomspace(low, high, 7)
    rows = pd.DataFrame([{"N_total": N, "S": S} for S in SPARSITIES for N in sizes])
    predicted = laws.get("sparsity.isoflop").predict(params, {"N": rows["N_total"], "S": rows["S"]})
    rows = rows.assign(C=C, L=predicted, run_id=[f"{i:04x}" for i in range(len(rows))])
    draws = pd.DataFrame([params] * 60)
    draws["a1"] += np.random.default_rng(int(C % 97)).normal(0, 2e-3, 60)
    return Surface(laws.get("sparsity.isoflop"), C, "N_total", params, draws, 0.9, rows)


def test_slope_over_sparsity_is_that_of_the_vertices():
    u = vertex("a", V)
    slope = over_sparsity(bowl(), "x")
    assert slope.values[0] == pytest.approx(np.polyfit(V, u, 1)[0], rel=1e-6)
    assert slope.n == len(SPARSITIES)
    assert np.ptp(slope.values) > 0


def test_slope_over_size_is_that_of_the_vertices_inside():
    slope = sparsity_over_size(bowl())
    N = np.geomspace(1e7, 1e11, 41)
    v = vertex("b", np.log(N))
    inside = (v > 0) & (v < V[-1])
    assert slope.n == inside.sum()
    assert slope.values[0] == pytest.approx(
        np.polyfit(np.log(N[inside]), v[inside], 1)[0], rel=1e-4
    )


def test_a_shift_of_the_surface_between_budgets_is_the_slope_over_the_budget():
    # L(v) = (b1 + c1 u) v + (b2 + c2 u^2) v^2: db1 moves v* by -db1 / (2 (b2 + c2 u^2)).
    lower, upper = bowl(1e20), bowl(1e21, b1=BOWL["b1"] + 0.01)
    N = np.geomspace(1e7, 1e11, 41)
    v = [vertex("b", np.log(N), s.params) for s in (lower, upper)]
    both = (v[0] > 0) & (v[1] > 0) & (v[0] < V[-1]) & (v[1] < V[-1])
    expected = (v[1] - v[0])[both].mean() / np.log(10)
    slope = sparsity_over_budget(lower, upper)
    assert slope.values[0] == pytest.approx(expected, rel=1e-4)
    assert slope.values[0] < 0


def test_slope_over_the_budget_is_that_of_the_vertices_at_one_sparsity():
    budgets = [bowl(C, a1=BOWL["a1"] - 0.02 * i) for i, C in enumerate((1e19, 1e20, 1e21))]
    u = [vertex("a", np.log(2), b.params) for b in budgets]
    slope = next(s for s in sizes_over_budget(budgets) if s.at == "S=0.5")
    assert slope.values[0] == pytest.approx(
        np.polyfit(np.log([1e19, 1e20, 1e21]), u, 1)[0], rel=1e-6
    )


def test_optima_at_the_end_of_the_sizes_count_for_nothing():
    slope = over_sparsity(bowl(low=1e10, high=1e13), "x")
    assert np.isnan(slope.values[0])
    assert len(slope.values) == 1
    assert "have an optimum inside what was measured" in slope.note


def test_budgets_without_a_size_in_common_have_no_slope():
    slope = sparsity_over_budget(bowl(1e20, 1e7, 1e9), bowl(1e21, 1e10, 1e12))
    assert (slope.n, np.isnan(slope.values[0])) == (0, True)
    assert slope.note.startswith("too few sizes shared by both budgets")
    assert slope.note.endswith(": 0")


def test_the_mean_is_as_sure_as_independent_slopes_make_it():
    rng = np.random.default_rng(0)
    slopes = [Slope(str(i), 5, np.append(i, i + rng.normal(0, 1, 20000))) for i in range(4)]
    missing = Slope("none", 0, note="none")
    nothing = Slope("0", 5, np.zeros(20001))
    mean, null = with_means([*slopes, missing], [nothing] * 5)[-1]
    assert (mean.at, mean.n, mean.values[0]) == ("mean", 4, 1.5)
    assert np.std(mean.values[1:]) == pytest.approx(0.5, rel=0.03)  # 1 / sqrt(4)
    assert (null.n, null.values[0]) == (4, 0.0)
    assert with_means([missing], [nothing])[-1][0].note == "no slope to average"


def test_a_slope_without_its_null_counts_for_no_mean():
    slopes = [Slope(str(i), 5, np.full(10, float(i))) for i in range(3)]
    nulls = [slopes[0], Slope("1", 0, note="none"), slopes[0]]
    own, null = with_means(slopes, nulls)[-1]
    assert (own.n, own.values[0], null.values[0]) == (2, 1.0, 0.0)  # the mean of 0 and 2


def test_a_surface_predicts_its_own_losses_when_left_out():
    predicted = predictions(bowl())
    assert len(predicted) == 35
    assert predicted["times"].sum() == 100 * 7  # 20 % of 35, 100 times
    np.testing.assert_allclose(predicted["predicted"], predicted["L"], atol=1e-8)


def test_noise_of_a_run_left_out_is_not_fitted_away():
    surface = bowl()
    noise = np.random.default_rng(1).normal(0, 0.01, len(surface.rows))
    rows = surface.rows.assign(L=surface.rows["L"] + noise)
    predicted = predictions(dataclasses.replace(surface, rows=rows))
    held = np.average(predicted["mse"], weights=predicted["times"])
    assert held > np.var(noise)  # by the refits' own errors: about (1 + 7/28) of it
    assert held == pytest.approx(1e-4, rel=0.6)


def test_too_few_runs_leave_no_prediction():
    surface = bowl()
    few = dataclasses.replace(surface, rows=surface.rows.iloc[:8])
    assert predictions(few).empty
