"""The run of least loss at each budget."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.spec.errors import UserError
from moelaws.studies.hyperparameters.derived.argmin import argmin

runs = st.lists(
    st.tuples(st.sampled_from([1e18, 3e18, 1e19]), st.integers(0, 1), st.floats(1, 5)),
    min_size=1,
    max_size=30,
)


@given(runs, st.randoms(use_true_random=False))
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


def test_allocation_of_table_5_from_a_grid_of_runs():
    """Runs along each budget, losses least at Table 5's M: the fitted law is Table 5's."""
    law = laws.get("leverage.allocation:M")
    step = np.linspace(-1, 1, 41)
    rows = []
    for C in np.geomspace(3e18, 3e20, 5):
        M = float(law.predict(law.published, {"C": C})) * np.exp(step)
        rows.append(pd.DataFrame({"C": C, "M": M, "L": 2 + 0.1 * step**2}))
    best = argmin(pd.concat(rows, ignore_index=True))
    X = law.design({"C": best["C"].to_numpy()})
    theta, *_ = np.linalg.lstsq(X, np.log(best["M"].to_numpy()), rcond=None)
    assert law.natural(theta) == pytest.approx([0.1915, 0.5095], rel=1e-8)


@pytest.mark.parametrize(
    ("frame", "groups", "message"),
    [
        ({"C": [1.0]}, ["C"], "no column L; it has C"),
        ({"C": [1.0], "L": [2.0]}, ["C", "S"], "no column S; it has C, L"),
        ({"C": [], "L": []}, ["C"], "no rows"),
        ({"C": [1.0, None], "L": [2.0, 2.0]}, ["C"], "column C is empty in 1 of 2 rows"),
        ({"C": [1e18, 3e18], "L": [2.0, None]}, ["C"], "no run with a value of L at C = 3e+18"),
        ({"C": [1e18], "k": [2], "L": [np.nan]}, ["C", "k"], "at C = 1e+18, k = 2"),
        ({"C": [1.0], "L": [2.0]}, [], "no column to group by"),
    ],
)
def test_what_has_no_best_run(frame, groups, message):
    with pytest.raises(UserError) as caught:
        argmin(pd.DataFrame(frame, dtype=float if not len(frame["C"]) else None), groups)
    assert message in str(caught.value)
