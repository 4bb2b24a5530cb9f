"""The fits of losses: laws on grids, between whose points the page interpolates, and isoFLOPs."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.minimum import percentile_interval
from moelaws.explore.material import Data, Material, shortened
from moelaws.explore.runs import Runs
from moelaws.explore.studies import source_of
from moelaws.fitting.diagnostics import Residuals
from moelaws.fitting.prediction import of_draws, predict
from moelaws.fitting.report import FitReport, GroupFit, group_draws, read_fit
from moelaws.fitting.rows import selected_rows
from moelaws.fitting.variables import read_variables
from moelaws.laws.base import AT_LEAST_1, FRACTION, SPARSITY, Array, FittableLaw, Mask, Variable
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit
from moelaws.spec.study import Study
from moelaws.tables.foreign import read_any

LOSS_UNIT = "nats/token"
MAX_DRAWS = 200
BEYOND = 1.5  # a grid ends at this factor below and above the values that were measured
MAX_VARIABLES = 4  # at most so many variables have a grid; the others are held at their medians
# Of a grid over all of its variables: the error on the published runs is at most 0.008 nats.
MAX_POINTS = 8000
FINEST = 61  # points of one variable, and of an isoFLOP curve
BUDGET = "C"


@dataclass(frozen=True)
class LossFit:
    """A law of the loss fitted to rows of a study."""

    study: Study
    path: Path  # of the report
    report: FitReport
    law: FittableLaw  # the form that was fitted
    spec: Fit  # the study's entry of the fit
    table: pd.DataFrame  # the rows (n,) that the fit read, used or not
    row: list[int | None]  # (n,) row of the run on the page; None if the table does not name one
    values: Mapping[str, Array]  # variable and response -> (n,), NaN where the table has none
    sources: Mapping[str, str]  # variable -> the table's column that it is read from

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Returns the law's variables that the table gives."""
        return tuple(v for v in self.law.variables if v.name in self.values)

    def rows(self, group: GroupFit) -> tuple[Mask, Mask]:
        """Returns which rows (n,) a group was fitted to, and which of it were held out."""
        return selected_rows(self.table, self.law, self.spec, group.where)

    def predicted(
        self, group: GroupFit, columns: Mapping[str, Array]
    ) -> tuple[Array, Array, Array]:
        """Returns a group's predictions (n,) at ``columns``, and the ends of their mean's interval.

        The interval is that of at most ``MAX_DRAWS`` draws, evenly chosen; NaN without any.
        """
        drawn = group_draws(self.path, self.report, group)
        every = max(1, math.ceil(len(drawn) / MAX_DRAWS))
        of_mean = replace(group, residuals=Residuals())  # no interval of a new observation is shown
        with np.errstate(all="ignore"):  # a fit that its rows hardly determine may overflow
            at = predict(self.law, of_mean, drawn[::every], columns, self.report.level)
        return at.value, at.low, at.high

    def lowest(self, group: GroupFit, columns: Mapping[str, Array]) -> Array:
        """Returns the least prediction (B,) of each of a group's draws over ``columns`` (n,)."""
        drawn = group_draws(self.path, self.report, group)
        if not len(drawn):
            return np.empty(0)
        with np.errstate(all="ignore"):
            return np.asarray(of_draws(self.law, group, drawn, columns).min(axis=1))


def loss_fits(material: Material, runs: Runs) -> Iterator[LossFit]:
    """Yields the fits of losses that were made, by study and in the order of its entries."""
    for study in material.studies:
        for entry in study.fits:
            if fit := material.attempt(_loss_fit, material, runs, study, entry):
                yield fit


def _loss_fit(material: Material, runs: Runs, study: Study, entry: Fit) -> LossFit | None:
    """Returns the fit of an entry; None if it is missing, or not of a loss."""
    folder, key = material.folder, study.study
    path = folder.fit(key, entry.name)
    if not material.has(path) or entry.table in {fit.name for fit in study.fits}:
        return None
    report = read_fit(path)
    law = laws.fittable(report.law)
    if report.unit(law.response) != LOSS_UNIT:
        return None
    if not all(set(group.params) == set(law.names) for group in report.parts):
        raise UserError(f"{path} does not have the parameters of {law.ref}; make the fit again")
    source = folder.derived(key, entry.table) if entry.table else folder.table(key)
    table, units = read_any(source)
    spec = parse(Fit, report.spec, path)
    given = read_variables(law, table, spec, units)
    row = runs.rows_of(key, table)
    return LossFit(study, path, report, law, spec, table, row, given.values, given.sources.columns)


def grid(variable: Variable, measured: Array, points: int) -> tuple[Array, bool]:
    """Returns rising values (points,) that reach somewhat beyond the ``measured`` ones.

    The second result tells whether their spacing is even in the variable's logarithm. That of a
    sparsity is even in the logarithm of 1 - S, and that of a variable with values up to 0 is even.
    """
    low, high = float(measured.min()), float(measured.max())
    if variable.domain is SPARSITY:
        densest, sparsest = min(1.0, BEYOND * (1 - low)), (1 - high) / BEYOND
        return 1 - np.geomspace(densest, sparsest, points), False
    if low <= 0:
        return np.linspace(low, high + (high - low) * (BEYOND - 1), points), False
    lowest = 1.0 if variable.domain is AT_LEAST_1 else 0.0
    highest = 1.0 if variable.domain is FRACTION else math.inf
    return np.geomspace(max(lowest, low / BEYOND), min(highest, high * BEYOND), points), True


