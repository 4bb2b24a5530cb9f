"""What follows from the terms that a law declares, and crossings of rising functions."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.laws.declared import law_beside
from moelaws.laws.roots import bisect, rising_root
from repository import REPOSITORY


def test_texts_variables_and_starts_follow_from_the_terms():
    law = laws.get("sparsity.loss")
    assert (
        law.equation == "L = a/N^alpha + b/D^beta + c/(1-S)^lambda + d/((1-S)^delta * N^gamma) + e"
    )
    assert law.latex == (
        r"L = \frac{a}{N^{\alpha}} + \frac{b}{D^{\beta}} + \frac{c}{(1-S)^{\lambda}}"
        r" + \frac{d}{(1-S)^{\delta} N^{\gamma}} + e"
    )
    assert [v.name for v in law.variables] == ["N", "D", "S"]
    assert tuple(law.protocol.grid) == law.names
    above = laws.get("chinchilla:activation")
    assert above.equation == "L = a*A^gamma/N^alpha + b*A^delta/D^beta + e*A^epsilon"
    assert above.latex.endswith(r"\frac{b A^{\delta}}{D^{\beta}} + e A^{\epsilon}")
    assert laws.get("allocation.ratio:stage1").latex == r"r^* = \alpha_r C^{\beta_r}"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('{X = "-beta"}', "unknown variable 'X'; there are: N, D"),
        ('{D = "-betta"}', "unknown parameter 'betta'; did you mean beta?"),
    ],
)
def test_a_slip_in_a_term_is_named_with_what_there_is(tmp_path, written, expected):
    table = (REPOSITORY / "src/moelaws/laws/chinchilla.toml").read_text()
    (tmp_path / "own.toml").write_text(table.replace('{D = "-beta"}', written, 1))
    with pytest.raises(ValueError, match=re.escape(expected)):
        law_beside(str(tmp_path / "own.py"))


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
