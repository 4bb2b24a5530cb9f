"""What follows from the terms that a law declares, and crossings of rising functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.laws.base import FitProtocol
from moelaws.laws.forms import power_law_sum
from moelaws.laws.roots import bisect, rising_root
from moelaws.laws.terms import irreducible_loss, one_minus, over, term, times
from moelaws.laws.vocabulary import variable

N, D, S = variable("N"), variable("D"), variable("S")
SIZE = over(N, "alpha", 0.3, "exponent of N")
LAW = power_law_sum(
    id="example",
    title="An example",
    source="this test",
    terms=(
        term("a", 3.0, "the size term", times(D, "nu", -0.1), SIZE),
        term("b", 2.0, "the rest", over(one_minus(S), "lambda", 0.2), SIZE),
        irreducible_loss("E_0", 1.5),
    ),
    protocol=FitProtocol(objective="huber"),
)


def test_texts_units_variables_and_starts_follow_from_the_terms():
    assert LAW.equation == "L = a*D^nu/N^alpha + b/((1-S)^lambda * N^alpha) + E_0"
    assert LAW.latex == (
        r"L = \frac{a D^{\nu}}{N^{\alpha}} + \frac{b}{(1-S)^{\lambda} N^{\alpha}} + E_{0}"
    )
    assert [v.name for v in LAW.variables] == ["D", "N", "S"]
    assert LAW.names == ("a", "nu", "alpha", "b", "lambda", "E_0")
    units = [p.unit.removeprefix("nats/token") for p in LAW.parameters if p.scale == "log"]
    assert units == [" tokens^-nu parameters^alpha", " parameters^alpha", ""]
    assert tuple(LAW.protocol.grid) == LAW.names


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=5))
def test_crossings_are_exact_to_the_last_digits(where):
    target = np.array(where)
    roots = rising_root(lambda x: (x - target) ** 3, np.full(len(where), -60.0), 61.0)
    assert roots == pytest.approx(target, abs=1e-13)


def test_no_crossing_is_nan_and_bisection_keeps_an_end():
    below, above = np.array([-1.0]), np.array([1.0])
    for function, end in ((lambda x: x + 5, below), (lambda x: x - 5, above)):
        assert np.isnan(rising_root(function, below, above))
        assert bisect(function, below, above) == pytest.approx(end)
    assert np.isnan(rising_root(lambda x: -x, below, above))  # falling
