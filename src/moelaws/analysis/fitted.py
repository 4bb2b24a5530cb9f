"""The inputs of code that reads fits: its study's table, and the reports of declared fits."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import pandas as pd
from numpy.typing import ArrayLike

from moelaws import laws
from moelaws.analysis.inputs import Inputs, declared, row_mask
from moelaws.fitting.report import FitReport, draws_path, read_draws, read_fit
from moelaws.laws.base import Array, FittableLaw
from moelaws.spec.base import parse
from moelaws.spec.fit import Fit
from moelaws.spec.readers import Reader
from moelaws.tables.sweeps import best_trials, in_sweep

# Number of a fit's report -> its heading in tables of errors
ERRORS = {
    "r2": "R2",
    "rmse": "RMSE (nats)",
    "mse": "MSE",
    "huber_sum": "Huber, sum",
    "huber_mean": "Huber, mean",
    "aicc": "AICc",
    "bic": "BIC",
}


@dataclass(frozen=True, kw_only=True)
class FittedInputs(Inputs):
    """Inputs with the reports of fits."""

    fits: Mapping[str, Path] = field(default_factory=dict)  # name -> report, of declared fits

    def declared_by(self, entry: Reader) -> Self:
        """Returns the same table with no other files than the ``entry`` declares."""
        fits = {name: self.fits[name] for name in entry.fits}
        return replace(super().declared_by(entry), fits=fits)

    @property
    def files(self) -> list[Path]:
        """Returns the files of ``Inputs``, and the reports of fits and their draws."""
        return [*super().files, *(p for fit in self.fits.values() for p in (fit, draws_path(fit)))]

    @cached_property
    def _reports(self) -> dict[Path, FitReport]:
        return {path: read_fit(path) for path in self.fits.values()}

    def fit(self, name: str) -> FitReport:
        path = declared("fit", name, self.fits)  # first, for the reports of all are read together
        return self._reports[path]

    def law(self, name: str) -> FittableLaw:
        """Returns the law of the fit ``name``, in the form that the fit chose."""
        return laws.fittable(self.fit(name).law)

    def predict(self, name: str, **columns: ArrayLike) -> Array:
        """Returns what the fit ``name``, which is not split, predicts at ``columns``."""
        return self.law(name).predict(self.fit(name).group({}).estimates(), columns)

    def draws(self, name: str) -> pd.DataFrame:
        """Returns the draws of the fit ``name``: a row a draw, a column a parameter."""
        report = self.fit(name)
        drawn: pd.DataFrame = read_draws(self.fits[name], report).to_pandas()
        return drawn

    def spec(self, name: str) -> Fit:
        """Returns the study's entry of the fit ``name``: its rows, mapping and hold-out."""
        return parse(Fit, self.fit(name).spec, declared("fit", name, self.fits))

    def rows(self, name: str) -> pd.DataFrame:
        """Returns the rows that the fit ``name`` selects, including those that it holds out.

        A derived table that was fitted must be declared too.
        """
        spec = self.spec(name)
        frame = self.derived(spec.table) if spec.table else self.completed
        if spec.sweep:
            frame = frame[in_sweep(frame, spec.sweep)].reset_index(drop=True)
        used = row_mask(frame, spec.rows)
        return frame[best_trials(frame, spec.best_per, used, spec.mapping.get("L", "L"))]

    def coefficients(self, name: str) -> pd.DataFrame:
        """Returns a row for each coefficient of the fit ``name``, which is not split.

        Beside its name and unit stand the estimate, the ends of its interval, the published value
        and whether the runs identify it, in a word.
        """
        part, law = self.fit(name).group({}), self.law(name)
        rows = pd.DataFrame(map(vars, part.params.values()), index=[*part.params], dtype=float)
        loose = part.diagnostics.unidentified
        return rows.assign(
            name=rows.index,
            published=pd.Series(law.published or {}, dtype=float),
            unit=pd.Series({parameter.name: parameter.unit for parameter in law.parameters}),
            identified=["no" if name in loose else "yes" for name in rows.index],
        )

    def errors(self) -> pd.DataFrame:
        """Returns the errors of the fits on the fitted and on the held-out runs."""
        rows = []
        for name in self.fits:
            fitted = self.fit(name).group({})
            about = {
                "Fit": name,
                "Law": self.law(name).ref,
                "Parameters": len(fitted.params),
                "Not identified": len(fitted.diagnostics.unidentified),
                "Converged": "yes" if fitted.converged else "no",
            }
            for runs, errors in (("fitted", fitted.metrics), ("held out", fitted.holdout)):
                rows += [{**about, "Runs": runs, **errors}] if errors else []
        frame = pd.DataFrame(rows).reindex(columns=[*about, "Runs", "n", *ERRORS])
        return frame.astype(dict.fromkeys(ERRORS, float)).rename(columns=ERRORS)

    @property
    def exact_fits(self) -> set[str]:
        """Returns the fits behind the inputs that have as many parameters as rows."""
        parts = ((name, part) for name in self.fits for part in self.fit(name).parts)
        return super().exact_fits | {name for name, part in parts if part.is_exact}

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Returns where the losses of the table and the fits come from."""
        reports = "+".join(str(report.source) for report in self._reports.values())
        return tuple(sorted({*super().sources, *reports.split("+")} - {""}))
