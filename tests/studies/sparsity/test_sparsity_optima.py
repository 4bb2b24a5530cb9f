"""IsoFLOP optima by surfaces and by independent parabolas."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.analysis.minimum import AT_HIGH_END, AT_LOW_END, TOO_FEW
from moelaws.studies.sparsity.derived.optima import (
    UNMEASURED,
    optima,
    optimal_sparsities,
    size_optima,
)
from moelaws.studies.sparsity.derived.surface import Surface
from sparsity_case import BOWL


def bowl(low=1e7, high=1e11, sparsities=(0.0, 0.5, 0.9, 0.98)):
    sizes = np.geomspace(low, high, 7)
    rows = pd.DataFrame([{"N_total": N, "S": S} for S in sparsities for N in sizes])
    rng = np.random.default_rng(0)
    draws = pd.DataFrame([BOWL] * 50)
    draws["d"] += rng.normal(0, 0.01, 50)
    return Surface(laws.get("sparsity.isoflop"), 1e20, "N_total", BOWL, draws, 0.9, rows)


def test_surface_optimum_is_the_vertex_of_eq_8():
    best = pd.DataFrame(size_optima(bowl(), "surface")).set_index("S")
    assert best.loc[0.9, "N_star"] == pytest.approx(1.27476e9, rel=1e-5)
    expected = laws.get("sparsity.isoflop").predict(BOWL, {"N": 1.27476e9, "S": 0.9})
    assert best.loc[0.9, "L_star"] == pytest.approx(float(expected), abs=1e-9)
    assert best["inside"].all()
    drops = {"drop", "drop_paired_se", "drop_seed_se"}  # between optima
    assert set(best.reset_index().columns) == set(optima.names) - drops


def test_draws_that_shift_the_surface_move_the_loss_and_not_the_size():
    best = next(o for o in size_optima(bowl(), "surface") if o["S"] == 0.9)
    assert best["N_low"] == pytest.approx(best["N_high"], rel=1e-6)
    assert 0.02 < best["L_high"] - best["L_low"] < 0.05  # 2 x 1.645 x .01


@pytest.mark.parametrize(
    ("low", "high", "note", "end"), [(1e7, 1e8, AT_HIGH_END, 1e8), (1e10, 1e12, AT_LOW_END, 1e10)]
)
def test_a_minimum_outside_the_measured_sizes_is_a_bound(low, high, note, end):
    best = next(o for o in size_optima(bowl(low, high), "surface") if o["S"] == 0.9)
    assert not best["inside"]
    assert best["convex"]
    assert best["note"] == note
    assert best["N_star"] == pytest.approx(end)


def test_optimal_sparsity_is_the_vertex_along_s():
    frame = pd.DataFrame(optimal_sparsities(bowl(1e9 / 50, 1e9 * 50)))
    middle = frame.iloc[len(frame) // 2]
    assert middle["N"] == pytest.approx(1e9)
    assert middle["S_star"] == pytest.approx(0.769431, rel=1e-5)
    assert middle["inside"]


def test_dense_optimum_is_no_edge_of_the_grid_but_the_sparsest_is():
    frame = pd.DataFrame(optimal_sparsities(bowl(1e4, 1e13, (0.0, 0.5, 0.75))))
    dense, sparsest = frame[frame["S_star"] == 0.0], frame[np.isclose(frame["S_star"], 0.75)]
    assert len(dense)
    assert dense["inside"].all()
    assert len(sparsest)
    assert (sparsest["note"] == AT_HIGH_END).all()


def test_optimal_sparsity_far_from_any_run_is_marked():
    surface = bowl(1e8, 1e10)
    few = surface.rows[(surface.rows["S"] != 0.9) | (surface.rows["N_total"] > 5e9)]
    few = few[(few["S"] != 0.5) | (few["N_total"] > 5e9)]
    frame = pd.DataFrame(optimal_sparsities(dataclasses.replace(surface, rows=few)))
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


def test_parabola_of_three_runs_has_no_interval_and_two_sizes_no_optimum():
    (three,) = size_optima(parabolic(np.geomspace(2e5, 3e6, 3)), "parabola")
    assert np.isnan(three["N_low"])
    assert three["inside"]
    two = parabolic(np.array([2e5, 3e6, 3e6]))
    (none,) = size_optima(two, "parabola")
    assert np.isnan(none["N_star"])
    assert (none["note"], none["inside"]) == (TOO_FEW, False)
