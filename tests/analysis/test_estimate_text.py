"""How a number with its interval reads."""

from math import inf, nan

import pytest

from moelaws.analysis.estimate import Estimate


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
