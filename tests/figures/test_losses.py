"""Panels of observed over predicted losses, and bars of one kind of error in a series."""

import numpy as np
import pandas as pd

from moelaws.figures.losses import ALONE, PAIRED, bars, equal_axes, error_among, error_lines
from moelaws.figures.sheet import one_panel

L = np.array([2.0, 2.5, 3.0])
ROWS = pd.DataFrame({"L": [3.0, 3.1, 3.3], "L_se": 0.1, "L_paired_se": [0.01, 0.02, 0.01]})


def test_both_axes_are_the_same_and_hold_every_run():
    _, panel = one_panel()
    equal_axes(panel, L + 0.5, L, margin=0.1, ticks=5)
    assert panel.ax.get_xlim() == panel.ax.get_ylim()
    assert panel.ax.get_xlim()[0] < 2.0 < 3.5 < panel.ax.get_xlim()[1]


def test_the_mean_explains_nothing_and_two_runs_have_no_share_explained():
    assert error_lines(np.full(3, 2.5), L)[-1] == "$R^2$ = 0"
    assert error_lines(L[:2], L[:2]) == ["$n$ = 2", "RMSE = 0 nats"]


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
