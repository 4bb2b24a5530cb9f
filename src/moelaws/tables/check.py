"""A study's entries checked before the first job starts: laws, columns, expressions, modules.

Light enough for the Snakefile: laws import NumPy alone.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from moelaws import laws
from moelaws.laws.mapping import sources, unit_factors
from moelaws.laws.protocol import overridden
from moelaws.laws.vocabulary import refuse_unit
from moelaws.records.code import PACKAGE, closure
from moelaws.spec.errors import UserError
from moelaws.spec.rows import parse_rows
from moelaws.spec.study import Figure, Fit, Simulation, Study
from moelaws.tables.schema import COLUMNS

NUMBERS = ("int", "float")
OWN = {column.name: column.unit for column in COLUMNS if column.type in NUMBERS}


def check_study(study: Study) -> None:
    """Refuse what would only fail once every model is trained.

    Raises:
        UserError: naming file, entry, what is wrong and what is allowed.
    """
    where = f"config/studies/{study.study}.yaml"
    modules = [(d.name, f"moelaws.analysis.{d.code}") for d in study.derived]
    modules += [(f.id, f"moelaws.figures.{study.study}.{f.code}") for f in study.pictures]
    if study.claims:
        modules.append(("claims", f"moelaws.claims.{study.study}"))
    for name, module in modules:
        try:
            closure(module)
        except UserError as error:
            raise UserError(f"{where}: {name}: code: {error}") from None
    if study.simulation is not None:
        try:
            _check_simulation(study, study.simulation)
        except UserError as error:
            raise UserError(f"{where}: simulation: {error}") from None
    for fit in study.fits:
        try:
            _check_sweep(study, fit)
            _check_fit(fit, *_columns(study, fit))
        except UserError as error:
            raise UserError(f"{where}: fit {fit.name}: {error}") from None
    for picture in study.pictures:
        kind = "FIGURES" if isinstance(picture, Figure) else "TABLES"
        path = _file(f"moelaws.figures.{study.study}.{picture.code}")
        _require(f"{where}: {picture.id}: code {picture.code}", picture.id, _keys(path, kind))
    if study.claims:
        path = _file(f"moelaws.claims.{study.study}")
        for claim in study.claims:
            _require(f"{where}: claim {claim.id}: {path.name}", claim.id, _keys(path, "CLAIMS"))


def _require(what: str, wanted: str, known: set[str]) -> None:
    if wanted not in known:
        raise UserError(f"{what} makes {', '.join(sorted(known))}")


def _file(module: str) -> Path:
    return PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")


@cache
def _assigned(path: Path, wanted: str) -> ast.expr | None:
    """What a module's ``wanted`` is, by its text: importing it would take pandas or Matplotlib."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id == wanted for t in targets):
                return node.value
    return None


def _keys(path: Path, name: str) -> set[str]:
    """The keys of a module's FIGURES, TABLES or CLAIMS."""
    found = _assigned(path, name)
    if not isinstance(found, ast.Dict):
        raise UserError(f"{path}: no {name}; it maps each id to what makes it")
    return {str(key.value) for key in found.keys if isinstance(key, ast.Constant)}


def _check_simulation(study: Study, asked: Simulation) -> None:
    law = laws.fittable(asked.law)
    if law.published is None or law.response.name != "L":
        what = "has no published coefficients" if law.published is None else "gives no loss"
        raise UserError(f"law: {law.ref} {what}")
    sources(law, {"N": "N_total", **asked.mapping}, tuple(OWN))  # as tables.simulate has it
    parse_rows(asked.rows)
    named = {sweep.name for grid in study.grids.values() for sweep in grid.sweeps}
    if unknown := sorted(set(asked.sweeps) - named):
        raise UserError(f"sweeps: no grid has a sweep {', '.join(unknown)}")


def _check_sweep(study: Study, fit: Fit) -> None:
    for tier, grid in study.grids.items():
        names = sorted({sweep.name for sweep in grid.sweeps} - {""})
        if fit.sweep and fit.sweep not in names:
            raise UserError(
                f"sweep: the {tier} grid has no sweep {fit.sweep!r}; it has "
                f"{', '.join(names) or 'none with a name'}"
            )


def _columns(study: Study, fit: Fit) -> tuple[dict[str, str], list[str]]:
    """The columns of numbers of the fit's table, with units, and the names of all."""
    if not fit.table:
        return OWN, [column.name for column in COLUMNS]
    for entry in study.fits:
        if entry.name == fit.table:
            if not entry.split_by:
                raise UserError(f"table: the fit {fit.table!r} is not split: it gives one row")
            return dict.fromkeys((entry.split_by, *laws.fittable(entry.law).names), ""), []
    code = next(d.code for d in study.derived if d.name == fit.table)
    declared = _assigned(_file(f"moelaws.analysis.{code}"), "COLUMNS")
    numbers, words = {}, ["source"]
    for call in declared.elts if isinstance(declared, ast.Tuple) else ():
        name, kind, unit = (
            a.value if isinstance(a, ast.Constant) else "" for a in getattr(call, "args", ())[:3]
        )
        if kind in NUMBERS:
            numbers[str(name)] = str(unit)
        words.append(str(name))
    return numbers, words


def _check_fit(fit: Fit, units: dict[str, str], known: list[str]) -> None:
    law = laws.fittable(fit.law)
    overridden(law, fit.protocol, fit.name)
    for name in fit.profile:
        if name not in law.names:
            raise UserError(
                f"profile: {name!r} is no parameter of {law.ref}; it has {', '.join(law.names)}"
            )
    expressions = parse_rows(fit.rows) + parse_rows(fit.holdout)
    for column in (*fit.mapping.values(), fit.split_by, fit.weights, fit.rollout):
        if column and column not in units:
            raise UserError(f"{column!r} is no column of numbers; there are {', '.join(units)}")
    found = sources(law, fit.mapping, tuple(units))
    unit_factors(found, fit.units, units)
    if fit.weights:
        word = fit.units.get(law.response.name)
        refuse_unit(law.response, fit.weights, units[fit.weights], word)
    for clause in expressions:
        if clause.column not in units and clause.column not in found.variables:
            raise UserError(
                f"{clause.column!r} is no column of numbers; there are {', '.join(units)}"
            )
    if fit.resample_by and fit.resample_by not in known:
        raise UserError(
            f"resample_by: {fit.resample_by!r} is no column; there are {', '.join(known)}"
        )
