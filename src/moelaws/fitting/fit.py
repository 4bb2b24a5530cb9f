"""The fit of a law to a table: its rows by group, the fit of each group, and the report of all."""

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from moelaws import laws
from moelaws.fitting.caveats import require_identifiable
from moelaws.fitting.cores import cores_at_work
from moelaws.fitting.descent import descend
from moelaws.fitting.estimate import Progress, fit_group, roll_out
from moelaws.fitting.model_selection import select
from moelaws.fitting.problem import SECOND, descents, problem
from moelaws.fitting.report import FitReport, GroupFit, place
from moelaws.fitting.rows import Rows, digest, split_rows, used_columns
from moelaws.laws.base import FitProtocol, FittableLaw
from moelaws.laws.forms import LinearLaw
from moelaws.laws.protocol import overridden
from moelaws.records.progress import announce, duration
from moelaws.spec.errors import UserError, located
from moelaws.spec.fit import Fit

# The cost of a fit is estimated from the time that a few starts take to descend over a few rows.
MEASURED_ABOVE = 5e6  # rows times descents: a smaller fit takes some twenty seconds at most
SAID_ABOVE = 60.0  # seconds
ROWS, STARTS = 1000, 64  # of the sample that is timed
REFIT = 0.6  # time of a refit, which begins near its end, over that of a descent from a start
PATH = 3.0  # factor for refits whose objective is reached by way of smoother ones
SLOWER = 2.0  # factor for a whole fit, since only the sample fits into the processor's cache
PROFILE = 100  # descents for the profile of a parameter
EFFICIENCY = 0.8  # of each further core


def fit(
    law: FittableLaw,
    table: pd.DataFrame,
    spec: Fit,
    *,
    seed: int = 0,
    units: Mapping[str, str] = {},
    progress: Progress = lambda stage, done, total: None,
) -> FitReport:
    """Fits ``law`` to ``table`` as ``spec`` asks.

    Args:
        law: what to fit; with ``spec.select``, one of whose variants is chosen.
        table: one row a run; rows whose ``status`` is not ``completed`` are left out.
        spec: mapping, units, rows, split, hold-out, protocol overrides, intervals.
        seed: of samples of starts and of the draws.
        units: those that the table itself declares, by column.
        progress: called with the stage's name, how much of it is done and its total.

    Raises:
        UserError: for anything in the table or the spec that cannot be fitted. The caller adds the
            table's name (``spec.errors.located``).
    """
    if spec.rollout and spec.holdout:
        raise UserError(f"rollout holds out the rows above each {spec.rollout}; leave holdout out")
    prepared = split_rows(law, table, spec, units)
    selection = None
    if spec.select:
        law, selection = _selected(law, prepared, seed)
    if unknown := [name for name in spec.profile if name not in law.names]:
        raise UserError(
            f"fit {spec.name}: profile: {law.ref} has no parameter {unknown[0]!r}; it has "
            f"{', '.join(law.names)}"
        )
    protocol = overridden(law, spec.protocol, spec.name)
    for rows in prepared:
        with located(_place(rows)):
            require_identifiable(law, rows.columns)
    _announce_cost(law, prepared, spec, protocol, seed)
    fits = [
        _fit_rows(law, rows, spec, protocol, seed + i, progress) for i, rows in enumerate(prepared)
    ]
    if selection is not None:
        chosen = f"the form {law.variant} was chosen of {selection['candidates']} by held-out error"
        for fitted, _ in fits:
            fitted.notes.append(f"{chosen}; the intervals take it as given")
    columns = used_columns(law, table, spec)
    packages = {name: version(name) for name in ("moelaws", "numpy", "scipy", "pandas")}
    return FitReport(
        law=law.ref,
        name=spec.name,
        source=source_of(table),
        split_by=spec.split_by,
        level=spec.level,
        parts=[fitted for fitted, _ in fits],
        spec=spec.model_dump(mode="json"),
        table={"digest": digest(table, columns), "columns": columns, "rows": len(table)},
        versions={"python": platform.python_version()} | packages,
        selection=selection,
        draws=pd.concat([draws for _, draws in fits], ignore_index=True),
    )


