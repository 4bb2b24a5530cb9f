"""FitReport: what a fit found, and its files.

``FILE.json`` holds the report; ``FILE.bootstrap.parquet`` beside it the bootstrap's draws. Reading
a report imports no pandas, so that a prediction from one is quick.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moelaws.fitting.decode import decode
from moelaws.fitting.diagnostics import (
    Diagnostics,
    ProfileInterval,
    Residuals,
    Rollout,
    Support,
)
from moelaws.records import seal
from moelaws.records.files import finite, read_json, write_json
from moelaws.spec.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from moelaws.laws.base import Array


def place(where: Mapping[str, float]) -> str:
    """Returns how messages name a part of a fit: ``C = 1e+20``; empty where it is not split."""
    return ", ".join(f"{column} = {value:.6g}" for column, value in where.items())


@dataclass(frozen=True)
class Estimate:
    """One parameter on its natural scale, with its interval (None where there is none)."""

    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class FitPart:
    """One law fitted to one set of rows: the whole table's, or those of one ``split_by`` value.

    Attributes:
        where: the split column's value, such as {"C": 1e11}; empty for a fit that is not split.
        n: rows fitted.
        objective: the protocol's, at the estimates.
        converged: whether the estimates are a certified stationary point of the objective.
        params: parameter -> estimate and interval, natural scale.
        metrics: errors on the fitted rows (see ``fitting.goodness.errors``).
        holdout: the same errors on the held-out rows; None where nothing is held out.
        diagnostics: starts, bounds, condition number, near-equivalent optima, draws.
        intervals: how the parameters' intervals were made.
        delta_method: parameter -> standard error and interval for large n, for comparison.
        profile: parameter -> profile-likelihood interval, for those that the entry names.
        residuals: their spread, normality and quantiles, on the law's scale.
        support: where the fitted rows lie; None where that is not known. Its JSON key is ``hull``.
        rollout: the fit below each budget and its errors above, or why there is none.
        left_out: reason -> number of rows, over the whole table.
        notes: how columns became variables: unit conversions and derivations.
        warnings: what limits the trust in this fit, in sentences.
    """

    where: dict[str, float]
    n: int
    objective: float
    converged: bool
    params: dict[str, Estimate]
    metrics: dict[str, float | None]
    holdout: dict[str, float | None] | None
    diagnostics: Diagnostics
    intervals: str = ""
    delta_method: dict[str, dict[str, float | None]] = field(default_factory=dict)
    profile: dict[str, ProfileInterval] = field(default_factory=dict)
    residuals: Residuals = field(default_factory=Residuals)
    support: Support | None = None
    rollout: list[Rollout] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def estimates(self) -> dict[str, float]:
        """Parameter -> estimate, as ``Law.predict`` takes it."""
        return {name: p.estimate for name, p in self.params.items()}

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON data, in which numbers that are not finite are null."""
        data = asdict(self)
        data["diagnostics"] = self.diagnostics.to_json()
        data["rollout"] = [rollout.to_json() for rollout in self.rollout]
        data["support"] = data["support"] or {}
        return {"hull" if key == "support" else key: finite(data[key]) for key in data}


