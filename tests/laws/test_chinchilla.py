"""Chinchilla's law with powers of the activation ratio: at one ratio it is that law."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.laws.reduced import reduced

OWN = laws.get("chinchilla:activation")
PARAMS = {"a": 482.01, "b": 2085.43, "e": 1.8169, "alpha": 0.3478, "beta": 0.3659}
POWERS = {"gamma": -0.1, "delta": 0.2, "epsilon": 0.05}


@given(st.floats(0.01, 1.0))
def test_at_one_activation_ratio_it_is_chinchillas_law(A):
    at = {"N": np.geomspace(1e6, 1e12, 7), "D": np.geomspace(1e12, 1e7, 7)}
    scaled = zip("ABE", "abe", POWERS.values(), strict=True)
    whole = {name: PARAMS[own] * A**power for name, own, power in scaled}
    whole |= {name: PARAMS[name] for name in ("alpha", "beta")}
    expected = laws.get("chinchilla").predict(whole, at)
    assert OWN.predict(PARAMS | POWERS, {**at, "A": A}) == pytest.approx(expected)


def test_of_runs_of_one_ratio_it_is_fitted_as_chinchillas():
    assert reduced(OWN, ["A"]).names == ("a", "alpha", "b", "beta", "e")
