"""Roll-out: fits below a budget are those of a hold-out above it."""

import fitting_case
import numpy as np
import pytest
from fitting_case import fitted

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.spec.errors import UserError

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


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rollout": "C", "holdout": "C > 1e20"}, "rollout holds out .*; leave holdout out"),
        ({"rollout": "budget"}, "no column 'budget' for rollout"),
        ({"rollout": "same"}, "rollout same: no value of it can be fitted: same has one value"),
        ({"rollout": "late"}, "late: no value of it can be fitted: 6 rows are too few for 5 para"),
        ({"rollout": "large"}, "no value .* the 8 rows cannot determine A, E and alpha of"),
    ],
)
def test_what_cannot_be_rolled_out(budgets, fields, message):
    table = budgets.assign(same=1.0, late=(np.arange(72) > 5) * 1.0)
    table["large"] = (table["N"] > 6e7) * 1.0
    with pytest.raises(UserError, match=message):
        _fit(table, **fields)


@pytest.mark.parametrize("column", ["L", "loss", "se", "bpb"])
def test_what_training_measures_is_not_rolled_out_over(budgets, column):
    loss = budgets["L"]
    table = budgets.rename(columns={"L": "loss"}).assign(se=0.01 * loss, bpb=0.3 * loss)
    spec = fitting_case.entry(LAW, rollout=column, mapping={"L": "loss"}, weights="se")
    allowed = "a roll-out cuts at what is known before it, here C, D, N$"
    with pytest.raises(UserError, match=f"rollout is {column}, which training measures; {allowed}"):
        fit(LAW, table, spec, units={"bpb": "bits/byte"})
