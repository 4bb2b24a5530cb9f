"""A study's entries checked before the first job starts: laws, columns, expressions, modules.

Light enough for the Snakefile: laws import NumPy alone.
"""

from __future__ import annotations

from moelaws import laws
from moelaws.records.code import closure
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


def _check_fit(fit: Fit) -> None:
    law = laws.get(fit.law)
    variables = [variable.name for variable in (*law.variables, law.response)]
    columns = [fit.mapping.get(variable, variable) for variable in variables]
    for variable in fit.mapping:
        if variable not in variables:
            raise UserError(
                f"mapping of {variable!r}: not a variable of {law.id}; it has "
                + ", ".join(variables)
            )
    expressions = parse_rows(fit.rows) + parse_rows(fit.holdout)
    columns += [clause.column for clause in expressions] + ([fit.split_by] if fit.split_by else [])
    for column in columns:
        if column not in NUMERIC:
            raise UserError(f"{column!r} is no column of numbers; there are {', '.join(NUMERIC)}")
