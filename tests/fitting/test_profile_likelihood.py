"""Profile likelihood against brute force, and where rows do not hold a parameter."""

import numpy as np
import pandas as pd
import pytest
from fitting_case import fitted_part
from scipy.optimize import brentq
from scipy.stats import chi2

from moelaws import laws
from moelaws.laws.base import FitProtocol, Parameter
from moelaws.laws.forms import LinearLaw, one


@pytest.fixture(scope="module")
def line(parabola):
    """y = p0 + p1 x, for which the best intercept at a given slope is a median."""
    return LinearLaw(
        id="line",
        title="A line",
        source="this test",
        equation="y = p0 + p1*x",
        latex="",
        variables=parabola.variables,
        response=parabola.response,
        parameters=tuple(Parameter(f"p{i}", "1", -np.inf, np.inf, "") for i in range(2)),
        features={"p0": one, "p1": lambda c: c["x"]},
        protocol=FitProtocol(objective="absolute"),
    )


def _profile(law, table, *names, **fields):
    return fitted_part(law, table, profile=names, bootstrap=2, **fields).profile


@pytest.mark.parametrize(("seed", "level"), [(0, 0.68), (1, 0.9), (2, 0.9)])
def test_a_slope_with_laplace_noise(line, seed, level):
    """Laplace: with sigma at its best, twice the fall is 2 n ln(sum |r| / least sum |r|)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 2, 200)
    y = 1 - 2 * x + 0.3 * rng.laplace(size=200)
    profile = _profile(line, pd.DataFrame({"x": x, "y": y}), "p1", level=level)["p1"]

    def total(slope):
        r = y - slope * x
        return np.abs(r - np.median(r)).sum()

    slopes = np.linspace(-2.5, -1.5, 4001)
    totals = np.array([total(s) for s in slopes])
    best = slopes[totals.argmin()]

    def beyond(slope):
        return 200 * np.log(total(slope) / totals.min()) - chi2.ppf(level, 1) / 2

    low, high = brentq(beyond, -2.5, best), brentq(beyond, best, -1.5)
    assert profile.estimate == pytest.approx(best, abs=1e-3)
    assert profile.low == pytest.approx(low, abs=0.05 * (high - low))
    assert profile.high == pytest.approx(high, abs=0.05 * (high - low))
    for slope, nll in profile.curve:
        exact = 200 * (np.log(2 * total(slope) / 200) + 1)
        assert nll == pytest.approx(exact, abs=2e-3)


def test_the_intercept_is_profiled_as_the_slope_is(line):
    """Coordinates are orthonormal and run as they will: the answer does not follow them."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 2, 200)
    y = 1 - 2 * x + 0.3 * rng.laplace(size=200)
    profiles = _profile(line, pd.DataFrame({"x": x, "y": y}), "p0", "p1")
    assert list(profiles) == ["p0", "p1"]
    turned = _profile(line, pd.DataFrame({"x": -x, "y": -y}), "p0", "p1")
    for name, sign in (("p0", -1), ("p1", 1)):
        ends = sorted(sign * end for end in (turned[name].low, turned[name].high))
        assert ends == pytest.approx([profiles[name].low, profiles[name].high], abs=2e-4)


def test_a_term_that_vanished_is_not_held_below(dense):
    """Losses without an irreducible part: E may be as small as it likes."""
    law = laws.fittable("chinchilla")
    table = dense(noise=0.0, sizes=8, tokens=8)
    errors = 0.01 * np.random.default_rng(0).standard_normal(len(table))
    table["L"] = (table["L"] - 0.9999 * law.published["E"]) * np.exp(errors)
    profiles = _profile(law, table, "E", "alpha", protocol={"sample": 40})
    assert profiles["E"].low is None
    assert profiles["E"].high < 0.5
    assert profiles["alpha"].low < law.published["alpha"] < profiles["alpha"].high
