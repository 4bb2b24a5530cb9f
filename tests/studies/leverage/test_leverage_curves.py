"""Curves read backwards, the leverage of two of them, and parabolas over several budgets."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.analysis.minimum import percentile_interval
from moelaws.fitting.quantiles import jackknife
from moelaws.studies.leverage.derived.curves import COMPUTE, Curve, leverage_points
from moelaws.studies.leverage.derived.series import parabola, regression, slope
from moelaws.studies.leverage.laws.curve import efficiency_leverage

DENSE = {"alpha": 60.0, "beta": -0.085, "b": 1.6}
MOE = {"alpha": 58.0, "beta": -0.0865, "b": 1.58}
C = np.array([1e19, 1e20, 1e21])


def curve(params, n=50, seed=0, spread=2e-3, noise=0.0):
    """A curve with ``n`` draws and 40 runs that scatter about it by ``noise``, in ln L."""
    rng = np.random.default_rng(seed)
    draws = pd.DataFrame({k: v * np.exp(rng.normal(0, spread, n)) for k, v in params.items()})
    compute = np.geomspace(1e18, 1e21, 40)
    L = params["alpha"] * compute ** params["beta"] + params["b"]
    rows = pd.DataFrame({COMPUTE: compute, "L": L * np.exp(rng.normal(0, noise, 40))})
    return Curve(params, draws, rows, 0.9)


def test_the_band_of_a_curve_holds_it_and_is_none_without_draws():
    moe = curve(MOE, noise=0.01)
    alike = moe.draws.assign(**moe.params)  # as all draws may be where one run stands alone
    for band in (moe.loss_band(C), replace(moe, draws=alike).loss_band(C)):
        assert ((band["low"] < moe.loss(C)) & (moe.loss(C) < band["high"])).all()
    assert replace(moe, draws=moe.draws.iloc[:0]).loss_band(C) == {}
    assert moe.noise() == pytest.approx(0.01, rel=0.25)  # the scatter about the curve
    assert np.isnan(replace(moe, rows=moe.rows.iloc[:3]).noise())


def test_points_are_algorithm_1_and_intervals_its_quantiles():
    dense, moe = curve(DENSE, 401, 1), curve(MOE, 401, 2)
    points = leverage_points(dense, moe, C)
    assert points["EL"][1] == pytest.approx(4.1846545558175805, rel=1e-6)
    assert points["L_star"][1] == pytest.approx(2.6600105392644635, rel=1e-6)
    one_by_one = [
        efficiency_leverage(dense.draws.iloc[i].to_dict(), moe.draws.iloc[i].to_dict(), 1e20).EL
        for i in range(401)
    ]
    low, high = np.sort(one_by_one)[[20, 380]]
    assert (points["EL_low"][1], points["EL_high"][1]) == pytest.approx((low, high), rel=1e-12)
    wide = leverage_points(replace(dense, stretch=2.0), moe, C)  # in ln EL
    assert np.log(wide["EL_low"] / wide["EL"])[1] == pytest.approx(
        2 * np.log(low / points["EL"][1]), rel=1e-9
    )
    band, wide_band = dense.loss_band(C), replace(dense, stretch=2.0).loss_band(C)
    assert np.log(wide_band["high"] / dense.loss(C)) == pytest.approx(
        2 * np.log(band["high"] / dense.loss(C)), rel=0.02
    )
    assert ((points["EL_low"] < points["EL"]) & (points["EL"] < points["EL_high"])).all()


def test_draws_that_the_dense_curve_never_reaches_open_the_interval_upwards():
    draws = pd.DataFrame([DENSE] * 80 + [DENSE | {"b": 2.7}] * 20)
    dense, moe = replace(curve(DENSE), draws=draws), curve(MOE, 100, spread=0)
    points = leverage_points(dense, moe, C[1:2])
    assert points["EL_high"][0] == np.inf
    assert points["EL_low"][0] == pytest.approx(4.18465, rel=1e-5)
    never = leverage_points(replace(dense, params=DENSE | {"b": 2.7}), moe, C[1:2])
    assert never[["EL", "C_dense"]].isna().all(axis=None)
    assert never["L_star"][0] == pytest.approx(2.66001, rel=1e-5)


T = np.log2([2, 4, 6, 8, 12, 16])


def losses(t, best, curvature=0.004, noise=0.0, seed=0, budgets=4, of_trunk=0.0):
    """Values x and their runs; those of one value, at all budgets, err together by ``of_trunk``."""
    rng = np.random.default_rng(seed)
    C = np.repeat(10.0 ** np.arange(18, 18 + budgets), len(t))
    x = np.tile(t, budgets)
    ln_L = 1 - 0.05 * np.log10(C / 1e18) + curvature * (x - best) ** 2
    error = rng.normal(0, noise, len(x)) + np.tile(rng.normal(0, of_trunk, len(t)), budgets)
    trunk = np.tile(np.arange(len(t)), budgets) if of_trunk else np.arange(len(x))
    return x, pd.DataFrame({"L": np.exp(ln_L + error), "C": C, "trunk": trunk.astype(str)})


def alone(C):
    """Runs at the budgets ``C``, each a trunk of its own."""
    return pd.DataFrame({"L": 3.0, "C": C, "trunk": np.arange(len(C)).astype(str)})


@given(best=st.floats(1.2, 3.8), curvature=st.floats(1e-4, 1))
def test_an_exact_parabola_is_recovered_whatever_the_budgets_levels(best, curvature):
    common = parabola(*losses(T, best, curvature))
    assert common.optima()[0] == pytest.approx(best, abs=1e-6)
    assert (common.low, common.high, common.n, common.budgets) == (1, 4, 24, 4)
    assert common.excess(4.0)[0] == pytest.approx(curvature * (4 - best) ** 2, abs=1e-9)


def test_intervals_hold_the_truth_as_often_as_they_say():
    held = [
        low <= 3.0 <= high
        for seed in range(200)
        for optima in [parabola(*losses(T, 3.0, noise=0.001, seed=seed)).optima()]
        for low, high in [percentile_interval(optima[1:], 0.9)]
    ]
    assert 0.84 <= np.mean(held) <= 0.96


def test_each_trunk_is_left_out_in_turn_with_all_of_its_runs():
    x, runs = losses(np.tile(T, 2), 3.0, noise=0.001, of_trunk=0.003)
    y, budgets = np.log(runs["L"].to_numpy()), pd.get_dummies(runs["C"]).to_numpy(float)
    design = np.column_stack([x, budgets])
    every = [np.ones(len(x), bool), *(runs["trunk"] != name for name in sorted(set(runs["trunk"])))]
    refits = np.array([np.linalg.lstsq(design[rows], y[rows], rcond=None)[0][:1] for rows in every])
    (low,), (high,) = jackknife(refits[0], refits[1:], 0.9)
    value, *ends = slope(x, y, runs).interval
    assert value == pytest.approx(refits[0, 0], rel=1e-9)
    assert ends == pytest.approx([low, high], abs=0.05 * (high - low))


def test_too_few_values_are_no_parabola_and_an_exact_fit_has_no_interval():
    assert parabola(*losses(T[:2], 2.0)) is None
    one = parabola(*losses(T[:3], 1.5, budgets=1))
    assert one.optima() == pytest.approx([1.5])
    assert len(one.excess(1.0)) == 1  # the estimate alone
    # Three values in all but never three at a budget
    assert parabola(np.array([1.0, 2, 2, 3]), alone(np.array([1.0, 1, 2, 2]))) is None
    # A value that one trunk alone has leaves no interval
    assert len(parabola(*losses(T[:3], 1.5, noise=0.001, of_trunk=0.001)).optima()) == 1
    assert parabola(*losses(T, 2.0, curvature=-0.004)).optima()[0] == 4.0  # a bowl upside down


def test_rows_that_say_nothing_give_nothing():
    assert np.isnan(slope(np.ones(6), np.arange(6.0), alone(np.zeros(6))).interval).all()
    assert regression(np.ones((1, 2)), np.ones(1), np.ones(1), np.ones(1)) is None
    assert np.isnan(slope(np.empty(0), np.empty(0), alone(np.empty(0))).interval).all()
