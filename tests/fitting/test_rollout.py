"""Roll-out: fits below a budget are those of a hold-out above it."""

import numpy as np
import pytest
from fitting_case import fitted

from moelaws import laws

LAW = laws.fittable("chinchilla")


def _fit(table, **fields):
    return fitted(LAW, table, **{"bootstrap": 1, "protocol": {"sample": 20}} | fields)


@pytest.fixture(scope="module")
def budgets(dense):
    """72 rows of 5 values of C; the least hold 4 rows and 8, fewer than twice the parameters."""
    table = dense(sizes=9, tokens=8).sample(frac=1, random_state=0).reset_index(drop=True)
    return table.assign(C=np.repeat([1e17, 1e18, 1e19, 1e20, 1e21], [4, 4, 22, 25, 17]))


def test_each_budget_but_the_largest_or_the_reason_why_not(budgets):
    (group,) = _fit(budgets, rollout="C").parts
    assert [entry.below for entry in group.rollout] == [1e17, 1e18, 1e19, 1e20]
    assert "4 rows are too few for 5 parameters; at least 10 are needed" in group.rollout[0].reason
    assert "8 rows are too few for 5 parameters; at least 10 are needed" in group.rollout[1].reason
    assert [entry.n for entry in group.rollout] == [None, None, 30, 55]
    assert [entry.errors["n"] for entry in group.rollout[2:]] == [42, 17]
    assert group.n == 72
    assert group.holdout is None


def test_errors_are_those_of_a_hold_out(budgets):
    (group,) = _fit(budgets, rollout="C").parts
    (by_hand,) = _fit(budgets, holdout="C > 1e19").parts
    entry = group.rollout[2]
    assert entry.params == by_hand.estimates()
    assert entry.errors == pytest.approx(by_hand.holdout, rel=1e-12)


def test_a_variable_of_the_law_rolls_out_by_quantiles_where_it_has_many_values(dense):
    table = dense(sizes=15, tokens=12)
    (group,) = _fit(table, rollout="N").parts
    below = [entry.below for entry in group.rollout]
    assert len(below) == 8
    assert set(below) <= set(table["N"])
    for entry, level in zip(group.rollout, np.arange(1, 9) / 9, strict=True):
        assert (table["N"] <= entry.below).mean() == pytest.approx(level, abs=1 / 15)
        if entry.errors:
            assert entry.n + entry.errors["n"] == len(table)


def test_a_column_with_a_variables_name_is_cut_where_a_hold_out_cuts_it(budgets):
    table = budgets.rename(columns={"N": "size"}).assign(N=budgets["C"] * 10)
    own = {"mapping": {"N": "size"}}
    (group,) = _fit(table, rollout="N", **own).parts
    (by_hand,) = _fit(table, holdout="N > 1e20", **own).parts
    assert [entry.below for entry in group.rollout] == [1e18, 1e19, 1e20, 1e21]
    assert group.rollout[2].errors == pytest.approx(by_hand.holdout, rel=1e-12)


def test_a_row_without_a_value_is_neither_below_nor_above(budgets):
    table = budgets.assign(C=budgets["C"].where(np.arange(72) % 9 > 0))
    (group,) = _fit(table, rollout="C").parts
    assert [e.n + e.errors["n"] for e in group.rollout if e.errors] == [64, 64]
