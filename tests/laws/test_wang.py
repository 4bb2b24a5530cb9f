"""The law of Wang et al. as the allocation paper's Eq 5 quotes it."""

import numpy as np
import pytest

from moelaws import laws

LAW = laws.get("wang.loss")
PARAMS = {"a": 400.0, "b": 2000.0, "tau": 1.7, "alpha": 0.34, "beta": 0.37, "gamma": 0.05}


def test_one_expert_is_the_dense_law():
    chinchilla = laws.get("chinchilla")
    dense = {"A": 400.0, "B": 2000.0, "E": 1.7, "alpha": 0.34, "beta": 0.37}
    N, D = np.geomspace(1e8, 1e10, 5), 2e10
    assert LAW.predict(PARAMS, {"N": N, "D": D, "E": 1}) == pytest.approx(
        chinchilla.predict(dense, {"N": N, "D": D}), rel=1e-13
    )
