"""What a fit estimates and what a contest of laws finds, as data, and the files of a fit.

``FILE.json`` holds a fit's report, and ``FILE.bootstrap.parquet`` beside it the bootstrap's draws.
A report or a contest is read without the engine and without pandas, so that it is quick.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from pydantic import Field, FiniteFloat, ValidationError
from typing_extensions import TypedDict

from moelaws.files import seal
from moelaws.files.atomic import finite, read_json, write_json
from moelaws.fitting.diagnostics import (
    Calibration,
    Diagnostics,
    Number,
    ProfileInterval,
    Residuals,
    Support,
)
from moelaws.spec.base import as_written
from moelaws.spec.errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from moelaws.laws.base import Array, Variable


Data = dict[str, Any]  # of a JSON object
# The split column's value, a number or a corpus' name; empty for a fit that is not split
Where = Mapping[str, Any]


def place(where: Where) -> str:
    """Returns the name of a group in messages, such as ``C = 1e+20``; empty without a split."""
    return ", ".join(f"{column} = {_shown(value)}" for column, value in where.items())


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def has_value(cells: Any, value: float | str, tolerance: float = 1e-9) -> Any:
    """Tells which of ``cells`` (n,) have the ``value`` of a group, a number up to rounding."""
    import numpy as np

    if isinstance(value, str):
        return np.asarray(cells, dtype=object) == value
    return np.isclose(np.asarray(cells, dtype=float), value, rtol=tolerance, atol=0)


@dataclass(frozen=True)
class Estimate:
    """One parameter on its natural scale, with the ends of its interval; None if unknown."""

    estimate: FiniteFloat
    low: Number | None
    high: Number | None


@dataclass(frozen=True)
class GroupFit:
    """One law fitted to one group of rows: all of a table, or those of one ``split_by`` value."""

    where: Data  # the split column's value, such as {"C": 1e11}; empty without split
    n: int  # rows fitted
    objective: Number  # the protocol's, at the estimates
    converged: bool  # whether the estimates are a certified stationary point of the objective
    params: dict[str, Estimate]  # natural scale
    metrics: dict[str, Number | None]  # ``estimate.errors`` and ``criteria`` of the fitted rows
    holdout: dict[str, Number | None] | None  # ``estimate.errors`` of the held-out rows
    diagnostics: Diagnostics
    intervals: str = ""  # how the parameters' intervals were made
    # Standard errors and intervals for large n, for comparison
    delta_method: dict[str, dict[str, Number | None]] = field(default_factory=dict)
    profile: dict[str, ProfileInterval] = field(default_factory=dict)  # as the entry requests
    residuals: Residuals = field(default_factory=Residuals)
    hull: Support | None = None
    calibration: Calibration | None = None  # of intervals beyond the fitted compute
    sparsity: Number | None = None  # of all fitted runs, if the table tells one
    left_out: dict[str, int] = field(default_factory=dict)  # reason -> rows of the whole table
    notes: list[str] = field(default_factory=list)  # unit conversions and derivations
    warnings: list[str] = field(default_factory=list)  # what limits the trust in this fit

    def estimates(self) -> dict[str, float]:
        """Returns parameter -> estimate, as ``Law.predict`` takes it."""
        return {name: p.estimate for name, p in self.params.items()}

    @property
    def is_exact(self) -> bool:
        """Tells whether the parameters are as many as the rows, so that no error can be seen."""
        return self.n <= len(self.params) and self.residuals.sd is None


@dataclass(frozen=True)
class FitReport:
    """A law fitted to all rows of a table, or to a group of rows for each ``split_by`` value.

    ``draws`` is a data frame with the columns of ``where``, ``draw`` and the parameters. A report
    that was read back has the SHA-256 of its file instead, ``draws_digest``.
    """

    law: str  # the law's id, with its variant: ``sparsity.isoflop:211``
    name: str  # of the fit in its study
    source: str  # of the losses: trained, simulated, imported, or several joined by a plus sign
    split_by: str  # the column that splits the fit; empty for one group
    level: Annotated[float, Field(gt=0, lt=1)]  # of the intervals
    parts: list[GroupFit]  # one for each value of the split column, in rising order
    spec: Data  # the fit's entry (``spec.fit.Fit``)
    table: Data  # digest of the used columns' content, and those columns
    versions: dict[str, str]  # of the packages that computed it
    selection: Data | None = None  # how cross-validation chose the law's variant
    draws: Any = field(default=None, compare=False, repr=False)
    draws_digest: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if any(set(fitted.where) != {self.split_by} - {""} for fitted in self.parts):
            raise ValueError(f"a part's where does not say its {self.split_by}")

    @property
    def warnings(self) -> list[str]:
        """Returns the warnings of all groups, each after the name of its group."""
        return [
            f"{place(fitted.where)}: {text}" if fitted.where else text
            for fitted in self.parts
            for text in fitted.warnings
        ]

    def group(self, where: Where) -> GroupFit:
        """Returns the fit of the group whose value of the split column is in ``where``."""
        column = self.split_by
        if not column:
            return self.parts[0]
        known = ", ".join(_shown(fitted.where[column]) for fitted in self.parts)
        own = f"fit {self.name} of {self.law}"
        if column not in where:
            raise UserError(f"{own} is split by {column}: give {column}=VALUE, one of {known}")
        for fitted in self.parts:
            value, given = fitted.where[column], where[column]
            is_alike = isinstance(value, str) == isinstance(given, str)
            if is_alike and has_value([given], value, 1e-6).all():
                return fitted
        raise UserError(f"{own}: {column} is {_shown(where[column])}; it must be one of {known}")

    def unit(self, variable: "Variable") -> str:
        """Returns the unit in which this fit has a variable of its law."""
        from moelaws.laws.vocabulary import in_unit  # figures that only read fits need no NumPy

        return in_unit(variable, self.spec.get("units", {}).get(variable.name)).unit

    def to_json(self) -> Data:
        """Returns the report as JSON data, in which numbers that are not finite are null.

        Without a split, its group's keys are at the top.
        """
        groups = [asdict(own) | {"diagnostics": own.diagnostics.to_json()} for own in self.parts]
        keys = ("law", "name", "source", "split_by", "level", "selection")
        data = {key: getattr(self, key) for key in keys}
        if self.split_by:
            data["parts"] = groups
        else:
            data |= {key: value for key, value in groups[0].items() if key != "where"}
        data |= {"spec": self.spec, "table": self.table, "versions": self.versions}
        return {key: finite(value) for key, value in data.items()}


def draws_path(path: Path) -> Path:
    """Returns the draws' file beside a report: ``loss.json`` -> ``loss.bootstrap.parquet``."""
    return path.with_suffix(".bootstrap.parquet")


