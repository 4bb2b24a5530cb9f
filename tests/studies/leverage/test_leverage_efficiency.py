"""Fitted curves read backwards, and the leverage of two of them with intervals from their draws."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from moelaws.spec.errors import UserError
from moelaws.studies.leverage.derived.curves import COMPUTE, Curve, leverage_points
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


def test_compute_for_a_loss_inverts_the_curve():
    dense = curve(DENSE)
    assert dense.compute_for(dense.loss(C)) == pytest.approx(C, rel=1e-9)
    assert np.isnan(dense.compute_for(np.array([1.6, 1.5]))).all()
    flat = curve(DENSE | {"beta": 0.0})
    assert np.isnan(flat.compute_for(np.array([2.0]))).all()


def test_noise_is_the_scatter_about_the_curve():
    scattered = curve(DENSE, noise=0.01)
    assert scattered.noise() == pytest.approx(0.01, rel=0.25)
    assert np.isnan(replace(scattered, rows=scattered.rows.iloc[:3]).noise())


def test_the_band_of_a_curve_holds_it_and_is_none_without_draws():
    moe = curve(MOE)
    band = moe.loss_band(C)
    assert ((band["low"] < moe.loss(C)) & (moe.loss(C) < band["high"])).all()
    assert replace(moe, draws=moe.draws.iloc[:0]).loss_band(C) == {}


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
    assert (points["unreached"] == 0).all()
    assert ((points["EL_low"] < points["EL"]) & (points["EL"] < points["EL_high"])).all()


def test_draws_that_the_dense_curve_never_reaches_open_the_interval_upwards():
    draws = pd.DataFrame([DENSE] * 80 + [DENSE | {"b": 2.7}] * 20)
    dense, moe = replace(curve(DENSE), draws=draws), curve(MOE, 100, spread=0)
    points = leverage_points(dense, moe, C[1:2])
    assert points["unreached"][0] == pytest.approx(0.2)
    assert points["EL_high"][0] == np.inf
    assert points["EL_low"][0] == pytest.approx(4.18465, rel=1e-5)
    never = leverage_points(replace(dense, params=DENSE | {"b": 2.7}), moe, C[1:2])
    assert never[["EL", "C_dense"]].isna().all(axis=None)
    assert never["L_star"][0] == pytest.approx(2.66001, rel=1e-5)


def test_curves_without_draws_give_no_leverage():
    with pytest.raises(UserError, match="no bootstrap draws; fit both curves with a bootstrap"):
        leverage_points(curve(DENSE), curve(MOE, n=0), C)