def _fit_rows(
    law: FittableLaw, rows: Rows, spec: Fit, protocol: FitProtocol, seed: int, progress: Progress
) -> tuple[GroupFit, pd.DataFrame]:
    """Returns the fit of one group of rows, and its draws with the split column's value."""

    def shown(stage: str, done: int, total: int) -> None:
        progress(f"{stage} {_place(rows)}".strip(), done, total)

    with threadpool_limits(1):  # the matrices are small: more threads only wait for each other
        fitted, draws = fit_group(law, rows, spec, protocol, seed, shown)
        if spec.rollout:
            fitted.rollout.extend(roll_out(law, rows, spec.rollout, protocol, seed, shown))
    frame = pd.DataFrame(draws, columns=list(law.names))
    frame.insert(0, "draw", np.arange(len(frame)))
    for column, value in rows.where.items():
        frame.insert(0, column, value)
    return fitted, frame


def _selected(
    law: FittableLaw, prepared: list[Rows], seed: int
) -> tuple[FittableLaw, dict[str, Any]]:
    """Returns the law's variant of least cross-validated error over all groups, and the ranking."""
    forms = laws.variants(law.id)
    candidates = {name: form for name, form in forms.items() if isinstance(form, LinearLaw)}
    if not candidates or len(candidates) < len(forms):
        raise UserError(
            f"select: {law.id} has no forms to choose among by cross-validation; "
            "sparsity.isoflop has"
        )
    selection = select(candidates, [(rows.columns, rows.response) for rows in prepared], seed)
    return candidates[selection.best.name], {
        "candidates": len(candidates),
        "unidentified": len(selection.unidentified),
        "ranked": [vars(candidate) for candidate in selection.ranked[:10]],
        "simplest_within_one_standard_error": selection.simplest.name,
    }


def source_of(table: pd.DataFrame) -> str:
    """Returns where the losses come from; a table that does not say was imported."""
    if "source" not in table.columns:
        return "imported"
    return "+".join(sorted(table["source"].dropna().astype(str).unique())) or "imported"


def _place(rows: Rows) -> str:
    return f"at {place(rows.where)}" if rows.where else ""


def _announce_cost(
    law: FittableLaw, prepared: Sequence[Rows], spec: Fit, protocol: FitProtocol, seed: int
) -> None:
    """Announces the duration of a fit of over a minute; a UserError refuses over ``max_hours``."""
    with threadpool_limits(1):  # as the fit itself
        seconds = sum(_seconds(law, rows, spec, protocol, seed) for rows in prepared)
    seconds /= 1 + EFFICIENCY * (cores_at_work() - 1)
    if seconds < SAID_ABOVE:
        return
    n, starts = sum(len(rows.response) for rows in prepared), _starts(law, protocol)
    takes = f"fitting {law.ref} to {n:,} rows takes about {duration(seconds)} on this machine"
    shorter = f"a lower bootstrap (now {spec.bootstrap:,} refits) or sample (now {starts:,} starts)"
    if seconds > 3600 * spec.max_hours:
        raise UserError(
            f"{takes}; max_hours allows {spec.max_hours:g} h. Choose {shorter}, or fewer rows, or "
            "a higher max_hours"
        )
    announce(f"{takes}; shorter by {shorter}, or fewer rows")


def _starts(law: FittableLaw, protocol: FitProtocol) -> int:
    return 1 if isinstance(law, LinearLaw) else protocol.n_run


def _seconds(law: FittableLaw, rows: Rows, spec: Fit, protocol: FitProtocol, seed: int) -> float:
    """Estimates how long the fit to ``rows`` takes; 0 where that is too short to measure."""
    n, sample = len(rows.response), min(STARTS, protocol.sample or STARTS)
    pruned, whole = descents(_starts(law, protocol))
    refits = REFIT * (0 if spec.uses_student(protocol.objective, rows.blocks) else spec.bootstrap)
    if n * (pruned + whole + refits) < MEASURED_ABOVE:
        return 0.0
    task = problem(law, rows, replace(protocol, sample=sample), seed)
    path = task.path()
    some = path[0].rows(np.linspace(0, n - 1, min(n, ROWS)).astype(np.intp))
    began = time.perf_counter()
    theta, value = descend(some, task.starts, task.bounds, SECOND[0])
    middle = time.perf_counter()
    best = theta[np.argsort(value)[: max(1, len(theta) // 8)]]
    descend(some, best, task.bounds)
    of_whole = (time.perf_counter() - middle) / (len(best) * some.model.n)
    of_pruned = (middle - began) / (len(theta) * some.model.n)
    rolled = 4.0 if spec.rollout else 0.0  # eight fits of half the rows
    refits = refits * (PATH if len(path) > 1 else 1.0) + PROFILE * len(spec.profile)
    return SLOWER * n * ((1 + rolled) * (pruned * of_pruned + whole * of_whole) + refits * of_whole)
