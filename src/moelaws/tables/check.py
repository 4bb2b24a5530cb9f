"""A study's entries checked before the first job starts: laws, columns, expressions, modules.

Light enough for the Snakefile: laws import NumPy alone.
"""

from __future__ import annotations

import ast
from pathlib import Path

from moelaws import laws
from moelaws.laws.mapping import sources, unit_factors
from moelaws.laws.protocol import overridden
from moelaws.laws.vocabulary import refuse_unit
from moelaws.records.code import PACKAGE, closure
from moelaws.spec.errors import UserError
from moelaws.spec.rows import parse_rows
from moelaws.spec.study import Fit, Study
from moelaws.tables.schema import COLUMNS

NUMERIC = tuple(column.name for column in COLUMNS if column.type in ("int", "float"))


def check_study(study: Study) -> None:
    """Refuse what would only fail once every model is trained.

    Raises:
        UserError: naming file, entry, what is wrong and what is allowed.
    """
    where = f"config/studies/{study.study}.yaml"
    for fit in study.fits:
        try:
            _check_fit(fit)
        except UserError as error:
            raise UserError(f"{where}: fit {fit.name}: {error}") from None
    modules = [(d.name, f"moelaws.analysis.{d.code}") for d in study.derived]
    modules += [(f.id, f"moelaws.figures.{study.study}.{f.code}") for f in study.figures]
    for name, module in modules:
        try:
            closure(module)
        except UserError as error:
            raise UserError(f"{where}: {name}: code: {error}") from None
    for figure in study.figures:
        drawn = _figures_of(PACKAGE / f"figures/{study.study}/{figure.code}.py")
        if figure.id not in drawn:
            raise UserError(
                f"{where}: figure {figure.id}: code {figure.code} draws {', '.join(sorted(drawn))}"
            )


def _figures_of(path: Path) -> set[str]:
    """The keys of a figure module's FIGURES, by its text: importing it would take Matplotlib."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id == "FIGURES" for t in targets):
                keys = node.value.keys if isinstance(node.value, ast.Dict) else []
                return {str(key.value) for key in keys if isinstance(key, ast.Constant)}
    raise UserError(f"{path}: no FIGURES; it maps each figure's id to the function that draws it")


def _check_fit(fit: Fit) -> None:
    law = laws.fittable(fit.law)
    overridden(law, fit.protocol, fit.name)
    for name in fit.profile:
        if name not in law.names:
            raise UserError(
                f"profile: {name!r} is no parameter of {law.ref}; it has {', '.join(law.names)}"
            )
    expressions = parse_rows(fit.rows) + parse_rows(fit.holdout)
    for column in (*fit.mapping.values(), fit.split_by, fit.weights, fit.rollout):
        if column and column not in NUMERIC:
            raise UserError(f"{column!r} is no column of numbers; there are {', '.join(NUMERIC)}")
    found = sources(law, fit.mapping, NUMERIC)
    units = {column.name: column.unit for column in COLUMNS}
    unit_factors(found, fit.units, units)
    if fit.weights:
        word = fit.units.get(law.response.name)
        refuse_unit(law.response, fit.weights, units[fit.weights], word)
    for clause in expressions:
        if clause.column not in NUMERIC and clause.column not in found.variables:
            raise UserError(
                f"{clause.column!r} is no column of numbers; there are {', '.join(NUMERIC)}"
            )
    known = [column.name for column in COLUMNS]
    if fit.resample_by and fit.resample_by not in known:
        raise UserError(
            f"resample_by: {fit.resample_by!r} is no column; there are {', '.join(known)}"
        )
