"""Tables of efficiency leverage (F4a to c and its errors): points, and what is published."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moelaws.analysis.derive import Rows
from moelaws.analysis.inputs import Inputs
from moelaws.laws.base import Array
from moelaws.studies.leverage.laws import joint

GRID = 61  # points of a published curve
PUBLISHED_BUDGETS = (1e18, 3e20)  # FLOP: the least and the largest of the paper's isoFLOP curves


def published_leverage(A: ArrayLike, G: ArrayLike, C: ArrayLike) -> Array:
    """Returns EL by Eq 4 with Table 6 at A = E_a / E, granularity G and compute C (FLOP)."""
    return np.asarray(joint.LAW.predict(joint.LAW.published, {"A": A, "G": G, "C": C}))


def points(inputs: Inputs, of: str) -> pd.DataFrame:
    """Returns the points of the sweep ``of`` that have a leverage, with its logarithm."""
    rows = inputs.derived("points", sweep=of)
    rows = rows[rows["EL"].notna()]
    return rows.assign(ln_EL=np.log(rows["EL"].to_numpy(float)))


def published(inputs: Inputs, of: str) -> pd.DataFrame:
    """Returns the published leverage over what the sweep varies, at the paper's nearest budget."""
    rows = points(inputs, of)
    rows = rows[rows["measured"] == 1]
    varied = {"activation": "A_routed", "granularity": "G"}[of]
    at = rows[["A_routed", "G"]].median().to_dict()
    at[varied] = np.geomspace(rows[varied].min(), rows[varied].max(), GRID)
    C = float(np.clip(rows["C"].max(), *PUBLISHED_BUDGETS))
    return pd.DataFrame({**at, "C": C, "EL": published_leverage(at["A_routed"], at["G"], C)})


def published_over_compute(inputs: Inputs, of: str) -> Rows:
    """Yields the published leverage of each activation ratio over the budgets of its points."""
    rows = points(inputs, of)
    if rows["C"].max() < PUBLISHED_BUDGETS[0]:
        yield rows.head(0)
        return
    for A, own in rows[rows["A_routed"] < 1].groupby("A_routed"):
        C = np.geomspace(own["C"].min(), own["C"].max(), GRID)
        EL = published_leverage(float(str(A)), own["G"].median(), C)
        yield pd.DataFrame({"A_routed": A, "C": C, "EL": EL})
