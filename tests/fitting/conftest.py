"""Simulated tables of the sparsity law."""

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.laws.sparsity.loss import optimal_size


@pytest.fixture(scope="session")
def simulated():
    """``simulated(noise, seed)``: 180 runs around the optima of 3 budgets x 6 sparsities."""

    def build(noise=0.003, seed=0, sizes=10):
        law = laws.get("sparsity.loss")
        rows = [
            (C, S, float(optimal_size(law.published, S, C).N) * factor)
            for C in (3e19, 1.7e20, 1e21)
            for S in (0.0, 0.25, 0.5, 0.75, 0.9, 0.98)
            for factor in np.geomspace(1 / 6, 6, sizes)
        ]
        table = pd.DataFrame(rows, columns=["C", "S", "N"])
        table["D"] = table["C"] / (6 * (1 - table["S"]) * table["N"])
        rng = np.random.default_rng(seed)
        exact = law.predict(law.published, table)
        table["L"] = exact * np.exp(noise * rng.standard_normal(len(table)))
        return table.assign(source="simulated", status="completed")

    return build
