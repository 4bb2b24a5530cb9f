"""Loss over one scale: what the fit of either form finds where the truth is known."""

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.spec.fit import Fit

LINE, FLOOR = "generalization.scaling", "generalization.scaling:floor"
TRUTH = {"a": 46.0, "alpha": 0.47, "L_inf": 2.06}
X = np.geomspace(4e3, 5e4, 9)


def fitted(ref, L):
    table = pd.DataFrame({"x": X, "L": L}).assign(source="trained")
    spec = Fit(name="f", law=ref, mapping={}, units={"x": "1"}, bootstrap=20)
    return fit(laws.fittable(ref), table, spec).parts[0]


def test_a_floor_is_found_and_a_line_without_it_is_too_flat():
    L = laws.fittable(FLOOR).predict(TRUTH, {"x": X})
    assert fitted(FLOOR, L).estimates() == pytest.approx(TRUTH, rel=1e-4)
    line = fitted(LINE, L)
    # The slope of ln L is alpha times the share of the loss above its floor.
    share = (L - TRUTH["L_inf"]) / L
    assert TRUTH["alpha"] * share.min() < line.params["alpha"].estimate
    assert line.params["alpha"].estimate < TRUTH["alpha"] * share.max()


def test_without_a_floor_the_line_is_numpys():
    L = 7 * X**-0.1 * np.exp(0.01 * np.random.default_rng(0).standard_normal(len(X)))
    slope, intercept = np.polyfit(np.log(X), np.log(L), 1)
    estimates = fitted(LINE, L).estimates()
    assert [estimates["alpha"], np.log(estimates["a"])] == pytest.approx(
        [-slope, intercept], rel=1e-9
    )
