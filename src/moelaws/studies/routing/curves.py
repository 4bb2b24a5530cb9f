"""The table of training curves, apart from the code of fits, which it does not need."""

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.studies.routing.routers import DENSE, ROUTERS, main_runs

FIRST = 5e9  # tokens, before which all curves fall steeply


def curves(inputs: Inputs) -> pd.DataFrame:
    """Returns the losses of S-Base and of the dense model over tokens, without the first ones."""
    rows = main_runs(inputs.derived("curves"))
    rows = rows[rows["router"].isin([ROUTERS[0].name, DENSE]) & (rows["D"] >= FIRST)]
    sizes = inputs.completed.sort_values("N_dense")["size"]
    return rows.assign(size=pd.Categorical(rows["size"], sizes.unique()))
