"""The last steps to an optimum, beside where a law has no value."""

import numpy as np
import pandas as pd
from fitting_case import fitted_part

from moelaws import laws


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
