"""The last steps to an optimum, and what rows determine of it."""

import tracemalloc

import numpy as np
import pandas as pd
from fitting_case import fitted_part

from moelaws import laws
from moelaws.fitting.caveats import require_determined
from moelaws.fitting.descent import normalised


def test_a_step_to_where_the_law_has_no_value_is_refused():
    """Eq 1 has none where A_start > A_max, to which leverage that is only noise leads."""
    law = laws.fittable("leverage.activation")
    rng = np.random.default_rng(39)
    n = rng.integers(4, 9)
    table = pd.DataFrame({"A": np.geomspace(0.01, 1, n), "EL": np.exp(rng.normal(0, 0.05, n))})
    part = fitted_part(law, table, bootstrap=1)
    estimates = part.estimates()
    assert estimates["A_start"] < estimates["A_max"]
    assert np.isfinite(part.objective)
    flat = float(np.sum(np.log(table["EL"]) ** 2))  # a_A = 0: EL = 1
    assert part.objective <= flat * (1 + 1e-9)


def test_a_hessian_of_rounding_errors_has_eigenvalues():
    """Of routing.loss at an end where its term is nothing: two diagonal elements vanished.

    Divided by what is left of its diagonal alone, its elements reached 1e286.
    """
    below = [
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [-2.17e-21, -8.68168981e-21, 0.0, 0.0, 0.0],
        [1.42394342e-20, 1.84400625e-20, -4.33402226e-20, 0.0, 0.0],
        [-1.37842287e-22, -1.35651403e-22, 4.25302008e-22, 0.0, 0.0],
        [0.0, -3.06481228e-21, -3.06481228e-21, 9.57753839e-23, -3.06481228e-21],
    ]
    hessian = np.tril(below) + np.tril(below, -1).T
    scaled, diagonal = normalised(hessian)
    assert np.isfinite(np.linalg.eigh(scaled)[0]).all()
    assert (diagonal > 0).all()


ROWS = 12_000


def test_many_rows_take_memory_in_proportion(dense):
    law = laws.fittable("chinchilla")
    table = dense(sizes=ROWS // 100, tokens=100)
    columns = {name: table[name].to_numpy() for name in ("N", "D")}
    tracemalloc.start()
    try:
        require_determined(law, law.published, columns, columns)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * 8 * ROWS  # a hundred numbers a row; a square matrix has 12,000
