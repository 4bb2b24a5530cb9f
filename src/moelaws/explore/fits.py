"""The fits of losses: each report with its law, its draws and the rows that it was fitted to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.explore.material import Material
from moelaws.explore.runs import Runs
from moelaws.fitting.diagnostics import Residuals
from moelaws.fitting.prediction import predict
from moelaws.fitting.report import FitReport, GroupFit, draws_path, part_draws, read_fit
from moelaws.fitting.rows import selected_rows
from moelaws.fitting.variables import read_variables
from moelaws.laws.base import Array, FittableLaw, Mask, Variable
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Fit
from moelaws.spec.study import Study
from moelaws.tables.foreign import read_any

LOSS_UNIT = "nats/token"
MAX_DRAWS = 200


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
        draws = np.empty((0, len(self.law.names)))
        if draws_path(self.path).is_file():
            drawn = part_draws(self.path, self.report, group)
            kept = np.linspace(0, len(drawn) - 1, min(len(drawn), MAX_DRAWS)).round().astype(int)
            draws = np.asarray(drawn[kept])
        no_residuals = Residuals()  # no interval of a new observation is shown
        level = self.report.level
        with np.errstate(all="ignore"):  # a fit that its rows hardly determine may overflow
            at = predict(self.law, group.estimates(), draws, no_residuals, columns, level)
        return at.value, at.low, at.high


def loss_fits(material: Material, runs: Runs) -> Iterator[LossFit]:
    """Yields the fits of losses that were made, by study and in the order of its entries."""
    for study in material.studies:
        for entry in study.fits:
            if fit := material.attempt(partial(_loss_fit, material, runs, study, entry)):
                yield fit


def _loss_fit(material: Material, runs: Runs, study: Study, entry: Fit) -> LossFit | None:
    """Returns the fit of an entry; None if it is missing, or not of a loss."""
    folder, key = material.folder, study.study
    path = folder.fit(key, entry.name)
    if not material.has(path) or entry.table in {fit.name for fit in study.fits}:
        return None
    report = read_fit(path)
    law = laws.fittable(report.law)
    if law.response.unit != LOSS_UNIT:
        return None
    if not all(set(group.params) == set(law.names) for group in report.parts):
        raise UserError(f"{path} does not have the parameters of {law.ref}; make the fit again")
    source = folder.derived(key, entry.table) if entry.table else folder.table(key)
    table, units = read_any(source)
    spec = parse(Fit, report.spec, path)
    given = read_variables(law, table, spec, units)
    row = runs.rows_of(key, table)
    return LossFit(study, path, report, law, spec, table, row, given.values, given.sources.columns)
