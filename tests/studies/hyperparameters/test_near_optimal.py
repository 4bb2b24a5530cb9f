"""The best and the near-optimal runs of each budget."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.spec.errors import UserError
from moelaws.studies.hyperparameters.derived.near_optimal import argmin, modified_z, near_optimal

bests = st.lists(
    st.tuples(st.sampled_from([1e18, 3e18, 1e19]), st.integers(0, 1), st.floats(1, 5)),
    min_size=1,
    max_size=30,
)


@given(bests, st.randoms(use_true_random=False))
def test_no_run_of_a_group_has_less_loss_and_order_is_nothing(rows, random):
    frame = pd.DataFrame(rows, columns=["C", "k", "L"])
    best = argmin(frame, ("C", "k"))
    assert len(best) == len(set(zip(frame["C"], frame["k"], strict=True)))
    for row in best.itertuples():
        group = frame[(frame["C"] == row.C) & (frame["k"] == row.k)]
        assert group["L"].min() == row.L
        assert frame.loc[row.Index].tolist() == [row.C, row.k, row.L]
    order = list(range(len(frame)))
    random.shuffle(order)
    again = argmin(frame.iloc[order].reset_index(drop=True), ("C", "k"))
    pd.testing.assert_frame_equal(best.reset_index(drop=True), again.reset_index(drop=True))


def test_equal_losses_give_the_first_and_diverged_runs_are_passed_over():
    frame = pd.DataFrame({"C": [1.0, 1.0, 1.0], "L": [np.nan, 2.0, 2.0], "lr": [3, 2, 1]})
    assert argmin(frame)["lr"].tolist() == [2]


@pytest.mark.parametrize(
    ("frame", "groups", "message"),
    [
        ({"C": [1.0]}, ["C"], "no column L; it has C"),
        ({"C": [1.0], "L": [2.0]}, ["C", "S"], "no column S; it has C, L"),
        ({"C": [], "L": []}, ["C"], "no rows"),
        ({"C": [1.0, None], "L": [2.0, 2.0]}, ["C"], "column C is empty in 1 of 2 rows"),
        ({"C": [1e18, 3e18], "L": [2.0, None]}, ["C"], "no run with a value of L at C = 3e+18"),
        ({"C": [1e18], "k": [2], "L": [np.nan]}, ["C", "k"], "at C = 1e+18, k = 2"),
    ],
)
def test_what_has_no_best_run(frame, groups, message):
    with pytest.raises(UserError) as caught:
        argmin(pd.DataFrame(frame, dtype=float if not len(frame["C"]) else None), groups)
    assert message in str(caught.value)


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
    mask = near_optimal(frame, ["lr"], outlier=np.inf)
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
    with pytest.raises(UserError, match="no column lr"):
        near_optimal(frame[["C", "L"]], ["lr"])