def write_fit(report: FitReport, path: Path, made_of: Mapping[str, Any] | None = None) -> None:
    """Writes ``path`` (JSON) and, before it, the draws' Parquet file; both atomically.

    ``made_of`` holds the digests of the table and the code behind it, for the record.
    """
    digest = report.draws_digest
    if report.draws is not None:
        import pyarrow as pa

        from moelaws.files.parquet import write_parquet

        table = pa.Table.from_pandas(report.draws, preserve_index=False)
        digest = write_parquet(draws_path(path), table, made_of)
    origin = {"draws_digest": digest, "made_of": made_of or {}}
    write_json(path, report.to_json() | origin)


def read_fit(path: Path) -> FitReport:
    """Returns the report that :func:`write_fit` wrote; a UserError says what is wrong with it."""
    data = read_json(path)
    if not data.get("split_by"):
        data = {**data, "parts": [{**data, "where": {}}]}
    if isinstance(data.get("spec"), dict):
        for key in ("holdouts", "rollout"):  # of the published reports, and of others as old
            data["spec"].pop(key, None)
    try:
        return as_written(FitReport, data)
    except ValidationError as error:
        first = error.errors()[0]
        keys = list(first["loc"])
        if keys[:1] == ["parts"] and not data.get("split_by"):
            del keys[:2]
        reason = f"{'.'.join(map(str, keys))}: {first['msg'].removeprefix('Value error, ')}"
    raise UserError(
        f"{path}: this is not a fit report of this version of moelaws ({reason}); make the fit "
        f"again with `moelaws fit TABLE --law LAW --out {path.name}`"
    )