@dataclass(frozen=True)
class FitReport:
    """A law fitted to a table, in one part or in one for each value of ``split_by``.

    Attributes:
        law: the law's id, with its variant: ``sparsity.isoflop:2-1-1``.
        name: the fit's name in its study.
        source: where the losses come from: trained, simulated, imported or, mixed, several of
            them joined by a plus sign.
        split_by: the column that splits the fit; empty for one part.
        level: of the intervals.
        parts: one FitPart for each value of the split column, in rising order.
        spec: the fit as it was asked for (``spec.study.Fit``).
        table: digest of the used columns' content, and those columns.
        selection: how the law's variant was chosen by cross-validation; None where it was given.
        versions: of the packages that the numbers rest on.
        draws: columns of ``where``, ``draw``, parameters; None in a report that was read back.
        draws_digest: SHA-256 of the draws' file, in a report that was read back.
    """

    law: str
    name: str
    source: str
    split_by: str
    level: float
    parts: list[FitPart]
    spec: dict[str, Any]
    table: dict[str, Any]
    versions: dict[str, str]
    selection: dict[str, Any] | None = None
    draws: pd.DataFrame | None = field(default=None, compare=False, repr=False)
    draws_digest: str = field(default="", compare=False)

    @property
    def warnings(self) -> list[str]:
        """Every part's warnings, each named by its part."""
        return [
            f"{place(part.where)}: {text}" if part.where else text
            for part in self.parts
            for text in part.warnings
        ]

    def part(self, where: Mapping[str, float]) -> FitPart:
        """Returns the part for the split column's value in ``where`` (other keys are ignored).

        Raises:
            UserError: where the value is missing or is none of the fit's own.
        """
        if not self.split_by:
            return self.parts[0]
        known = ", ".join(f"{p.where[self.split_by]:.6g}" for p in self.parts)
        if self.split_by not in where:
            raise UserError(
                f"fit {self.name} of {self.law} is split by {self.split_by}: "
                f"give {self.split_by}=VALUE, one of {known}"
            )
        value = where[self.split_by]
        for part in self.parts:
            if math.isclose(part.where[self.split_by], value, rel_tol=1e-6):
                return part
        raise UserError(
            f"fit {self.name} of {self.law}: {self.split_by} is {value:.6g}; it must be one of "
            f"{known}"
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON data; one that is not split has its part's keys at the top."""
        parts = [part.to_json() for part in self.parts]
        keys = ("law", "name", "source", "split_by", "level", "selection")
        data: dict[str, Any] = finite({key: getattr(self, key) for key in keys})
        if self.split_by:
            data["parts"] = parts
        else:
            data |= {key: value for key, value in parts[0].items() if key != "where"}
        return data | {"spec": self.spec, "table": self.table, "versions": self.versions}


@dataclass(frozen=True)
class _Head:
    """What a report's file holds beside its parts."""

    law: str
    name: str
    source: str
    split_by: str
    level: float
    selection: dict[str, Any] | None
    spec: dict[str, Any]
    table: dict[str, Any]
    versions: dict[str, str]
    draws_digest: str


_HEAD = tuple(own.name for own in fields(_Head))
_PART = tuple(own.name for own in fields(FitPart))


def draws_path(path: Path) -> Path:
    """Returns the draws' file beside a report: ``loss.json`` -> ``loss.bootstrap.parquet``."""
    return path.with_suffix(".bootstrap.parquet")


def write_fit(report: FitReport, path: Path, made_of: Mapping[str, Any] | None = None) -> None:
    """Writes ``path`` (JSON) and, before it, the draws' Parquet file; both atomically.

    ``made_of`` holds the digests of the table and the code behind it, for the record.

    Raises:
        UserError: where a file cannot be written.
    """
    digest = report.draws_digest
    if report.draws is not None:
        import pyarrow as pa

        from moelaws.records.parquet import write_parquet

        table = pa.Table.from_pandas(report.draws, preserve_index=False)
        digest = write_parquet(draws_path(path), table, made_of)
    origin = {"draws_digest": digest, "made_of": made_of or {}}
    write_json(path, report.to_json() | origin)


def read_fit(path: Path) -> FitReport:
    """Returns the report that :func:`write_fit` wrote.

    Raises:
        UserError: where the file is missing or is no fit report.
    """
    data = read_json(path)
    try:
        head = decode(_Head, {key: data.get(key) for key in _HEAD})
        if not 0 < head.level < 1:
            raise ValueError("level is not between 0 and 1")
        if head.split_by:
            parts = [_part(part, f"part {n}") for n, part in enumerate(data["parts"], 1)]
        else:
            parts = [_part({**data, "where": {}}, "")]
        if any(set(part.where) != {head.split_by} - {""} for part in parts):
            raise ValueError(f"a part's where does not say its {head.split_by}")
        return FitReport(parts=parts, **vars(head))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        reason = f"the key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise UserError(
            f"{path}: this is not a fit report of this version of moelaws ({reason}); make the fit "
            f"again with `moelaws fit TABLE --law LAW --out {path.name}`"
        ) from None


def _part(data: Mapping[str, Any], key: str) -> FitPart:
    """Returns the part that ``FitPart.to_json`` gave.

    Raises:
        KeyError, TypeError, ValueError: for data of another form, or an estimate that is no number.
    """
    own = {name: data["hull" if name == "support" else name] for name in _PART}
    part = decode(FitPart, own | {"support": own["support"] or None}, key)
    for name, estimate in part.estimates().items():
        if not math.isfinite(estimate):
            raise ValueError(f"params.{name}.estimate is not a finite number")
    return part


def estimates_table(report: FitReport) -> pd.DataFrame:
    """Returns a row a part: the split column's value and the estimates, for a law over those.

    So the second stage of a fit in two (``allocation.ratio:stage2_alpha``) reads the first's
    report as its table.
    """
    import pandas as pd

    rows = [part.where | part.estimates() for part in report.parts]
    return pd.DataFrame(rows).assign(source=report.source)


def is_report(path: Path) -> bool:
    """Tells whether ``path`` is a fit's report rather than a table in JSON lines."""
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        data = read_json(path)
    except UserError:
        return False
    return isinstance(data, dict) and {"law", "split_by", "spec", "versions"} <= set(data)


def read_draws(path: Path) -> pd.DataFrame:
    """Returns the draws of the report at ``path``: split column, ``draw``, parameters.

    ``path`` is the report's JSON file or the Parquet file itself.

    Raises:
        UserError: where the file is missing or damaged.
    """
    frame: pd.DataFrame = _draws_table(path).to_pandas()
    return frame


def part_draws(path: Path, report: FitReport, part: FitPart) -> Array:
    """Returns the draws (B, P) of one ``part`` of the ``report`` at ``path``.

    The parameters are in the part's order. No pandas is imported, so that an interval of one
    prediction is quick. Errors as of ``read_draws``,
    and where the draws' file is of another fit.
    """
    import numpy as np

    if draws_path(path).is_file() and seal.digest(draws_path(path)) != report.draws_digest:
        raise UserError(
            f"{draws_path(path)} holds the draws of another fit than {path}; make the fit again"
        )
    table = _draws_table(path)
    names = list(part.params)
    # By way of lists: Arrow's own way to NumPy imports pandas.
    drawn = np.array([table[name].to_pylist() for name in names]).T
    own = np.ones(len(drawn), dtype=bool)
    for column, value in part.where.items():
        own &= np.isclose(table[column].to_pylist(), value, rtol=1e-9, atol=0)
    return drawn[own]


def _draws_table(path: Path) -> Any:
    from moelaws.records.parquet import read_parquet

    file = path if path.suffix == ".parquet" else draws_path(path)
    if not file.is_file():
        raise UserError(f"{file}: no such file; the fit that writes it was not run")
    return read_parquet(file)
