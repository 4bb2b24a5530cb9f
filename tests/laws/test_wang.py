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


def design(n=60):
    rng = np.random.default_rng(4)
    return {
        "N": np.exp(rng.uniform(np.log(1e8), np.log(5e9), n)),
        "D": np.exp(rng.uniform(np.log(1e9), np.log(1e11), n)),
        "E": rng.choice([17.0, 33.0, 65.0, 129.0], n),
    }


def test_a_sweep_of_size_data_and_experts_identifies_every_parameter():
    columns = design()
    model = LAW.model(LAW.columns(columns))
    value, share = model.evaluate(LAW.vector(PARAMS)[None])
    N, D, E = (columns[name] for name in "NDE")
    exact = 400 / (N**0.34 * E**0.05) + 2000 / D**0.37 + 1.7
    assert value[0] == pytest.approx(np.log(exact), abs=1e-13)
    J = model.jacobian(share)[0]
    assert np.linalg.matrix_rank(J / np.linalg.norm(J, axis=1, keepdims=True)) == 6
    assert LAW.confounded(columns) == []
    one_E = columns | {"E": np.full(60, 65.0)}
    assert LAW.confounded(one_E) == [("gamma", "a")]
