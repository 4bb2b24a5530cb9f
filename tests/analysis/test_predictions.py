"""Which of two fitted laws predicts better, and how a number with its interval reads."""

from math import inf, nan

import numpy as np
import pandas as pd
import pytest

from moelaws.analysis.estimate import Estimate
from moelaws.analysis.predictions import Prediction, excess, rmse


def predictions(L: np.ndarray, value: np.ndarray, spread: float = 0.0) -> Prediction:
    held = np.arange(len(L)) >= 4
    draws = value + spread * np.random.default_rng(0).standard_normal((100, 1))
    return Prediction(pd.DataFrame({"L": L}), ~held, held, value, draws)


def test_the_worse_law_has_the_larger_error_on_the_held_out_rows_alone() -> None:
    L = np.linspace(2, 3, 24)
    good, bad = L + 0.01 * (-1) ** np.arange(24), L + 0.1 * (-1) ** np.arange(24)
    good[:4] = 9.0  # fitted rows do not count
    difference = excess(predictions(L, bad), predictions(L, good))
    assert difference.value == pytest.approx(0.09)
    assert 0 < difference.low <= difference.value <= difference.high
    assert difference.n == 20
    assert rmse(predictions(L, bad), predictions(L, bad).held) == pytest.approx(0.1)


def test_laws_that_their_draws_cannot_tell_apart_have_an_interval_about_nothing() -> None:
    L = np.random.default_rng(3).normal(3, 0.3, 24)
    one, other = np.full(24, 3.0), np.full(24, 3.005)
    difference = excess(predictions(L, one, 0.05), predictions(L, other, 0.05))
    assert difference.low < 0 < difference.high


def test_without_draws_or_held_out_rows_there_is_no_interval() -> None:
    L = np.linspace(2, 3, 8)
    bare = Prediction(pd.DataFrame({"L": L}), L < 2.5, L >= 2.5, L + 0.1, np.empty((0, 8)))
    assert np.isnan(excess(bare, bare).low)
    none = Prediction(bare.rows, L > 0, L < 0, bare.value, bare.draws)
    assert excess(none, bare).n == 0
    assert np.isnan(rmse(none, none.held))


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((2.0, 1.5, 2.5), "2 (1.5 to 2.5)"),
        ((2.0, nan, nan), "2 (no interval)"),
        ((2.0, 1.5, inf), "2 (1.5 or more)"),
        ((2.0, -inf, inf), "2 (anywhere)"),
        ((nan, nan, nan), "not determined"),
    ],
)
def test_an_interval_that_is_missing_or_endless_is_said_in_words(ends, text):
    assert str(Estimate(*ends, 10)) == text


def test_a_factor_scales_the_interval_too():
    assert (Estimate(2.0, 1.0, 3.0, 7) * 0.5).interval == (1.0, 0.5, 1.5)
