"""The size of base model at which routing stops helping, by each fit of Eq 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from moelaws import laws
from moelaws.analysis.derive import table
from moelaws.analysis.fitted import FittedInputs
from moelaws.fitting.quantiles import percentiles
from moelaws.laws.clark.routing import STATED_CUTOFFS, log10_cutoff
from moelaws.studies.routing.routers import ROUTERS
from moelaws.tables.column import Column


@table(
    Column("router", "string", "1", "routing technique"),
    Column("objective", "string", "1", "of the fit: squared is the paper's, huber is ours"),
    Column("n", "int", "runs", "fitted runs, the dense ones among them"),
    Column("log10_N", "float", "1", "log10 of the size at which routing stops helping, -b/c"),
    Column("level", "float", "1", "of its interval"),
    Column("low", "float", "1", "lower end of its interval, by the fit's draws"),
    Column("high", "float", "1", "upper end of its interval; infinite where c is not above 0"),
    Column("printed", "float", "1", "the same by b and c as the paper prints them"),
    Column("stated", "float", "1", "the same as the paper's text states it"),
)
def derive(inputs: FittedInputs) -> Iterator[dict[str, Any]]:
    """Yields one row a fit of Eq 1, by router and objective."""
    for router in ROUTERS:
        for fit in (router.fit, router.huber):
            report, draws = inputs.fit(fit), inputs.draws(fit)
            drawn = log10_cutoff({name: draws[name].to_numpy() for name in ("b", "c")})
            low, high = percentiles(drawn, report.level, method="inverted_cdf")
            law, part = laws.fittable(report.law), report.part({})
            yield {
                "router": router.name,
                "objective": inputs.spec(fit).protocol.get("objective", law.protocol.objective),
                "n": part.n,
                "log10_N": float(log10_cutoff(part.estimates())),
                "level": report.level,
                "low": low,
                "high": high,
                "printed": float(log10_cutoff(law.published or {})),
                "stated": float(np.log10(STATED_CUTOFFS[router.variant])),
            }
