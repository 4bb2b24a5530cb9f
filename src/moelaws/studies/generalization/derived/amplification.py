"""Fig 6b: how kappa, the amplification of the data exponent, grows with the number of experts.

Each draw of the exponents gives a line through kappa(E), so that the intervals carry how well each
kappa is known, not only how the points scatter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import table
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.laws.forms import LinearLaw
from moelaws.studies.generalization.derived.consistency import (
    OWN,
    PUBLISHED,
    consistency,
    published,
)
from moelaws.studies.generalization.derived.draws import estimates, paired, with_interval
from moelaws.studies.generalization.laws import kappa
from moelaws.tables.column import Column


@table(
    Column("origin", "string", "1", "own: of the runs; published: of the paper's Table 5"),
    Column("law", "string", "1", "the form of the line: ln kappa on ln E, or kappa on log2 E"),
    Column("name", "string", "1", "the parameter of that law"),
    Column("value", "float", "1", "its estimate", True),
    Column("value_low", "float", "1", "lower end of its interval", True),
    Column("value_high", "float", "1", "upper end of its interval", True),
    Column("level", "float", "1", "coverage of the intervals"),
    Column("points", "int", "1", "numbers of experts behind it"),
)
def derive(inputs: FittedInputs) -> Iterator[dict[str, Any]]:
    """Gives a row for each parameter of each form, by the fit by_experts and as published.

    The own values are missing where the fit has fewer than two numbers of experts.
    """
    fits = estimates(inputs, "by_experts")
    E = np.array([fit.result.where["M"] for fit in fits])
    point_E = consistency(*([fit.params[name] for fit in fits] for name in ("alpha", "beta")))
    drawn_BE = consistency(
        *(
            np.stack(paired(*(fit.draws[name] for fit in fits)), axis=1)
            for name in ("alpha", "beta")
        )
    )
    for law in (kappa.LAW, *kappa.VARIANTS.values()):
        about = {"law": law.ref, "level": fits[0].level}
        point, drawn = line(law, E, point_E["kappa"][None])[0], line(law, E, drawn_BE["kappa"])
        for i, name in enumerate(law.names):
            own = with_interval("value", point[i], drawn[:, i], fits[0].level)
            yield {"origin": OWN, **about, "name": name, **own, "points": len(E)}
        for name, value in (law.published or {}).items():
            row = {"origin": PUBLISHED, **about, "name": name, "value": value}
            yield row | {"points": len(published())}


def line(law: LinearLaw, E: Array, kappa_BE: Array) -> Array:
    """Returns the least-squares line through each row of ``kappa_BE``, natural scale (B, 2).

    It is NaN where one of the values is missing, or where there are fewer than two of them.
    """
    params_BP = np.full((len(kappa_BE), len(law.names)), np.nan)
    whole = np.isfinite(kappa_BE).all(axis=1)
    if len(E) >= 2 and whole.any():
        X = law.design({"E": E})
        theta, *_ = np.linalg.lstsq(X, law.on_scale(kappa_BE[whole]).T, rcond=None)
        with np.errstate(over="ignore"):
            params_BP[whole] = law.natural(np.asarray(theta.T, float))
    return params_BP


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Gives a line where the runs do not tell the sign of the growth."""
    rho = frame[(frame["origin"] == OWN) & (frame["name"] == "rho")].iloc[0]
    if rho["value_low"] > 0 or rho["value_high"] < 0:
        return []
    return [
        f"the exponent of kappa in E is not told from 0 ({rho['value']:.3g}, "
        f"{rho['value_low']:.3g} to {rho['value_high']:.3g}, {rho['points']} numbers of experts)"
    ]
