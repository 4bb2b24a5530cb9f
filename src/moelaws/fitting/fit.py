"""The fit of a law to a table: its rows by group, the fit of each group, and the report of all."""

import platform
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits

from moelaws import __version__, laws
from moelaws.fitting.caveats import caveats, require_identifiable
from moelaws.fitting.cores import core_count, each, unseen
from moelaws.fitting.estimate import fit_group
from moelaws.fitting.model_selection import select
from moelaws.fitting.prediction import beyond_the_rows
from moelaws.fitting.report import FitReport, GroupFit, place
from moelaws.fitting.rollout import Progress, calibrate, within
from moelaws.fitting.rows import Rows, digest, split_rows, used_columns
from moelaws.fitting.variables import with_size
from moelaws.laws.base import FitProtocol, FittableLaw
from moelaws.laws.forms import LinearLaw
from moelaws.laws.protocol import assumed, overridden
from moelaws.spec.errors import UserError, located
from moelaws.spec.fit import Fit


def fit(
    law: FittableLaw,
    table: pd.DataFrame,
    spec: Fit,
    *,
    seed: int = 0,
    units: Mapping[str, str] = {},
    progress: Progress = unseen,
    calibrated: bool = True,
) -> FitReport:
    """Fits ``law``, or with ``spec.select`` one of its variants, to ``table`` as ``spec`` asks.

    Of the table's rows, those whose ``status`` is not ``completed`` are left out. The ``seed`` is
    that of samples of starts and of the draws, ``units`` are those that the table itself declares,
    by column, and ``progress`` is called with a stage's name, how much is done and its total. Who
    predicts nothing beyond the fitted compute can go without the fits by which such predictions'
    intervals are ``calibrated``. A UserError says what in the table or the spec cannot be fitted.
    The caller adds the table's name (``spec.errors.located``).
    """
    law, own = assumed(law, spec.fixed, spec.priors, spec.name), spec.mapping
    if spec.split_by in law.names:  # the draws have a column for each
        raise UserError(
            f"fit {spec.name}: split_by: {law.ref} has a parameter {spec.split_by}, so the column "
            "needs another name"
        )
    spec = with_size(law, table, spec)
    prepared = split_rows(law, table, spec, units)
    selection, notes = None, []
    if spec.select:
        law, selection = _selected(law, prepared, seed)
        notes.append(
            f"the form {law.variant} was chosen of {selection['candidates']} by held-out error; "
            "the intervals take it as given"
        )
    for name in spec.mapping.keys() - own.keys():
        notes.append(f"{name} is the table's column {spec.mapping[name]}")
    protocol = _protocol(law, spec)
    for rows in prepared:
        with located(_place(rows)):
            require_identifiable(law, rows.columns)
    n = len(prepared)
    # Each core takes a group, and another process shows nothing.
    stage = progress if n == 1 or core_count() == 1 else unseen

    def work(group: tuple[int, Rows]) -> tuple[GroupFit, pd.DataFrame]:
        i, rows = group
        shown = within(stage, "", f" {_place(rows)}".rstrip())
        with threadpool_limits(1):  # the matrices are small: more threads only wait for each other
            fitted, draws = fit_group(law, rows, spec, protocol, seed + i, shown)
            if calibrated:
                known = calibrate(law, rows, protocol, seed + i, fitted)
                fitted = replace(fitted, calibration=known)
                if known and not known.has_rounds:
                    fitted.notes.insert(0, beyond_the_rows(fitted))
            # Some of them speak of the calibration.
            fitted.warnings.extend(caveats(law, rows, spec, fitted))
        fitted.notes.extend(notes)
        frame = pd.DataFrame(draws, columns=list(law.names)).rename_axis("draw").reset_index()
        for column, value in rows.where.items():
            frame.insert(0, column, value)
        return fitted, frame

    fits = each(work, enumerate(prepared), n, lambda done: progress("groups", done, n))
    columns = used_columns(law, table, spec)
    packages = {name: version(name) for name in ("numpy", "scipy", "pandas")}
    return FitReport(
        law=law.ref,
        name=spec.name,
        source=source_of(table),
        split_by=spec.split_by,
        level=spec.level,
        parts=[fitted for fitted, _ in fits],
        spec=spec.model_dump(mode="json"),
        table={"digest": digest(table, columns), "columns": columns, "rows": len(table)},
        versions={"python": platform.python_version(), "moelaws": __version__} | packages,
        selection=selection,
        draws=pd.concat([draws for _, draws in fits], ignore_index=True),
    )


def _protocol(law: FittableLaw, spec: Fit) -> FitProtocol:
    """Returns how the law is fitted, and refuses what does not go together in the entry."""
    if unknown := [name for name in spec.profile if name not in law.names]:
        raise UserError(
            f"fit {spec.name}: profile: {law.ref} has no parameter {unknown[0]!r}; it has "
            f"{', '.join(law.names)}"
        )
    if spec.priors and spec.profile:
        raise UserError(f"fit {spec.name}: a profile is of the rows' likelihood; leave priors out")
    protocol = overridden(law, spec.protocol, spec.name)
    if spec.priors and protocol.objective not in ("huber", "squared"):
        raise UserError(f"fit {spec.name}: priors go with the objectives huber and squared")
    return protocol


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
        "weights": selection.weights,
        "ranked": [vars(candidate) for candidate in selection.ranked[:10]],
        "simplest_within_one_standard_error": selection.simplest.name,
    }


def source_of(table: pd.DataFrame) -> str:
    """Returns where the losses come from: imported, if the table does not say it in our words."""
    said = set(table["source"].dropna().astype(str)) if "source" in table else set()
    words = {word for text in said for word in text.split("+")}
    ours = {"trained", "simulated", "imported"}
    return "+".join(sorted(said)) if said and words <= ours else "imported"


def _place(rows: Rows) -> str:
    return f"at {place(rows.where)}" if rows.where else ""
