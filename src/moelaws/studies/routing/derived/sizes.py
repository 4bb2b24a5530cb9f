"""The coefficients of Eq 1 with intervals by which base sizes there are.

Eq 1 misses the losses in a way that depends on the base size: residuals of one size err together,
and Student's t of independent residuals is too sure. Here each fit is made anew without one of the
base sizes, for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from moelaws import laws
from moelaws.analysis.derive import table
from moelaws.analysis.fitted import FittedInputs
from moelaws.fitting.fit import fit
from moelaws.fitting.quantiles import jackknife
from moelaws.laws.base import Array
from moelaws.laws.clark.routing import log10_cutoff
from moelaws.studies.routing.routers import CUTOFF, ROUTERS
from moelaws.tables.column import Column


@table(
    Column("router", "string", "1", "routing technique"),
    Column("quantity", "string", "1", "coefficient of Eq 1, or log10 of the cut-off -b/c"),
    Column("sizes", "int", "1", "base sizes, each of which is left out once"),
    Column("estimate", "float", "1", "by all sizes"),
    Column("low", "float", "1", "lower end of the jackknife interval over base sizes", True),
    Column("high", "float", "1", "upper end of it", True),
)
def derive(inputs: FittedInputs) -> Iterator[dict[str, Any]]:
    """Yields one row a router and quantity; coefficients vary on the scale that the law works on.

    The interval of the cut-off is endless where a refit has none (c not above 0).
    """
    for router in ROUTERS:
        report, rows = inputs.fit(router.fit), inputs.rows(router.fit)
        law = laws.fittable(report.law)
        once = inputs.spec(router.fit).model_copy(update={"profile": ()})

        def quantities(params: dict[str, float], law: Any = law) -> Array:
            return np.append(law.vector(params), log10_cutoff(params))

        sizes = sorted(rows["N_dense"].unique())
        others = [fit(law, rows[rows["N_dense"] != size], once) for size in sizes]
        whole = quantities(report.part({}).estimates())
        left_out = np.array([quantities(other.part({}).estimates()) for other in others])
        low, high = jackknife(whole, left_out, report.level)
        P = len(law.names)
        columns = {
            name: np.append(law.natural(values[:P]), values[P])
            for name, values in (("estimate", whole), ("low", low), ("high", high))
        }
        for place, quantity in enumerate((*law.names, CUTOFF)):
            ends = {name: float(values[place]) for name, values in columns.items()}
            yield {"router": router.name, "quantity": quantity, "sizes": len(sizes), **ends}
