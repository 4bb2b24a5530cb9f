"""Row expressions ``COLUMN OP NUMBER [and ...]``: parsed here, never evaluated by Python."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator

from moelaws.spec.errors import UserError, listed

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
MAX_LENGTH = 1000  # characters of an expression; messages must be able to quote it
# The pattern is unambiguous, so a long text that does not match is refused in linear time.
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_CLAUSE = re.compile(rf"\s*([A-Za-z_][\w.]*)\s*(>=|<=|==|!=|>|<)\s*({_NUMBER})\s*")


@dataclass(frozen=True)
class Clause:
    column: str
    op: str
    number: float

    def holds(self, value: object) -> bool:
        """Returns whether ``value`` satisfies the clause; anything but a number never does."""
        is_number = isinstance(value, int | float) and value == value
        return is_number and bool(_OPERATORS[self.op](value, self.number))


def parse_rows(expression: str) -> tuple[Clause, ...]:
    """Returns the clauses of ``expression``, all of which must hold; an empty text has none."""
    if len(expression) > MAX_LENGTH:
        raise UserError(
            f"rows expression {expression[:40]!r}...: it has {len(expression):,} characters; at "
            f"most {MAX_LENGTH:,} are allowed"
        )
    if not expression.strip():
        return ()
    clauses = []
    for clause in re.split(r"\band\b", expression):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            raise UserError(
                f"rows expression {expression!r}: {clause.strip()!r} is not COLUMN OP NUMBER; "
                f"OP is one of {' '.join(_OPERATORS)}, clauses are joined by 'and'"
            )
        clauses.append(Clause(match[1], match[2], float(match[3])))
    return tuple(clauses)


def _checked(expression: str) -> str:
    try:
        parse_rows(expression)
    except UserError as error:
        raise ValueError(str(error)) from None
    return expression


RowExpression = Annotated[str, AfterValidator(_checked)]


def select(columns: Mapping[str, Any], expression: str) -> Any:
    """Returns a mask (n,) of the rows where every clause of ``expression`` holds; NaN never does.

    ``columns`` maps names to numeric arrays of shape (n,). An empty expression selects all rows: it
    returns ``True``, which NumPy and pandas broadcast.
    """
    mask: Any = True
    for clause in parse_rows(expression):
        if clause.column not in columns:
            raise UserError(
                f"rows expression {expression!r}: no column {clause.column!r}; "
                f"there are {listed(sorted(columns))}"
            )
        column = columns[clause.column]
        holds = _OPERATORS[clause.op](column, clause.number)
        if clause.op == "!=":  # NaN != x is true to IEEE, but a missing value selects nothing
            holds = holds & (column == column)
        mask = mask & holds
    return mask
