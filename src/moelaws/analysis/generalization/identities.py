"""Table 5: exponents for each number of experts, and how far they are from the theory's identities.

Own exponents come from a Chinchilla fit for each E; the published ones are those that the paper
reads from Ludziejewski et al. 2025, Table 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.generalization.draws import estimates, with_interval
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.laws.joint.loss import VARIANTS
from moelaws.tables.column import Column

OWN, PUBLISHED = "own", "published"

# Of ``generalization.exponents:consistency``, and the two that they follow from.
NAMES = (
    "alpha_N", "alpha_D", "alpha_C", "alpha_D_predicted", "alpha_C_predicted", "delta_D", "delta_C",
    "relative_delta_D", "relative_delta_C", "kappa",
)  # fmt: skip

COLUMNS = (
    Column("origin", "string", "1", "own: of the runs; published: the paper's Table 5"),
    Column("E", "float", "experts", "experts of a layer"),
    *(
        Column(f"{name}{end}", "float", "1", f"{name}{text}, as in generalization, Table 5", True)
        for name in NAMES
        for end, text in (("", ""), ("_low", ": lower end"), ("_high", ": upper end"))
    ),
    Column("level", "float", "1", "coverage of the intervals"),
    Column("n", "int", "1", "runs behind a row; 0 for the published ones"),
)


def derive(inputs: Inputs) -> pd.DataFrame:
    """The table ``COLUMNS`` from the fit by_experts, its own rows first.

    A row whose exponents are not above 0 has no identities: its cells are missing.
    """
    records: list[dict[str, Any]] = []
    for fit in estimates(inputs, "by_experts"):
        point = identities(fit.params["alpha"], fit.params["beta"])
        drawn = identities(fit.draws["alpha"], fit.draws["beta"])
        record: dict[str, Any] = {"origin": OWN, "E": fit.part.where["M"]}
        for name in NAMES:
            record |= with_interval(name, float(point[name]), drawn[name], fit.level)
        records.append({**record, "level": fit.level, "n": fit.part.n})
    level = records[0]["level"]
    for E, (alpha_N, alpha_D) in published().items():
        point = identities(alpha_N, alpha_D)
        record = {"origin": PUBLISHED, "E": E, "level": level, "n": 0}
        records.append(record | {name: float(point[name]) for name in NAMES})
    return pd.DataFrame(records, columns=[column.name for column in COLUMNS])


def published() -> dict[float, tuple[float, float]]:
    """E -> alpha_N and alpha_D of the published fits (generalization, Table 5)."""
    exponents = {name: law.published for name, law in VARIANTS.items()}
    return {
        float(name.removeprefix("E")): (-values["mu"], -values["nu"])
        for name, values in exponents.items()
        if values is not None
    }


def identities(alpha_N: Any, alpha_D: Any) -> Mapping[str, Array]:
    """Every one of ``NAMES`` at two exponents; NaN where one is not above 0."""
    law = laws.get("generalization.exponents:consistency")
    a, b = (np.where(np.asarray(x, float) > 0, x, np.nan) for x in (alpha_N, alpha_D))
    return {"alpha_N": a, "alpha_D": b, **law.evaluate({}, {"alpha_N": a, "alpha_D": b})}


def warnings(frame: pd.DataFrame) -> list[str]:
    """A line for each E whose kappa is not known within a factor of two."""
    own = frame[frame["origin"] == OWN]
    loose = own[~(own["kappa_high"] < 4 * own["kappa_low"])]
    return [
        f"E={row.E:g}: kappa is {row.kappa:.3g} ({row.kappa_low:.3g} to {row.kappa_high:.3g}): "
        f"{row.n} runs do not determine both exponents"
        for row in loose.itertuples()
    ]
