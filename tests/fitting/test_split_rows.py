"""A split fit in which some parts lost too many runs."""

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.fitting.rows import split_rows
from moelaws.spec.errors import UserError
from moelaws.spec.study import Fit

LAW = laws.fittable("leverage.compute")  # two parameters
SPEC = Fit(name="compute", law=LAW.id, mapping={}, split_by="E")


def table(counts):
    rows = [
        {"E": E, "C": 1e18 * 2.0**i, "EL": 2.0 + i} for E, n in counts.items() for i in range(n)
    ]
    return pd.DataFrame(rows)


def test_a_part_without_rows_enough_is_left_out_and_counted():
    found = split_rows(LAW, table({4.0: 3, 8.0: 1, 16.0: 2}), SPEC)
    assert [rows.where["E"] for rows in found] == [4, 16]
    assert found[0].left_out == {"fewer than 2 rows at E = 8": 1}
    np.testing.assert_array_equal(found[1].response, [2, 3])


def test_no_part_with_rows_enough_is_an_error():
    with pytest.raises(UserError, match="1 rows at E = 4 are left to fit the 2 parameters"):
        split_rows(LAW, table({4.0: 1, 8.0: 1}), SPEC)
