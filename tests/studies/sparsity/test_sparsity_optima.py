"""IsoFLOP optima by surfaces and by parabolas, and their slopes against the vertices of Eq 8."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.studies.sparsity.derived.optima import (
    UNMEASURED,
    optimal_sparsities,
    size_optima,
    sparsity_optima,
)
from moelaws.studies.sparsity.derived.surface import Fitted, Surface, averaged, predictions
from moelaws.studies.sparsity.derived.trends import (
    Slope,
    over_sparsity,
    sizes_over_budget,
    sparsity_over_budget,
    sparsity_over_size,
    with_means,
)
from sparsity_case import BOWL

FORM = laws.get("sparsity.isoflop")


def of_one_form(params, draws, rows, C=1e20):
    known = np.vstack([list(params.values()), draws])
    return Surface(C, "N_total", (Fitted(FORM, 1.0, known),), 0.9, rows)


def bowl(low=1e7, high=1e11, sparsities=(0.0, 0.5, 0.9, 0.98)):
    sizes = np.geomspace(low, high, 7)
    rows = pd.DataFrame([{"N_total": N, "S": S} for S in sparsities for N in sizes])
    rng = np.random.default_rng(0)
    draws = pd.DataFrame([BOWL] * 50)
    draws["d"] += rng.normal(0, 0.01, 50)
    return of_one_form(BOWL, draws, rows)


def test_surface_optimum_is_the_vertex_of_eq_8():
    best = pd.DataFrame(size_optima(bowl(), "surface")).set_index("S")
    assert best.loc[0.9, "N_star"] == pytest.approx(1.27476e9, rel=1e-5)
    expected = laws.get("sparsity.isoflop").predict(BOWL, {"N": 1.27476e9, "S": 0.9})
    assert best.loc[0.9, "L_star"] == pytest.approx(float(expected), abs=1e-9)
    assert best["inside"].all()
    # The draws shift the surface: they move the loss, by 2 x 1.645 x .01, and not the size
    assert best.loc[0.9, "N_low"] == pytest.approx(best.loc[0.9, "N_high"], rel=1e-6)
    assert 0.02 < best.loc[0.9, "L_high"] - best.loc[0.9, "L_low"] < 0.05


def test_optimal_sparsity_is_the_vertex_along_s():
    frame = sparsity_optima.frame(optimal_sparsities(bowl(1e9 / 50, 1e9 * 50)))
    middle = frame.iloc[len(frame) // 2]
    assert middle["N"] == pytest.approx(1e9)
    assert middle["S_star"] == pytest.approx(0.769431, rel=1e-5)
    assert middle["inside"]


def test_optimal_sparsity_far_from_any_run_is_marked():
    surface = bowl(1e8, 1e10)
    few = surface.rows[(surface.rows["S"] != 0.9) | (surface.rows["N_total"] > 5e9)]
    few = few[(few["S"] != 0.5) | (few["N_total"] > 5e9)]
    frame = sparsity_optima.frame(optimal_sparsities(dataclasses.replace(surface, rows=few)))
    near = frame[np.isclose(frame["N"], 1e9, rtol=0.1)].iloc[0]
    assert near["S_star"] == pytest.approx(0.77, abs=0.05)
    assert near["note"] == UNMEASURED


def parabolic(sizes, noise=0.0, seed=0):
    u = np.log(sizes)
    L = 3 + 0.05 * (u - np.log(1e6)) ** 2 + np.random.default_rng(seed).normal(0, noise, len(u))
    rows = pd.DataFrame({"S": 0.5, "N_total": sizes, "L": L})
    return dataclasses.replace(bowl(), rows=rows)


def test_parabola_finds_the_vertex_of_a_parabola():
    (best,) = size_optima(parabolic(np.geomspace(2e5, 3e6, 6)), "parabola")
    assert best["N_star"] == pytest.approx(1e6, rel=1e-9)
    assert best["L_star"] == pytest.approx(3.0, abs=1e-12)
    assert best["N_low"] == pytest.approx(best["N_high"], rel=1e-6)  # no noise, no doubt


SPARSITIES = (0.0, 0.5, 0.75, 0.9, 0.98)
V = -np.log1p(-np.array(SPARSITIES))


def vertex(own, other, p=BOWL):
    """Where the surface is least in u (``own`` a) or v (b), at the other of the two."""
    return -(p[f"{own}1"] + p["c1"] * other) / (2 * (p[f"{own}2"] + p["c2"] * other**2))


def estimates(surface):
    return dict(zip(FORM.names, surface.fits[0].coefficients[0], strict=True))


def tilted_bowl(C=1e20, low=1e7, high=1e11, **changes):
    params = {**BOWL, **changes}
    sizes = np.geomspace(low, high, 7)
    rows = pd.DataFrame([{"N_total": N, "S": S} for S in SPARSITIES for N in sizes])
    predicted = laws.get("sparsity.isoflop").predict(params, {"N": rows["N_total"], "S": rows["S"]})
    rows = rows.assign(C=C, L=predicted, run_id=[f"{i:04x}" for i in range(len(rows))])
    draws = pd.DataFrame([params] * 60)
    draws["a1"] += np.random.default_rng(int(C % 97)).normal(0, 2e-3, 60)
    return of_one_form(params, draws, rows, C)


def test_slope_over_sparsity_is_that_of_the_vertices():
    u = vertex("a", V)
    slope = over_sparsity(tilted_bowl(), "x")
    assert slope.values[0] == pytest.approx(np.polyfit(V, u, 1)[0], rel=1e-6)
    assert slope.n == len(SPARSITIES)
    assert np.ptp(slope.values) > 0


def test_slope_over_size_is_that_of_the_vertices_inside():
    slope = sparsity_over_size(tilted_bowl())
    N = np.geomspace(1e7, 1e11, 41)
    v = vertex("b", np.log(N))
    inside = (v > 0) & (v < V[-1])
    assert slope.n == inside.sum()
    assert slope.values[0] == pytest.approx(
        np.polyfit(np.log(N[inside]), v[inside], 1)[0], rel=1e-4
    )


def test_a_shift_of_the_surface_between_budgets_is_the_slope_over_the_budget():
    # L(v) = (b1 + c1 u) v + (b2 + c2 u^2) v^2: db1 moves v* by -db1 / (2 (b2 + c2 u^2)).
    lower, upper = tilted_bowl(1e20), tilted_bowl(1e21, b1=BOWL["b1"] + 0.01)
    N = np.geomspace(1e7, 1e11, 41)
    v = [vertex("b", np.log(N), estimates(s)) for s in (lower, upper)]
    both = (v[0] > 0) & (v[1] > 0) & (v[0] < V[-1]) & (v[1] < V[-1])
    expected = (v[1] - v[0])[both].mean() / np.log(10)
    slope = sparsity_over_budget(lower, upper)
    assert slope.values[0] == pytest.approx(expected, rel=1e-4)
    assert slope.values[0] < 0


def test_slope_over_the_budget_is_that_of_the_vertices_at_one_sparsity():
    budgets = [tilted_bowl(C, a1=BOWL["a1"] - 0.02 * i) for i, C in enumerate((1e19, 1e20, 1e21))]
    u = [vertex("a", np.log(2), estimates(b)) for b in budgets]
    slope = next(s for s in sizes_over_budget(budgets) if s.at == "S=0.5")
    assert slope.values[0] == pytest.approx(
        np.polyfit(np.log([1e19, 1e20, 1e21]), u, 1)[0], rel=1e-6
    )


def test_the_mean_is_as_sure_as_independent_slopes_that_have_a_null_make_it():
    rng = np.random.default_rng(0)
    slopes = [Slope(str(i), 5, np.append(i, i + rng.normal(0, 1, 20000))) for i in range(5)]
    missing = Slope("none", 0, note="none")
    nothing = Slope("0", 5, np.zeros(20001))
    mean, null = with_means([*slopes, missing], [*[nothing] * 4, missing, nothing])[-1]
    assert (mean.at, mean.n, mean.values[0]) == ("mean", 4, 1.5)
    assert np.std(mean.values[1:]) == pytest.approx(0.5, rel=0.03)  # 1 / sqrt(4)
    assert (null.n, null.values[0]) == (4, 0.0)
    assert with_means([missing], [nothing])[-1][0].note == "no slope to average"


def test_noise_of_a_run_left_out_is_not_fitted_away():
    surface = tilted_bowl()
    exact = predictions(surface, FORM)
    assert exact["times"].sum() == 100 * 7  # 20 % of 35, 100 times
    np.testing.assert_allclose(exact["predicted"], exact["L"], atol=1e-8)
    noise = np.random.default_rng(1).normal(0, 0.01, len(surface.rows))
    rows = surface.rows.assign(L=surface.rows["L"] + noise)
    predicted = predictions(dataclasses.replace(surface, rows=rows), FORM)
    held = np.average(predicted["mse"], weights=predicted["times"])
    assert held > np.var(noise)  # by the refits' own errors: about (1 + 7/28) of it
    assert held == pytest.approx(1e-4, rel=0.6)
    assert predictions(
        dataclasses.replace(surface, rows=surface.rows.iloc[:8]), FORM
    ).empty  # too few


def noisy_bowl(C=1e20, noise=0.01):
    """A bowl whose runs have noise, with the forms 211 and 222."""
    rows = tilted_bowl(C).rows
    active = rows["N_total"] * (1 - rows["S"])
    L = rows["L"] + np.random.default_rng(3).normal(0, noise, len(rows))
    rows = rows.assign(N_active=active, D=C / (6 * active), C_sparsity=C, L=L)
    fits = averaged({"222": 0.75, "211": 0.25}, rows, "N_total", 0, 400)
    return Surface(C, "N_total", tuple(fits), 0.9, rows)


def test_a_surface_without_a_run_is_the_one_fitted_to_the_others():
    surface = noisy_bowl()
    n, at_runs = len(surface.rows), surface.columns
    without = surface.without_each(2, n + 5).losses(**at_runs)
    assert without.shape == (1 + n + 5, n)
    others = [0, 1, 2, n + 3, n + 4, n + 5]  # the estimates, and runs of other budgets
    np.testing.assert_allclose(without[others], np.tile(surface.loss(**at_runs), (6, 1)), atol=1e-9)
    for i in (0, 17, n - 1):
        rows = surface.rows.drop(index=i)
        for fit in surface.fits:
            one = dataclasses.replace(surface, fits=(fit._replace(weight=1.0),))
            refitted = averaged({fit.form.variant: 1.0}, rows, "N_total", 0, 1)
            expected = dataclasses.replace(surface, fits=tuple(refitted)).loss(**at_runs)
            own = one.without_each(0, n).losses(**at_runs)[1 + i]
            np.testing.assert_allclose(own, expected, atol=1e-7)
