"""Bars of losses show one kind of error in a series, the one that its caption names."""

import numpy as np
import pandas as pd

from moelaws.figures.losses import ALONE, PAIRED, bars, error_among

ROWS = pd.DataFrame({"L": [3.0, 3.1, 3.3], "L_se": 0.1, "L_paired_se": [0.01, 0.02, 0.01]})


def test_errors_are_paired_where_all_losses_can_be():
    assert error_among(ROWS) == PAIRED
    np.testing.assert_allclose(bars(ROWS, PAIRED)["high"], [3.01, 3.12, 3.31])


def test_one_loss_without_a_paired_error_leaves_all_with_their_own():
    """An error of a loss alone beside paired ones would be a tenfold bar for no reason."""
    one = ROWS.assign(L_paired_se=[0.01, np.nan, 0.01])
    assert error_among(one) == error_among(ROWS.drop(columns="L_paired_se")) == ALONE
    np.testing.assert_allclose(bars(one, error_among(one))["low"], [2.9, 3.0, 3.2])


def test_there_are_no_bars_without_errors():
    assert bars(ROWS.assign(L_se=np.nan), ALONE) == {}
    assert bars(ROWS[["L"]], ALONE) == {}
