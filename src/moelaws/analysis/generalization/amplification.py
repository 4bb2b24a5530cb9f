"""Fig 6b: how kappa, the amplification of the data exponent, grows with the number of experts.

Each draw of the exponents gives a line through kappa(E), so that the intervals carry how well each
kappa is known, not only how the points scatter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.generalization.draws import estimates, paired, with_interval
from moelaws.analysis.generalization.identities import OWN, PUBLISHED
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.laws.generalization.kappa import kappa
from moelaws.laws.kinds import LinearLaw
from moelaws.tables.column import Column

LAWS = ("generalization.kappa", "generalization.kappa:log2")

COLUMNS = (
    Column("origin", "string", "1", "own: of the runs; published: of the paper's Table 5"),
    Column("law", "string", "1", "the form of the line: ln kappa on ln E, or kappa on log2 E"),
    Column("name", "string", "1", "the parameter of that law"),
    Column("value", "float", "1", "its estimate", True),
    Column("value_low", "float", "1", "lower end of its interval", True),
    Column("value_high", "float", "1", "upper end of its interval", True),
    Column("level", "float", "1", "coverage of the intervals"),
    Column("points", "int", "1", "numbers of experts behind it"),
)


def derive(inputs: Inputs) -> pd.DataFrame:
    """The table ``COLUMNS`` from the fit by_experts; own values are missing below two points."""
    fits = estimates(inputs, "by_experts")
    E = np.array([fit.part.where["M"] for fit in fits])
    alpha_N, alpha_D = (np.array([fit.params[name] for fit in fits]) for name in ("alpha", "beta"))
    drawn_N, drawn_D = (
        np.stack(paired(*(fit.draws[name] for fit in fits)), axis=1) for name in ("alpha", "beta")
    )
    level = fits[0].level
    records: list[dict[str, Any]] = []
    for ref in LAWS:
        law = laws.fittable(ref)
        assert isinstance(law, LinearLaw)
        point = line(law, E, _kappa(alpha_N, alpha_D)[None])[0]
        drawn = line(law, E, _kappa(drawn_N, drawn_D))
        about = {"law": ref, "level": level}
        for i, name in enumerate(law.names):
            own = with_interval("value", point[i], drawn[:, i], level)
            records.append({"origin": OWN, **about, "name": name, **own, "points": len(E)})
        for name, value in (law.published or {}).items():
            records.append(
                {"origin": PUBLISHED, **about, "name": name, "value": value, "points": 6}
            )
    return pd.DataFrame(records, columns=[column.name for column in COLUMNS])


def line(law: LinearLaw, E: Array, kappa_BE: Array) -> Array:
    """Least squares of the law on each row of ``kappa_BE``, natural scale (B, 2).

    NaN where one of its values is missing, or fewer than two numbers of experts are there.
    """
    found = np.full((len(kappa_BE), len(law.names)), np.nan)
    whole = np.isfinite(kappa_BE).all(axis=1)
    if len(E) >= 2 and whole.any():
        X = law.design({"E": E})
        theta, *_ = np.linalg.lstsq(X, law.on_scale(kappa_BE[whole]).T, rcond=None)
        with np.errstate(over="ignore"):
            found[whole] = law.natural(np.asarray(theta.T, float))
    return found


def warnings(frame: pd.DataFrame) -> list[str]:
    """Whether the runs know the sign of the growth."""
    rho = frame[(frame["origin"] == OWN) & (frame["name"] == "rho")].iloc[0]
    if rho["value_low"] > 0 or rho["value_high"] < 0:
        return []
    return [
        f"the exponent of kappa in E is not told from 0 ({rho['value']:.3g}, "
        f"{rho['value_low']:.3g} to {rho['value_high']:.3g}, {rho['points']} numbers of experts)"
    ]


def _kappa(alpha_N: Array, alpha_D: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = kappa(alpha_N, alpha_D)
    return np.where((alpha_N > 0) & (alpha_D > 0) & np.isfinite(found), found, np.nan)