def fitted_law(material: Material, fit: LossFit) -> Data | None:
    """Returns the law of a fit as the page reads it, or None.

    A fit that is split has none, and neither has one of whose variables none can be varied, since
    each has only one value.
    """
    if fit.spec.split_by:
        return None
    group, law, response = fit.report.parts[0], fit.law, fit.law.response
    fitted, held_out = fit.rows(group)
    used = fitted | held_out
    values = {v.name: fit.values[v.name][used] for v in fit.variables}
    varied = [v for v in fit.variables if np.ptp(values[v.name]) > 0][:MAX_VARIABLES]
    if not varied:
        return None
    points = min(FINEST, math.floor(MAX_POINTS ** (1 / len(varied)) + 1e-9))
    grids = {v.name: grid(v, values[v.name], points) for v in varied}
    meshes = np.meshgrid(*(values for values, _ in grids.values()), indexing="ij")
    columns = dict(zip(grids, map(np.ravel, meshes), strict=True))  # row-major, as it is read
    held = {name: float(np.median(x)) for name, x in values.items() if name not in grids}
    columns |= {name: np.full(meshes[0].size, value) for name, value in held.items()}
    mean, low, high = map(shortened, fit.predicted(group, columns))
    no_slider = [
        f"{name} has no slider: the law is shown at its median, {value:.4g}."
        for name, value in held.items()
        if np.ptp(values[name]) > 0
    ]
    return {
        "id": f"{fit.study.study}/{fit.spec.name}",
        "title": f"{law.title} ({fit.study.study}, fit {fit.spec.name})",
        "equation": law.equation,
        "source": source_of(material, fit.study),
        "response": {"name": response.name, "unit": response.unit, "log": law.log_response},
        "level": fit.report.level,
        "variables": [
            {
                "name": v.name,
                "unit": v.unit,
                "description": v.description,
                "grid": shortened(values),
                # Held-out rows may lie beyond
                "fitted": [float(end(fit.values[v.name][fitted])) for end in (np.min, np.max)],
                "log": log,
            }
            for v, (values, log) in zip(varied, grids.values(), strict=True)
        ],
        "mean": mean,
        "low": low,
        "high": high,
        "params": [{"name": name, **vars(known)} for name, known in group.params.items()],
        "metrics": group.metrics,
        "holdout": group.holdout,
        "warnings": [*group.warnings, *no_slider],
        "points": {
            "run": [row for row, chosen in zip(fit.row, used, strict=True) if chosen],
            "values": {name: shortened(x) for name, x in values.items()},
            "L": shortened(fit.values[response.name][used]),
        },
    }


def isoflop(material: Material, fit: LossFit) -> Data | None:
    """Returns a fit that is split by budget and has a size among its variables; None for others."""
    size = next((v for v in fit.variables if v.unit == "parameters"), None)
    if fit.spec.split_by != BUDGET or size is None:
        return None
    column, key = fit.sources.get(size.name, size.name), fit.study.study
    counted = "total " if "total" in column else "active " if "active" in column else ""
    return {
        "title": f"Loss over {counted}parameters at each budget ({key}, fit {fit.spec.name})",
        "x": {"name": column, "unit": size.unit},
        "level": fit.report.level,
        "source": source_of(material, fit.study),
        "series": [series for group in fit.report.parts for series in _series(fit, group, size)],
    }


def _series(fit: LossFit, group: GroupFit, size: Variable) -> Iterator[Data]:
    """Yields the runs and the curve of one budget, for each value of the other variables."""
    fitted, held_out = fit.rows(group)
    used = fitted | held_out
    names = [v.name for v in fit.variables if v.name != size.name]
    kinds = np.column_stack([np.zeros(len(used)), *(fit.values[name] for name in names)])
    for kind in np.unique(kinds[used], axis=0):
        others = dict(zip(names, kind[1:].tolist(), strict=True))
        chosen: Mask = used & (kinds == kind).all(axis=1)
        C, x = float(group.where[BUDGET]), fit.values[size.name][chosen]
        grid = np.geomspace(x.min(), x.max(), FINEST)
        columns = {name: np.full(FINEST, value) for name, value in others.items()}
        columns[size.name] = grid
        mean, low, high = map(shortened, fit.predicted(group, columns))
        lowest = percentile_interval(fit.lowest(group, columns), fit.report.level)
        yield {
            "C": C,
            **others,
            "label": ", ".join(f"{name} = {v:.4g}" for name, v in {"C": C, **others}.items()),
            "run": [row for row, own in zip(fit.row, chosen, strict=True) if own],
            "x": shortened(x),
            "L": shortened(fit.values[fit.law.response.name][chosen]),
            "curve": {"x": shortened(grid), "mean": mean, "low": low, "high": high},
            "optimum": {"L": float(min(mean)), "low": lowest[0], "high": lowest[1]},
        }
