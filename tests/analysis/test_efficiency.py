"""Efficiency leverage with intervals from two fits' draws."""

import numpy as np
import pandas as pd
import pytest

from moelaws.analysis.efficiency import leverage_points
from moelaws.laws.leverage.curve import efficiency_leverage
from moelaws.spec.errors import UserError

DENSE = {"alpha": 60.0, "beta": -0.085, "b": 1.6}
MOE = {"alpha": 58.0, "beta": -0.0865, "b": 1.58}
C = np.array([1e19, 1e20, 1e21])


def draws(params, n, seed, spread=2e-3):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({k: v * np.exp(rng.normal(0, spread, n)) for k, v in params.items()})


def test_points_are_algorithm_1_and_intervals_its_quantiles():
    dense, moe = draws(DENSE, 401, 1), draws(MOE, 401, 2)
    points = leverage_points(C, DENSE, MOE, dense, moe)
    assert points["EL"][1] == pytest.approx(4.1846545558175805, rel=1e-6)
    assert points["L_star"][1] == pytest.approx(2.6600105392644635, rel=1e-6)
    one_by_one = [
        efficiency_leverage(dense.iloc[i].to_dict(), moe.iloc[i].to_dict(), 1e20).EL
        for i in range(401)
    ]
    low, high = np.sort(one_by_one)[[20, 380]]
    assert (points["EL_low"][1], points["EL_high"][1]) == pytest.approx((low, high), rel=1e-12)
    assert (points["unreached"] == 0).all()
    assert (points["EL_low"] < points["EL"]).all()
    assert (points["EL"] < points["EL_high"]).all()


def test_a_wider_level_holds_the_narrower():
    dense, moe = draws(DENSE, 300, 3), draws(MOE, 200, 4)  # the fewer draws are paired
    narrow = leverage_points(C, DENSE, MOE, dense, moe, level=0.5)
    wide = leverage_points(C, DENSE, MOE, dense, moe, level=0.9)
    assert (wide["EL_low"] < narrow["EL_low"]).all()
    assert (wide["EL_high"] > narrow["EL_high"]).all()


def test_no_spread_is_no_interval():
    points = leverage_points(C, DENSE, MOE, draws(DENSE, 9, 1, 0), draws(MOE, 9, 1, 0))
    assert points["EL_low"].to_numpy() == pytest.approx(points["EL"].to_numpy())
    assert points["EL_high"].to_numpy() == pytest.approx(points["EL"].to_numpy())


def test_draws_that_the_dense_curve_never_reaches_open_the_interval_upwards():
    dense = pd.DataFrame([DENSE] * 80 + [DENSE | {"b": 2.7}] * 20)
    points = leverage_points(C[1:2], DENSE, MOE, dense, pd.DataFrame([MOE] * 100))
    assert points["unreached"][0] == pytest.approx(0.2)
    assert points["EL_high"][0] == np.inf
    assert points["EL_low"][0] == pytest.approx(4.18465, rel=1e-5)
    never = leverage_points(1e20, DENSE | {"b": 2.7}, MOE, dense, pd.DataFrame([MOE] * 100))
    assert never[["EL", "C_dense"]].isna().all(axis=None)
    assert never["L_star"][0] == pytest.approx(2.66001, rel=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dense": {"alpha": 60.0}}, "dense lacks beta, b; a fit of leverage.curve has"),
        ({"moe_draws": draws(MOE, 3, 0).drop(columns="b")}, "moe_draws lacks b"),
        ({"moe_draws": draws(MOE, 0, 0)}, "no bootstrap draws"),
        ({"level": 1.0}, "level is 1.0; it must lie between 0 and 1"),
        ({"C_moe": [1e20, 0.0]}, "every compute must be a finite number above 0"),
    ],
)
def test_mistakes(change, message):
    good = {"C_moe": C, "dense": DENSE, "moe": MOE}
    good |= {"dense_draws": draws(DENSE, 3, 0), "moe_draws": draws(MOE, 3, 0)}
    with pytest.raises(UserError) as caught:
        leverage_points(**good | change)
    assert message in str(caught.value)
