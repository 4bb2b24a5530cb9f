"""Laws side by side: the same rows, the same hold-out, one table of what each achieves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from moelaws.fitting.fit import fit
from moelaws.fitting.identifiability import require_determined
from moelaws.fitting.intervals import percentiles
from moelaws.fitting.prediction import of_draws
from moelaws.fitting.report import FitReport
from moelaws.fitting.rows import Rows, split_rows
from moelaws.laws.base import Array, FittableLaw
from moelaws.laws.vocabulary import VOCABULARY
from moelaws.spec.errors import UserError
from moelaws.spec.study import Fit


class _Fitted(NamedTuple):
    law: FittableLaw
    rows: Rows
    report: FitReport
    entry: dict[str, Any]


def compare(
    candidates: Sequence[FittableLaw],
    table: pd.DataFrame,
    spec: Fit,
    *,
    seed: int = 0,
    units: Mapping[str, str] = {},
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Fits each of ``candidates`` to the same rows of ``table`` as ``spec`` asks.

    ``spec.law`` is not read; a mapping holds for those laws that have the variable.

    Returns the laws that were fitted, best held-out (else AIC) first, and for each law that was
    refused, why. Of each of the first:
        law, n, n_params, converged, params (as of a fit), r2, rmse, aic, bic and their excess over
        the least, warnings; and where rows are held out, ``holdout``: n, r2, rmse with its
        interval, and ``rmse_excess`` over the first law's with its interval. Those intervals
        resample the held-out rows, the same for all laws, and the parameters' draws.

    Raises:
        UserError: for fewer than two laws, laws of different responses, and where every law is
            refused.
    """
    _check(candidates, spec)
    fitted: list[_Fitted] = []
    refused: dict[str, str] = {}
    for law in candidates:

        def shown(stage: str, done: int, total: int, name: str = law.ref) -> None:
            progress(f"{name}: {stage}", done, total)

        own = _own(law, spec)
        try:
            rows = split_rows(law, table, own, units)[0]
            report = fit(law, table, own, seed=seed, units=units, progress=shown)
            if spec.holdout:
                params = report.parts[0].estimates()
                require_determined(law, params, rows.columns, rows.held_columns)
        except UserError as error:
            refused[law.ref] = str(error)
        else:
            fitted.append(_Fitted(law, rows, report, _entry(report)))
    if not fitted:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        raise UserError(f"no law can be fitted; {reasons}")
    entries = [one.entry for one in fitted]
    for criterion in ("aic", "bic"):
        values = [entry[criterion] for entry in entries if entry[criterion] is not None]
        for entry in entries:
            value = entry[criterion]
            entry[f"{criterion}_excess"] = None if value is None else value - min(values)
    if spec.holdout:
        _held_out(fitted, seed)
    return sorted(entries, key=_rank), refused


def _check(candidates: Sequence[FittableLaw], spec: Fit) -> None:
    refs = [law.ref for law in candidates]
    if len(set(refs)) < 2:
        raise UserError(
            f"--laws names {', '.join(refs) or 'no law'}; a comparison needs at least two laws"
        )
    if len(set(refs)) < len(refs):
        raise UserError(f"--laws names a law twice: {', '.join(refs)}")
    if len({(law.response.name, law.response.unit) for law in candidates}) > 1:
        responses = ", ".join(f"{law.ref}: {law.response.name}" for law in candidates)
        raise UserError(
            f"these laws predict different quantities and cannot be compared ({responses})"
        )
    if spec.split_by or spec.select or spec.rollout:
        raise UserError("a comparison takes no split_by, select or rollout")
    variables = {v.name for law in candidates for v in (*law.variables, law.response)}
    for name in spec.mapping:
        if name not in variables and name not in VOCABULARY:
            raise UserError(
                f"mapping: {name!r} is not a variable of any of {', '.join(refs)}; they have "
                f"{', '.join(sorted(variables))}"
            )


def _own(law: FittableLaw, spec: Fit) -> Fit:
    """The entry for one of the laws: what of the mapping concerns it."""
    known = {v.name for v in (*law.variables, law.response)} | set(VOCABULARY)
    mapping = {name: column for name, column in spec.mapping.items() if name in known}
    units = {name: word for name, word in spec.units.items() if name in known}
    return spec.model_copy(update={"law": law.ref, "mapping": mapping, "units": units})


def _entry(report: FitReport) -> dict[str, Any]:
    (part,) = report.parts
    metrics = part.metrics
    return {
        "law": report.law,
        "n": part.n,
        "n_params": len(part.params),
        "converged": part.converged,
        "params": {name: vars(p) for name, p in part.params.items()},
        **{name: metrics[name] for name in ("r2", "rmse", "aic", "bic")},
        "holdout": None,
        "warnings": list(part.warnings),
    }


def _held_out(fitted: Sequence[_Fitted], seed: int) -> None:
    """Fill each entry's ``holdout``; without draws of its parameters a law has no intervals."""
    squares: dict[str, Array] = {}  # of each law with draws: (draws, held-out rows)
    for law, rows, report, entry in fitted:
        (part,) = report.parts
        assert part.holdout is not None
        entry["holdout"] = {name: part.holdout[name] for name in ("n", "r2", "rmse")}
        assert report.draws is not None
        draws = report.draws[list(law.names)].to_numpy()
        if len(draws):
            predicted = of_draws(law, draws, rows.held_columns)
            squares[law.ref] = (predicted - rows.held_response) ** 2
    entries = [one.entry for one in fitted]
    best = min(entries, key=lambda entry: entry["holdout"]["rmse"])
    count, held = min(map(len, squares.values()), default=0), best["holdout"]["n"]
    resample = np.random.default_rng(seed).integers(held, size=(count, held))
    rmse = {
        ref: np.sqrt(np.take_along_axis(s[:count], resample, axis=1).mean(axis=1))
        for ref, s in squares.items()
    }
    for entry in entries:
        own, ref, level = entry["holdout"], entry["law"], fitted[0].report.level
        own["rmse_excess"] = own["rmse"] - best["holdout"]["rmse"]
        if ref in rmse:
            own["rmse_interval"] = _interval(rmse[ref], level)
        if ref in rmse and best["law"] in rmse:
            own["rmse_excess_interval"] = _interval(rmse[ref] - rmse[best["law"]], level)


def _interval(values: Array, level: float) -> list[float]:
    low, high = percentiles(values[:, None], level)
    return [float(low[0]), float(high[0])]


def _rank(entry: Mapping[str, Any]) -> tuple[float, float]:
    held = entry["holdout"]
    aic = entry["aic"]
    return (held["rmse"] if held else 0.0, np.inf if aic is None else aic)
