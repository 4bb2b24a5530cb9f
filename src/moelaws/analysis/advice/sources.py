"""Judges, advisers and setters: those of config/advice.yaml, and the fits of a user's own runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from moelaws import laws
from moelaws.analysis.advice.judges import Judge
from moelaws.analysis.advice.plans import COLUMNS
from moelaws.analysis.advice.setters import Adviser, Setter
from moelaws.fitting.diagnostics import Support
from moelaws.fitting.prediction import product_range
from moelaws.fitting.report import FitReport, draws_path, part_draws, read_fit
from moelaws.laws.base import FittableLaw
from moelaws.spec.advice import AdviceConfig, JudgeEntry
from moelaws.spec.errors import UserError

# Column -> its power in N_active / N; of S it is that of 1 / (1 - S).
_DENSER = {"S": -1.0, "A": 1.0, "expansion": -1.0}
EXPERTS = "E"  # a table's column, which a plan does not tell: it tells E / k
# N is no column of a study's table: a user's own N is what the file's entry takes the law's N for.
KNOWN = {EXPERTS, *COLUMNS} - {"N"}


def published_judges(config: AdviceConfig) -> list[Judge]:
    """Returns the laws of the file that have published values, as judges."""
    judges = []
    for entry in config.judges:
        law = laws.fittable(entry.law)
        params = law.published or {}
        if set(params) >= set(law.names):
            judges.append(
                Judge(
                    entry.law,
                    law,
                    params,
                    mapping=entry.mapping,
                    S=entry.S,
                    fitted_on=entry.fitted_on,
                )
            )
    return judges


def advisers(config: AdviceConfig) -> list[Adviser]:
    """Returns the laws of the file that say how many tokens to train."""
    every = ((entry, laws.get(entry.law)) for entry in config.advisers)
    return [Adviser(e.law, law, law.published or {}, e.S, e.fitted_on) for e, law in every]


def setters(config: AdviceConfig) -> list[Setter]:
    """Returns the laws of the file that set one variable."""
    every = ((entry, laws.get(entry.law)) for entry in config.setters)
    return [
        Setter(e.variable, law, law.published or {}, e.largest, (e.low, e.high), e.fitted_on)
        for e, law in every
    ]


def fitted_judges(
    paths: Sequence[Path],
    config: AdviceConfig,
    k: int | Callable[[Path, FitReport], int | None] | None,
) -> tuple[list[Judge], dict[Path, str]]:
    """Returns the judges of fits, and resolved path -> why another fit takes no part.

    Args:
        paths: reports of fits, and folders of them.
        config: the file, which says which laws take part.
        k: active experts of the runs behind the fits, for laws that count experts; or what tells
            them of one fit by its file and report.

    Raises:
        UserError: for a path that is not there, or a folder without any report.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise UserError(f"--fits: {path}: no such file or folder")
        every = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        if not every:
            raise UserError(f"--fits: {path} holds no report of a fit (FIT.json)")
        files |= dict.fromkeys(file.resolve() for file in every)
    judges, left_out = [], {}
    for file in files:
        try:
            report = read_fit(file)
            active = k(file, report) if callable(k) else k
            judges.append(_of_fit(file, report, config, active))
        except UserError as error:
            left_out[file] = str(error).removeprefix(f"{file}: ")
    return _named(judges), left_out


def _named(judges: Sequence[Judge]) -> list[Judge]:
    """Returns the judges of fits, each with the shortest end of its path that no other has."""
    parts = [Path(judge.coefficients).with_suffix("").parts for judge in judges]
    names = []
    for own in parts:
        depth = 2
        while sum(other[-depth:] == own[-depth:] for other in parts) > 1 and depth < len(own):
            depth += 1
        names.append("/".join(own[-depth:]))
    return [replace(judge, name=name) for judge, name in zip(judges, names, strict=True)]


