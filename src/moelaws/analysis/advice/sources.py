"""Judges, advisers and setters: those of config/advice.yaml, and the fits of a user's own runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from moelaws import laws
from moelaws.analysis.advice.judges import Judge
from moelaws.analysis.advice.setters import Adviser, Setter
from moelaws.fitting.report import FitReport, draws_path, is_report, part_draws, read_fit
from moelaws.laws.base import FittableLaw
from moelaws.spec.advice import Advice, JudgeEntry, SetterEntry
from moelaws.spec.errors import UserError


def published_judges(advice: Advice) -> list[Judge]:
    """Returns the laws of the file that have published values, as judges."""
    judges = []
    for entry in advice.judges:
        law = laws.fittable(entry.law)
        params = law.published or {}
        if set(params) >= set(law.names):
            judge = Judge(entry.law, law, params, mapping=entry.mapping, S=entry.S)
            judges.append(replace(judge, fitted_on=entry.fitted_on))
    return judges


def advisers(advice: Advice) -> list[Adviser]:
    """Returns the laws of the file that say how many tokens to train."""
    every = ((entry, laws.get(entry.law)) for entry in advice.advisers)
    return [Adviser(e.law, law, law.published or {}, e.S) for e, law in every]


def setters(advice: Advice) -> list[Setter]:
    """Returns the laws of the file that set one variable."""
    return [_setter(entry) for entry in advice.setters]


def _setter(entry: SetterEntry) -> Setter:
    law = laws.get(entry.law)
    ends = entry.low, entry.high
    return Setter(entry.variable, law, law.published or {}, entry.largest, ends)


def fitted_judges(paths: Sequence[Path], advice: Advice) -> tuple[list[Judge], dict[str, str]]:
    """Returns the judges of fits, and path -> why another fit takes no part.

    Args:
        paths: reports of fits, and folders of them.
        advice: the file, which says which laws take part.

    Raises:
        UserError: for a path that is not there, and a fit that is named itself and is of no use.
    """
    judges, left_out = [], {}
    entries = {entry.law: entry for entry in advice.judges}
    for path in paths:
        if not path.exists():
            raise UserError(f"--fits: {path}: no such file or folder")
        if path.is_dir():
            for file in sorted(path.rglob("*.json")):
                if is_report(file) and (report := read_fit(file)).law in entries:
                    try:
                        judges.append(_of_fit(file, report, entries[report.law]))
                    except UserError as error:
                        left_out[str(file)] = str(error)
            continue
        report = read_fit(path)
        if report.law not in entries:
            raise UserError(
                f"--fits: {path} is a fit of {report.law}, which is no judge of config/advice.yaml "
                f"({', '.join(entries)})"
            )
        judges.append(_of_fit(path, report, entries[report.law]))
    return judges, left_out


def _of_fit(path: Path, report: FitReport, entry: JudgeEntry) -> Judge:
    """Returns the judge of one fit.

    Raises:
        UserError: for simulated losses, another unit than nats/token, or a fit in several parts.
    """
    if "simulated" in report.source:
        raise UserError(
            f"{path}: this fit is of simulated losses, which tell nothing of real models"
        )
    if report.split_by:
        raise UserError(f"{path}: this fit is split by {report.split_by}: it is not one law")
    column = report.spec.get("mapping", {}).get("L", "L")
    if column not in ("L", "loss"):
        raise UserError(
            f"{path}: this fit is of {column}; regret needs losses in nats/token, the column L"
        )
    law, part = laws.fittable(report.law), report.parts[0]
    mapping = {**entry.mapping, **report.spec.get("mapping", {})}
    ranges = part.support.ranges if part.support else {}
    draws = part_draws(path, report, part) if draws_path(path).is_file() else np.empty((0, 0))
    return Judge(
        f"{path.absolute().parent.name}/{path.stem}",
        law,
        part.estimates(),
        coefficients=str(path),
        mapping={v.name: mapping[v.name] for v in law.variables if v.name in mapping},
        S=entry.S,
        draws=_in_order(law, list(part.params), draws),
        fitted_on={mapping.get(name, name): (low, high) for name, (low, high) in ranges.items()},
        source=report.source,
        warnings=tuple(report.warnings),
    )


def _in_order(law: FittableLaw, names: Iterable[str], draws: np.ndarray) -> np.ndarray:
    own = list(names)
    return draws[:, [own.index(name) for name in law.names]] if len(draws) else draws
