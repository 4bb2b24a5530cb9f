"""Fit a law to a table: rows, optimum, intervals, diagnostics, report."""

from __future__ import annotations

import platform
from importlib.metadata import version

import numpy as np
import pandas as pd

from moelaws.fitting.diagnostics import criteria, errors, require_identifiable
from moelaws.fitting.intervals import percentiles
from moelaws.fitting.report import Estimate, FitPart, FitReport
from moelaws.fitting.rows import Rows, digest, parts, used_columns
from moelaws.fitting.solve import Progress, Solved, solve
from moelaws.laws.base import Array, Law, Protocol
from moelaws.laws.protocol import overridden
from moelaws.spec.study import Fit


def fit(
    law: Law,
    table: pd.DataFrame,
    spec: Fit,
    *,
    seed: int = 0,
    label: str = "table",
    progress: Progress = lambda stage, done, total: None,
) -> FitReport:
    """Fit ``law`` to ``table`` as ``spec`` asks.

    Args:
        law: what to fit.
        table: one row a run; rows whose ``status`` is not ``completed`` are left out. Replicated
            seeds are rows of their own.
        spec: mapping, rows, split, hold-out, protocol overrides, bootstrap, level.
        seed: of the sample of starts and of the bootstrap.
        label: the table's name in messages.
        progress: called with the stage's name, what is done of it and its total.

    Raises:
        UserError: for anything in the table or the spec that cannot be fitted; see ``rows.parts``.
    """
    protocol = overridden(law, spec.protocol, spec.name)
    prepared = parts(law, table, spec, label)
    for rows in prepared:
        require_identifiable(law, rows.columns, label + _at(rows))
    found = []
    for i, rows in enumerate(prepared):

        def shown(stage: str, done: int, total: int, at: str = _at(rows)) -> None:
            progress(stage + at, done, total)

        solved = solve(law, rows, spec, protocol, seed + i, shown)
        found.append((_part(law, rows, spec, protocol, solved), law.natural(solved.draws)))
    columns = used_columns(law, table, spec)
    return FitReport(
        law=law.id,
        name=spec.name,
        source=_source(table),
        split_by=spec.split_by,
        level=spec.level,
        parts=[part for part, _ in found],
        spec=spec.model_dump(mode="json"),
        table={"digest": digest(table, columns), "columns": columns, "rows": len(table)},
        versions={
            "python": platform.python_version(),
            **{name: version(name) for name in ("moelaws", "numpy", "scipy", "pandas")},
        },
        draws=pd.concat(
            [_draws_frame(law, part, draws) for part, draws in found], ignore_index=True
        ),
    )


def _part(law: Law, rows: Rows, spec: Fit, protocol: Protocol, solved: Solved) -> FitPart:
    params = dict(zip(law.names, law.natural(solved.theta).tolist(), strict=True))
    low, high = percentiles(law.natural(solved.draws), spec.level)
    predicted = law.predict(params, rows.columns)
    n, P = len(rows.response), len(law.names)
    holdout = None
    if len(rows.held_response):
        held = law.predict(params, rows.held_columns)
        holdout = errors(rows.held_response, held, protocol.delta)
    warnings = list(solved.warnings)
    for p, least, most in zip(law.parameters, low, high, strict=True):
        if least <= p.low + 1e-6 * abs(p.low) or most >= p.high - 1e-6 * abs(p.high):
            warnings.append(
                f"the interval of {p.name} reaches its bound: these rows do not hold it"
            )
    if n < 3 * P:
        warnings.append(f"{n} rows for {P} parameters: few; intervals may be too narrow")
    if spec.holdout and holdout is None:
        warnings.append(f"holdout {spec.holdout!r} selects no row here")
    return FitPart(
        where=rows.where,
        n=n,
        objective=solved.objective,
        converged=solved.converged,
        params={
            name: Estimate(params[name], _or_none(low[i]), _or_none(high[i]))
            for i, name in enumerate(law.names)
        },
        metrics=errors(rows.response, predicted, protocol.delta)
        | criteria(rows.response, predicted, P, protocol.delta),
        holdout=holdout,
        diagnostics=solved.diagnostics
        | {"bootstrap": {"asked": spec.bootstrap, "draws": len(solved.draws)}},
        left_out=rows.left_out,
        warnings=warnings,
    )


def _draws_frame(law: Law, part: FitPart, draws: Array) -> pd.DataFrame:
    frame = pd.DataFrame(draws, columns=list(law.names))
    frame.insert(0, "draw", np.arange(len(frame)))
    for column, value in part.where.items():
        frame.insert(0, column, value)
    return frame


def _source(table: pd.DataFrame) -> str:
    """Where the losses come from; a table that does not say is somebody else's."""
    if "source" not in table.columns:
        return "imported"
    return "+".join(sorted(table["source"].dropna().astype(str).unique())) or "imported"


def _at(rows: Rows) -> str:
    return "".join(f" at {column} = {value:.6g}" for column, value in rows.where.items())


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
