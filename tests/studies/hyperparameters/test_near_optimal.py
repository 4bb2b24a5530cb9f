"""The best and the near-optimal runs of each budget."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.spec.errors import UserError
from moelaws.studies.hyperparameters.derived.near_optimal import modified_z, near_optimal

runs = st.lists(
    st.tuples(
        st.sampled_from([1e18, 3e18]), st.sampled_from([1e-3, 2e-3, 4e-3]), st.floats(2, 2.02)
    ),
    min_size=1,
    max_size=25,
)


def frame_of(rows):
    return pd.DataFrame(rows, columns=["C", "lr", "L"])


@given(runs)
def test_without_outlier_rule_it_is_the_quarter_percent_of_each_budget(rows):
    frame = frame_of(rows)
    mask = near_optimal(frame, [])
    expected = [
        1.0025 * frame["L"][frame["C"] == row.C].min() >= row.L for row in frame.itertuples()
    ]
    assert mask.tolist() == expected
    assert near_optimal(frame, ["lr"])[~mask].sum() == 0  # outliers are only ever removed


@given(runs, st.randoms(use_true_random=False))
def test_it_knows_neither_the_order_nor_the_units(rows, random):
    frame = frame_of(rows)
    mask = near_optimal(frame, ["lr"])
    order = list(range(len(frame)))
    random.shuffle(order)
    assert near_optimal(frame.iloc[order], ["lr"]).sort_index().equals(mask)
    assert near_optimal(frame.assign(lr=8 * frame["lr"], C=2 * frame["C"]), ["lr"]).equals(mask)


def test_a_lone_setting_far_from_all_others_is_an_outlier():
    lr = np.array([1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 40.0]) * 1e-3
    frame = pd.DataFrame({"C": 1e18, "lr": lr, "batch_tokens": 2**18, "L": 2.0})
    kept = near_optimal(frame, ["lr", "batch_tokens"])
    assert kept.tolist() == [True] * 6 + [False]
    assert near_optimal(frame, ["batch_tokens"]).all()
    spread = frame.assign(lr=1e-3 * 2.0 ** np.arange(7))  # a wide basin has no outliers
    assert near_optimal(spread, ["lr"]).all()


def test_modified_z_of_iglewicz_and_hoaglin():
    x = pd.Series([1.0, 2.0, 3.0, 4.0, 100.0])  # median 3, deviations 2 1 0 1 97, their median 1
    assert modified_z(x).tolist() == pytest.approx([-1.349, -0.6745, 0, 0.6745, 65.4265])
    mostly_equal = pd.Series([0.0] * 9 + [10.0])  # deviation 0; the mean one is 1
    assert modified_z(mostly_equal).iloc[-1] == pytest.approx(10 / 1.2533)
    assert (modified_z(pd.Series([0.1] * 4)) == 0).all()


def test_eq_5_from_near_optimal_runs():
    """A search whose loss is a bowl about Eq 5's learning rate: least squares find Eq 5."""
    law = laws.get("leverage.hyperparameters:lr")
    x = np.linspace(-2, 2, 41)
    C = np.repeat(np.geomspace(3e17, 3e20, 7), len(x))
    x = np.tile(x, 7)
    lr = law.predict(law.published, {"C": C}) * np.exp(x)
    frame = pd.DataFrame({"C": C, "lr": lr, "L": 2 + 0.02 * x**2})
    kept = frame[near_optimal(frame, ["lr"])]
    assert 7 * 5 <= len(kept) < len(frame) / 2
    X = law.design({"C": kept["C"].to_numpy()})
    theta, *_ = np.linalg.lstsq(X, np.log(kept["lr"].to_numpy()), rcond=None)
    assert law.natural(theta) == pytest.approx([1.1576, -0.1529], rel=1e-8)


def test_settings_are_above_0():
    frame = pd.DataFrame({"C": [1e18, 1e18], "lr": 0.0, "L": [2.0, 2.1]})
    with pytest.raises(UserError, match="column lr holds 0; it must be above 0"):
        near_optimal(frame, ["lr"])
