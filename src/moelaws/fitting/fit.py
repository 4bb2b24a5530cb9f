"""Fit a law to a table: rows, optimum, intervals, diagnostics, report."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from moelaws import laws
from moelaws.fitting import estimate
from moelaws.fitting.identifiability import require_identifiable
from moelaws.fitting.model_selection import select
from moelaws.fitting.report import FitPart, FitReport
from moelaws.fitting.rollout import roll_out
from moelaws.fitting.rows import Rows, digest, parts, used_columns
from moelaws.laws.base import Array, FittableLaw
from moelaws.laws.kinds import LinearLaw
from moelaws.laws.protocol import overridden
from moelaws.spec.errors import UserError
from moelaws.spec.study import Fit

Progress = Callable[[str, int, int], None]  # stage, done, total


def fit(
    law: FittableLaw,
    table: pd.DataFrame,
    spec: Fit,
    *,
    seed: int = 0,
    label: str = "table",
    units: Mapping[str, str] = {},
    progress: Progress = lambda stage, done, total: None,
) -> FitReport:
    """Fit ``law`` to ``table`` as ``spec`` asks.

    Args:
        law: what to fit; with ``spec.select``, one of whose variants is chosen.
        table: one row a run; rows whose ``status`` is not ``completed`` are left out. Replicated
            seeds are rows of their own.
        spec: mapping, units, rows, split, hold-out, protocol overrides, intervals.
        seed: of samples of starts and of the draws.
        label: the table's name in messages.
        units: those that the table itself declares, by column.
        progress: called with the stage's name, what is done of it and its total.

    Raises:
        UserError: for anything in the table or the spec that cannot be fitted; see ``rows.parts``.
    """
    if spec.rollout and spec.holdout:
        raise UserError(
            f"{label}: rollout holds out the rows above each {spec.rollout}; leave holdout out"
        )
    prepared = parts(law, table, spec, label, units)
    selection = None
    if spec.select:
        law, selection = _selected(law, prepared, seed)
    for name in spec.profile:
        if name not in law.names:
            raise UserError(
                f"fit {spec.name}: profile: {law.ref} has no parameter {name!r}; it has "
                f"{', '.join(law.names)}"
            )
    protocol = overridden(law, spec.protocol, spec.name)
    for rows in prepared:
        require_identifiable(law, rows.columns, label + _at(rows))
    found: list[tuple[FitPart, Array]] = []
    for i, rows in enumerate(prepared):

        def shown(stage: str, done: int, total: int, at: str = _at(rows)) -> None:
            progress(stage + at, done, total)

        with threadpool_limits(1):  # the matrices are small: more threads only wait for each other
            part, draws = estimate.fit_part(law, rows, spec, protocol, seed + i, shown)
            if spec.rollout:
                cut = (spec.rollout, protocol, label, seed + i)
                part.rollout.extend(roll_out(law, rows, *cut, shown))
        found.append((part, draws))
    columns = used_columns(law, table, spec)
    return FitReport(
        law=law.ref,
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
        selection=selection,
        draws=pd.concat(
            [_draws_frame(law, part, draws) for part, draws in found], ignore_index=True
        ),
    )


def _selected(
    law: FittableLaw, prepared: list[Rows], seed: int
) -> tuple[FittableLaw, dict[str, Any]]:
    """The law's variant of least cross-validated error, common to all parts."""
    forms = laws.variants(law.id)
    candidates = {name: form for name, form in forms.items() if isinstance(form, LinearLaw)}
    if not candidates or len(candidates) < len(forms):
        raise UserError(
            f"select: {law.id} has no forms to choose among by cross-validation; "
            "sparsity.isoflop has"
        )
    found = select(candidates, [(rows.columns, rows.response) for rows in prepared], seed)
    return candidates[found.best.name], {
        "candidates": len(candidates),
        "unidentified": len(found.unidentified),
        "ranked": [vars(candidate) for candidate in found.ranked[:10]],
        "simplest_within_one_standard_error": found.simplest.name,
    }


def _draws_frame(law: FittableLaw, part: FitPart, draws: Array) -> pd.DataFrame:
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
