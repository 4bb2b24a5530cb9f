"""The best of several trials, as fits, contests and derived tables see it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.spec.errors import UserError
from moelaws.tables.sweeps import best_trials

runs = st.lists(
    st.tuples(st.sampled_from([1e18, 3e18, 1e19]), st.integers(0, 1), st.floats(1, 5)),
    min_size=1,
    max_size=30,
)


@given(runs, st.randoms(use_true_random=False))
def test_no_trial_of_a_model_has_less_loss_and_order_is_nothing(rows, random):
    frame = pd.DataFrame(rows, columns=["C", "k", "L"])
    best = frame[best_trials(frame, ["C", "k"])]
    assert len(best) == len(set(zip(frame["C"], frame["k"], strict=True)))
    least = frame.groupby(["C", "k"])["L"].min()
    pd.testing.assert_series_equal(best.set_index(["C", "k"])["L"].sort_index(), least)
    order = list(range(len(frame)))
    random.shuffle(order)
    shuffled = frame.iloc[order]
    again = shuffled[best_trials(shuffled, ["C", "k"])]
    assert sorted(again.itertuples(index=False)) == sorted(best.itertuples(index=False))


def test_equal_losses_give_the_first_and_diverged_runs_are_passed_over():
    frame = pd.DataFrame({"C": [1.0, 1.0, 1.0], "L": [np.nan, 2.0, 2.0], "lr": [3, 2, 1]})
    assert frame["lr"][best_trials(frame, ["C"])].tolist() == [2]
    assert frame["lr"][best_trials(frame, ["C"], frame["lr"] < 2)].tolist() == [1]
    assert best_trials(frame, []).all()
    with pytest.raises(UserError, match="best_per needs the column 'S'"):
        best_trials(frame, ["C", "S"])
