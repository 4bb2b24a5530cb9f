"""Curves read backwards, and the leverage of single runs."""

import numpy as np
import pandas as pd
import pytest

from moelaws.analysis.efficiency import leverage_points
from moelaws.analysis.leverage.curves import Curve, leverage_draws

DENSE = {"alpha": 60.0, "beta": -0.085, "b": 1.6}
MOE = {"alpha": 58.0, "beta": -0.0865, "b": 1.58}
C = np.array([1e19, 1e20, 1e21])


def curve(params, spread=0.0, n=50, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    draws = pd.DataFrame({k: v * np.exp(rng.normal(0, spread, n)) for k, v in params.items()})
    compute = np.geomspace(1e18, 1e21, 40)
    L = (params["alpha"] * compute ** params["beta"] + params["b"]) * np.exp(
        rng.normal(0, noise, 40)
    )
    return Curve(params, draws, pd.DataFrame({"C_leverage": compute, "L": L}), 0.9)


def test_compute_for_a_loss_inverts_the_curve():
    one = curve(DENSE, spread=1e-3)
    assert one.compute_for(one.loss(C)) == pytest.approx(C, rel=1e-9)
    assert one.compute_draws(one.loss(C)).shape == (50, 3)
    never = one.compute_for(np.array([1.6, 1.5]))
    assert np.isnan(never).all()
    flat = curve(DENSE | {"beta": 0.0})
    assert np.isnan(flat.compute_for(np.array([2.0]))).all()


def test_noise_is_the_scatter_about_the_curve():
    assert curve(DENSE, noise=0.01).noise() == pytest.approx(0.01, rel=0.25)
    few = curve(DENSE)
    few = Curve(few.params, few.draws, few.rows.iloc[:3], 0.9)
    assert np.isnan(few.noise())


def test_draws_of_leverage_are_those_that_its_intervals_rest_on():
    dense, moe = curve(DENSE, 2e-3, seed=1), curve(MOE, 2e-3, seed=2)
    drawn = leverage_draws(dense, moe, C)
    points = leverage_points(C, DENSE, MOE, dense.draws, moe.draws)
    tail = int(49 * 0.05)
    for i in range(3):
        low, high = np.sort(drawn[:, i])[[tail, 49 - tail]]
        assert (points["EL_low"][i], points["EL_high"][i]) == pytest.approx((low, high))
    assert (moe.loss_band(C)["low"] < moe.loss(C)).all()


def test_a_curve_without_draws_has_no_band():
    one = curve(DENSE)
    assert Curve(one.params, one.draws.iloc[:0], one.rows, 0.9).loss_band(C) == {}
