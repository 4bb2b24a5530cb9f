"""Panels of observed over predicted losses."""

import numpy as np

from moelaws.figures.losses import equal_axes, error_lines
from moelaws.figures.sheet import one_panel

L = np.array([2.0, 2.5, 3.0])


def test_both_axes_are_the_same_and_hold_every_run():
    _, panel = one_panel()
    equal_axes(panel, L + 0.5, L, margin=0.1, ticks=5)
    assert panel.ax.get_xlim() == panel.ax.get_ylim()
    assert panel.ax.get_xlim()[0] < 2.0 < 3.5 < panel.ax.get_xlim()[1]


def test_the_mean_explains_nothing_and_two_runs_have_no_share_explained():
    assert error_lines(np.full(3, 2.5), L)[-1] == "$R^2$ = 0"
    assert error_lines(L[:2], L[:2]) == ["$n$ = 2", "RMSE = 0 nats"]