def estimates_table(report: FitReport) -> "pd.DataFrame":
    """Returns a row for each group, with the split column's value and the estimates.

    The second stage of a fit in two stages (``allocation.ratio:stage2_alpha``) reads the first
    stage's report as this table.
    """
    import pandas as pd

    rows = [{**fitted.where, **fitted.estimates()} for fitted in report.parts]
    return pd.DataFrame(rows).assign(source=report.source)


def is_report(path: Path) -> bool:
    """Tells whether ``path`` is a fit's report rather than a table in JSON lines."""
    with suppress(UserError):
        keys = {"law", "split_by", "spec", "versions"}
        return path.suffix == ".json" and path.is_file() and keys <= set(read_json(path))
    return False


def read_draws(path: Path, report: FitReport) -> "pa.Table":
    """Returns the draws of the ``report`` at ``path``: the split column, ``draw``, parameters.

    A UserError refuses the draws of another fit, such as an older one.
    """
    from moelaws.files.parquet import read_parquet

    table = read_parquet(draws_path(path))
    if seal.digest(draws_path(path)) != report.draws_digest:
        raise UserError(
            f"{draws_path(path)} holds the draws of another fit than {path}; make the fit again"
        )
    return table


def group_draws(path: Path, report: FitReport, group: GroupFit) -> "Array":
    """Returns the draws (B, P) of one ``group`` of the ``report`` at ``path``.

    The parameters are in the group's order. There are none without the draws' file, and none of an
    exact fit. No pandas is imported, so that an interval of one prediction is quick.
    """
    import numpy as np

    if group.is_exact or not draws_path(path).is_file():
        return np.empty((0, len(group.params)))
    table = read_draws(path, report)
    # Lists stand between Arrow and NumPy, since Arrow's own way imports pandas.
    drawn = np.array([table[name].to_pylist() for name in group.params]).T
    own = np.ones(len(drawn), dtype=bool)
    for column, value in group.where.items():
        own &= has_value(table[column].to_pylist(), value)
    return drawn[own]


class Score(TypedDict):
    """How well a law predicts held-out rows, as JSON data of a contest.

    A law without draws has no intervals. An infinite end of an interval is null, whatever its sign.
    """

    n: int  # rows
    rmse: float
    r2: float | None
    rmse_excess: float  # over the best law's
    rank: int
    rmse_interval: NotRequired[list[float | None]]
    rank_interval: NotRequired[list[int]]
    first: NotRequired[float]  # how often the law is the best one
    rmse_excess_interval: NotRequired[list[float | None]]
    told_apart: NotRequired[bool]  # whether it is worse than the best law beyond chance


class LawScore(Score):
    law: str
    equation: str
    columns: dict[str, str]  # variable -> the table's column that it is read from
    derived: list[str]  # variables that no column holds, such as "C = 6 N_active D"
    parameters: int
    converged: bool  # at every step
    ceiling: NotRequired[float | None]  # R2 of the best function of its columns, if some runs agree


class Step(TypedDict):
    """The rows of one round of fits."""

    holdout: str  # in words, which rows were held out
    fitted: int
    judged: int


class SplitScores(TypedDict):
    """The laws at one split, best first, and the refused ones with the reason."""

    name: str
    use: str
    steps: list[Step]
    blocks: int  # of held-out rows that err together (resample_by); 0 if each row errs alone
    laws: list[LawScore]
    refused: dict[str, str]


class ContestScores(TypedDict):
    """All that `moelaws make contests` writes."""

    study: str
    title: str
    contest: str
    source: str
    runs: str  # what imported runs are called
    entry: Data  # of the study, as ``spec.fit.Contest`` dumps it
    seed: int
    splits: list[SplitScores]
    made_of: Data
