"""What a user may get wrong, and the line that tells them."""

import numpy as np
import pytest

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.spec.errors import UserError
from moelaws.spec.study import Fit

LAW = laws.get("sparsity.loss")


def _fit(table, law=LAW, **entry):
    spec = Fit(**{"name": "loss", "law": law.id, "mapping": {}, "bootstrap": 1} | entry)
    return fit(law, table, spec, label="runs.parquet")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("L", np.nan, r"row 4 \(run r3\): column L is nan; L must be a finite number above 0"),
        ("L", np.inf, "row 4 .* column L is inf"),
        ("L", -2.0, "row 4 .* column L is -2"),
        ("S", 1.0, "row 4 .* column S is 1; S must be at least 0 and below 1"),
        ("N", 0.0, "row 4 .* column N is 0; N must be a finite number above 0"),
        ("D", -5.0, "row 4 .* column D is -5"),
    ],
)
def test_a_value_outside_its_domain(simulated, column, value, message):
    table = simulated(sizes=4)
    table["run_id"] = [f"r{i}" for i in range(len(table))]
    table.loc[3, column] = value
    with pytest.raises(UserError, match=message):
        _fit(table)


def test_a_bad_row_that_is_not_used_is_no_mistake(simulated):
    table = simulated(sizes=4)
    table.loc[3, "L"] = np.nan
    left_out = {"not in rows: L > 0": 1}
    report = _fit(table, rows="L > 0", protocol={"sample": 2})
    assert report.parts[0].left_out == left_out
    table.loc[3, "status"] = "diverged"
    report = _fit(table, protocol={"sample": 2})
    assert report.parts[0].left_out == {"status is diverged": 1}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"mapping": {"L": "loss"}}, "runs.parquet: no column 'loss' for L of sparsity.loss"),
        (
            {"mapping": {"M": "N"}},
            "mapping of 'M': not a variable of sparsity.loss; it has N, D, S",
        ),
        ({"mapping": {"N": "status"}}, "row 1: column status is 'completed'; a number is wanted"),
        ({"rows": "S >> 0"}, "'S >> 0' is not COLUMN OP NUMBER"),
        ({"rows": "width > 3"}, "no column 'width'"),
        ({"rows": "S > 2"}, r"no row is left to fit; left out: 72 \(not in rows: S > 2\)"),
        ({"split_by": "budget"}, "no column 'budget' for split_by"),
        ({"holdout": "S > 0.99"}, "holdout 'S > 0.99' selects no row of the 72 used"),
        ({"holdout": "S >= 0"}, "0 rows are left to fit the 10 parameters .* held out: 72"),
        ({"rows": "S < 0.1 and C < 1e20"}, "4 rows are left to fit the 10 parameters"),
        ({"split_by": "N"}, "1 rows at N = .* are left to fit the 10 parameters"),
        ({"rows": "S < 0.1"}, "12 rows cannot tell lambda from c, delta from d .* all have S = 0"),
        ({"protocol": {"steps": 3}}, "protocol.steps is unknown; .* delta, grid, sample"),
        ({"protocol": {"delta": "x"}}, "protocol: could not convert"),
        ({"protocol": {"delta": 0}}, "protocol.delta is 0.0; it must be above 0"),
        ({"protocol": {"grid": {"z": [1]}}}, "protocol.grid.z is no parameter"),
        ({"protocol": {"grid": {"a": []}}}, "protocol.grid.a: a list of finite numbers"),
    ],
)
def test_an_entry_that_does_not_fit_the_table(simulated, entry, message):
    with pytest.raises(UserError, match=message):
        _fit(simulated(sizes=4), **entry)


def test_all_rows_at_one_size_are_not_identifiable(simulated):
    table = simulated(sizes=4).assign(N=1e9)
    with pytest.raises(UserError, match=r"alpha from a, gamma from d .* all have N = 1e\+09"):
        _fit(table)
    surface = laws.get("sparsity.isoflop")
    with pytest.raises(UserError, match=r"cannot tell a1, a2, b1, b2, c1, c2, d apart"):
        _fit(table, surface, rows="C < 1e20")


def test_a_run_that_stands_twice(simulated):
    table = simulated(sizes=4).assign(run_id="abc")
    with pytest.raises(UserError, match="column run_id: abc stands twice"):
        _fit(table)


def test_a_term_that_vanishes_is_said_to(simulated):
    """Losses without an irreducible part: e goes to its bound and the report says so."""
    table = simulated(sizes=5)
    table["L"] = LAW.predict(LAW.published, table) - LAW.published["e"] * 0.999
    (part,) = _fit(table, protocol={"sample": 60}, bootstrap=10).parts
    assert part.params["e"].estimate < 0.01
    assert any("e" in text and "bound" in text for text in part.warnings)