def _of_fit(path: Path, report: FitReport, config: AdviceConfig, k: int | None) -> Judge:
    """Returns the judge of one fit.

    Raises:
        UserError: for a law that is no judge, simulated losses, a fit in several parts, or a law
            that counts experts where k is not known.
    """
    entry = next((entry for entry in config.judges if entry.law == report.law), None)
    if entry is None:
        known = ", ".join(entry.law for entry in config.judges)
        raise UserError(f"{report.law} is no judge of config/advice.yaml ({known})")
    if "simulated" in report.source:
        raise UserError("it is of simulated losses, which tell nothing of real models")
    if report.split_by:
        raise UserError(f"it is split by {report.split_by}: it is not one law")
    law, part = laws.fittable(report.law), report.parts[0]
    named = {v.name: report.spec.get("mapping", {}).get(v.name, v.name) for v in law.variables}
    mapping, factors = _mapping(entry, named, k)
    ranges = part.support.ranges if part.support else {}
    fitted_on = {
        mapping[name]: (low / factors.get(name, 1.0), high / factors.get(name, 1.0))
        for name, (low, high) in ranges.items()
    }
    if compute := _compute(law, part.support, mapping, factors):
        fitted_on["C"] = compute
    draws = part_draws(path, report, part) if draws_path(path).is_file() else np.empty((0, 0))
    judge = Judge(
        path.stem,
        law,
        part.estimates(),
        coefficients=str(path),
        mapping=mapping,
        factors=factors,
        renamed={
            named[name]: column for name, column in mapping.items() if named[name] not in KNOWN
        },
        S=entry.S,
        draws=_in_order(law, list(part.params), draws),
        fitted_on=fitted_on,
        source=report.source,
        warnings=tuple(report.warnings),
        determined=part.converged and not part.diagnostics.at_bounds,
    )
    # Of total parameters, say: a sparsity of the file's would not be that of its least loss.
    return replace(judge, S=None) if judge.knows_sparsity else judge


def _mapping(
    entry: JudgeEntry, named: Mapping[str, str], k: int | None
) -> tuple[dict[str, str], dict[str, float]]:
    """Returns variable -> column of a plan, and variable -> what that column is multiplied by.

    ``named`` is variable -> column of the fitted table. One that no study's table has is the user's
    own name, and stands for what the file's ``entry`` maps the variable to; experts are counted.
    """
    mapping, factors = dict(named), {}
    for variable, column in named.items():
        usual = entry.mapping.get(variable, variable)
        if column not in KNOWN:
            mapping[variable] = usual
        if column == EXPERTS or (column not in KNOWN and usual in (EXPERTS, "expansion")):
            if k is None:
                raise UserError(
                    f"its law reads {variable}, the experts of runs with k active ones, and k is "
                    "not known; `moelaws advise` takes it as --fits-top-k"
                )
            mapping[variable], factors[variable] = "expansion", float(k)
    return mapping, factors


def _compute(
    law: FittableLaw,
    support: Support | None,
    mapping: Mapping[str, str],
    factors: Mapping[str, float],
) -> tuple[float, float] | None:
    """Returns the least and the most compute of a fit's runs, 6 N_active D; None if not told.

    The runs' hull tells it, where the law reads tokens, a size, and a sparsity beside a total size.
    """
    variable = {column: name for name, column in mapping.items()}
    active, total = (
        next((variable[column] for column in columns if column in variable), None)
        for columns in (("N_active",), ("N", "N_total"))
    )
    of_sparsity = next((column for column in _DENSER if column in variable), None)
    if support is None or "D" not in variable or not (active or (total and of_sparsity)):
        return None
    powers, factor = {variable["D"]: 1.0}, 6.0
    if active:
        powers[active] = 1.0
    else:
        assert total
        assert of_sparsity
        powers |= {total: 1.0, variable[of_sparsity]: _DENSER[of_sparsity]}
        factor *= factors.get(variable[of_sparsity], 1.0)
    low, high = product_range(law, support, powers)
    return factor * low, factor * high


def _in_order(law: FittableLaw, names: Iterable[str], draws: np.ndarray) -> np.ndarray:
    own = list(names)
    return draws[:, [own.index(name) for name in law.names]] if len(draws) else draws
