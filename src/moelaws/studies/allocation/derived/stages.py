"""The paper's second stage fits the coefficients of r* at each sparsity over 1 - S."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.fitting.fit import fit
from moelaws.fitting.report import estimates_table
from moelaws.spec.errors import UserError, located
from moelaws.spec.fit import Fit
from moelaws.studies.allocation.laws import ratio
from moelaws.tables.column import Column

LAWS = {"alpha_r": ratio.VARIANTS["stage2_alpha"], "beta_r": ratio.VARIANTS["stage2_beta"]}


@table(
    Column("selection", "string", "1", "the fit whose r* stand behind it: raw or adjusted"),
    Column("coefficient", "string", "1", "of r* = alpha_r C^beta_r: alpha_r or beta_r"),
    Column("parameter", "string", "1", "prefactor, or exponent of 1 - S"),
    Column("estimate", "float", "1", "from the coefficient at each sparsity", True),
    Column("low", "float", "1", "lower end of its interval", True),
    Column("high", "float", "1", "upper end of its interval", True),
    Column("published", "float", "1", "the paper's value"),
    Column("level", "float", "1", "coverage of the interval"),
    Column("n", "int", "1", "sparsities that it rests on"),
    Column("note", "string", "1", "what was left out, or why there is no estimate"),
)
def derive(inputs: FittedInputs) -> Rows:
    """Fits lines of ln alpha_r and ln beta_r in ln(1 - S), for each declared fit split by S.

    A beta_r that is not positive has no logarithm: it is left out, and the note says so. Intervals
    are Student's t of the line's residuals. Source: allocation, sec 3.3 and Fig 2b, 2c.
    """
    return [record for name in sorted(inputs.fits) for record in _of_fit(inputs, name)]


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Names each coefficient of which something was left out."""
    noted = frame[frame["note"] != ""].drop_duplicates(["selection", "coefficient"])
    return [
        f"{row.coefficient} over 1-S ({row.selection}): {row.note}" for row in noted.itertuples()
    ]


def _of_fit(inputs: FittedInputs, name: str) -> Iterator[dict[str, Any]]:
    report = inputs.fit(name)
    table = estimates_table(report)
    for coefficient, law in LAWS.items():
        positive = table[table[coefficient] > 0]
        dropped = len(table) - len(positive)
        note = f"{dropped} of {len(table)} sparsities have {coefficient} <= 0" if dropped else ""
        spec = Fit(name=f"{name}_{coefficient}", law=law.ref, mapping={}, level=report.level)
        params: dict[str, Any] = {}
        try:
            with located("table"):
                params = dict(fit(law, positive, spec).parts[0].params)
        except UserError as error:
            note = "; ".join(filter(None, (note, str(error))))
        for parameter in law.names:
            estimate = params.get(parameter)
            yield {
                "selection": name.removeprefix("ratio_"),
                "coefficient": coefficient,
                "parameter": parameter,
                "estimate": estimate.estimate if estimate else None,
                "low": estimate.low if estimate else None,
                "high": estimate.high if estimate else None,
                "published": (law.published or {})[parameter],
                "level": report.level,
                "n": len(positive),
                "note": note,
            }
