"""Table 5: exponents for each number of experts, and how far they are from the theory's identities.

The own exponents come from a Chinchilla fit for each E.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from moelaws.analysis.derive import table
from moelaws.analysis.fitted import FittedInputs
from moelaws.studies.generalization.derived.consistency import (
    OWN,
    PUBLISHED,
    QUANTITIES,
    consistency,
    published,
)
from moelaws.studies.generalization.derived.draws import estimates, with_interval
from moelaws.tables.column import Column


@table(
    Column("origin", "string", "1", "own: of the runs; published: the paper's Table 5"),
    Column("E", "float", "experts", "experts of a layer"),
    *(
        Column(f"{name}{end}", "float", "1", f"{name}{text}, as in generalization, Table 5", True)
        for name in QUANTITIES
        for end, text in (("", ""), ("_low", ": lower end"), ("_high", ": upper end"))
    ),
    Column("level", "float", "1", "coverage of the intervals"),
    Column("n", "int", "1", "runs behind a row; 0 for the published ones"),
)
def derive(inputs: FittedInputs) -> Iterator[dict[str, Any]]:
    """Gives a row for each number of experts of the fit by_experts, then the published ones.

    A row whose exponents are not above 0 has no identities: its cells are missing.
    """
    fits = estimates(inputs, "by_experts")
    for fit in fits:
        point = consistency(fit.params["alpha"], fit.params["beta"])
        drawn = consistency(fit.draws["alpha"], fit.draws["beta"])
        row = {"origin": OWN, "E": fit.result.where["M"], "level": fit.level, "n": fit.result.n}
        for name in QUANTITIES:
            row |= with_interval(name, point[name], drawn[name], fit.level)
        yield row
    for E, pair in published().items():
        numbers = {name: float(value) for name, value in consistency(*pair).items()}
        yield {"origin": PUBLISHED, "E": E, **numbers, "level": fits[0].level, "n": 0}


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Gives a line for each E whose kappa is not known within a factor of two either way."""
    own = frame[frame["origin"] == OWN]
    loose = own[~(own["kappa_high"] < 4 * own["kappa_low"])]
    return [
        f"E={row.E:g}: kappa is {row.kappa:.3g} ({row.kappa_low:.3g} to {row.kappa_high:.3g}): "
        f"{row.n} runs do not determine both exponents"
        for row in loose.itertuples()
    ]
