"""Tables that any study may print: ``code: moelaws.figures.general:errors``."""

from collections.abc import Iterable, Mapping

import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.figures.tabular import Tabular
from moelaws.laws.protocol import overridden
from moelaws.spec.errors import UserError, or_nearest


def columns(inputs: FittedInputs, table: str, columns: Mapping[str, str]) -> Tabular:
    """Sets ``columns`` of a derived ``table``, each below its heading.

    A UserError refuses a column that the table lacks.
    """
    rows = inputs.derived(table)
    for name in columns:
        if name not in rows:
            near = or_nearest(name, map(str, rows), "it has")
            raise UserError(f"columns: the table {table} has no column {name!r}{near}")
    return Tabular(rows[[*columns]].rename(columns=columns))


def errors(inputs: FittedInputs) -> Tabular:
    """Sets the errors of all declared fits on the fitted and on the held-out runs."""
    return Tabular(inputs.errors().dropna(axis="columns", how="all"))


def starts(inputs: FittedInputs, fit: str) -> Tabular:
    """Sets the values from which a ``fit`` starts, and how many starts reached the optimum."""
    report, spec, law = inputs.fit(fit), inputs.spec(fit), inputs.law(fit)
    protocol = overridden(law, spec.protocol, fit)
    rows = [
        {
            "Parameter": f"ln {p.name}" if p.scale == "log" else p.name,
            "Paper": listed(law.protocol.grid[p.name]),
            "This fit": listed(protocol.grid[p.name]),
        }
        for p in law.parameters
    ]
    notes = [f"The grid has {protocol.n_starts:,} starts."]
    if search := report.group({}).diagnostics.starts:
        notes.append(
            f"{search.run:,} were run here, {search.survived:,} to the end: "
            f"{search.reached:,} of these reached the optimum."
        )
    return Tabular(pd.DataFrame(rows), notes=notes)


def listed(values: Iterable[float]) -> str:
    """Returns numbers as a table shows them, one by one."""
    return ", ".join(f"{value:.4g}" for value in values)
