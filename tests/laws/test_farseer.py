"""Farseer: what it is a form of, and how it does on its authors' runs beside Chinchilla's law."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.laws.farseer import LAW
from moelaws.spec.fit import Fit
from public_runs import public

FLAT = dict.fromkeys(("gamma", "alpha"), 0.0) | dict.fromkeys(("a3", "a1"), 0.0)


@given(st.floats(8, 11), st.floats(0.1, 0.6), st.floats(0.5, 2.0))
def test_without_size_it_is_a_power_law_in_tokens(ln_D, exponent, floor):
    D = 10.0**ln_D
    params = FLAT | {"b3": np.log(floor), "a2": 0.0, "beta": 0.0, "b2": 3.0, "b1": np.log(exponent)}
    expected = floor + np.exp(3.0) * D**-exponent
    assert LAW.predict(params, {"N": [1e8, 1e10], "D": D}) == pytest.approx([expected] * 2)


def test_a_search_that_goes_astray_meets_no_nan():
    theta = np.array([LAW.bounds[:, 0], LAW.bounds[:, 1]])
    value, jacobian = LAW.function(theta, {"N": np.array([1e8, 1e11]), "D": np.array([1e9, 1e13])})
    assert np.isfinite(value).all()
    assert np.isfinite(jacobian).all()


def fitted(ref, table, **protocol):
    mapping = {"N": "N", "D": "D", "L": "loss"}
    entry = Fit(name="own", law=ref, mapping=mapping, bootstrap=2, protocol=protocol)
    (part,) = fit(laws.fittable(ref), table, entry).parts
    return part.estimates()


def errors(ref, params, table):
    """The root mean square error in bits a byte, and the mean relative one."""
    predicted = laws.get(ref).predict(params, {"N": table["N"], "D": table["D"]})
    off = predicted - table["loss"].to_numpy()
    return float(np.sqrt(np.mean(off**2))), float(np.mean(np.abs(off) / table["loss"]))


def test_on_its_authors_runs_it_extrapolates_nine_times_closer_than_chinchilla():
    """404 runs fitted; seven held out, with a model of 25e9 parameters, four times the largest."""
    train, test = (pd.read_parquet(public(f"farseer_{x}.parquet")) for x in ("train", "test"))
    dense = fitted("chinchilla", train, sample=300)
    own = fitted("farseer", train)
    assert errors("chinchilla", dense, train)[0] == pytest.approx(0.0048, abs=3e-4)
    assert errors("farseer", own, train)[0] == pytest.approx(0.0011, abs=1e-4)
    assert errors("chinchilla", dense, test)[1] == pytest.approx(0.030, abs=2e-3)
    assert errors("farseer", own, test)[1] < 0.005
