"""Row expressions ``COLUMN OP VALUE [and ...]``: parsed here, never evaluated by Python.

A number is compared at the digits that tables show, or at all that the expression has if these are
more: what is shown as 0.9688 satisfies S >= 0.9688, and not S > 0.9688. Whole numbers are compared
as they are, except with one that is written short, such as 38.13K.
"""

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator

from moelaws.spec.errors import UserError, listed, located
from moelaws.spec.numbers import amount

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_SHOWN = 4  # digits of a number in a table
MAX_LENGTH = 1000  # characters of an expression; messages must be able to quote it
# The pattern is unambiguous, so a long text that does not match is refused in linear time.
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+|[kKMBT])?"
_QUOTED = r"\"[^\"]+\"|'[^']+'"
_CLAUSE = re.compile(
    rf"\s*([^\W\d][\w.]*|{_QUOTED})\s*(>=|<=|==?|!=|>|<)"
    rf"\s*(?:({_NUMBER})|([^\W\d][\w.-]*|{_QUOTED}))\s*(?:(\band\b|&&?|,)|\Z)"
)


@dataclass(frozen=True)
class Clause:
    column: str
    op: str
    value: float | str  # a number, another column, or a word
    is_word: bool = False  # whether ``value`` is in quotes, and so no column
    digits: int = 0  # of a number, by which it is compared
    is_short: bool = False  # whether a number ends in K, M, B or T


def parse_rows(expression: str) -> tuple[Clause, ...]:
    """Returns the clauses of ``expression``, all of which must hold; an empty text has none."""
    if len(expression) > MAX_LENGTH:
        raise UserError(
            f"rows expression {expression[:40]!r}...: it has {len(expression):,} characters; at "
            f"most {MAX_LENGTH:,} are allowed"
        )
    clauses = []
    rest, is_last = expression, not expression.strip()
    while not is_last:
        match = _CLAUSE.match(rest)
        if match is None:
            clause = re.split(r"\band\b|[&,]", rest)[0].strip()
            raise UserError(
                f"rows expression {expression!r}: {clause!r} is not COLUMN OP VALUE; OP is one of "
                f"{' '.join(_OPERATORS)}, VALUE a number, a word or another column; clauses are "
                "joined by 'and', & or a comma, and names with other signs than letters stand in "
                "quotes"
            )
        column, op, number, word, more = match.groups()
        op = "==" if op == "=" else op
        if number is None:
            clauses.append(Clause(_bare(column), op, _bare(word), word != _bare(word)))
        else:
            written = len(re.sub(r"[eE].*|\D", "", number).lstrip("0"))
            digits, short = max(written, _SHOWN), number[-1].isalpha()
            clauses.append(Clause(_bare(column), op, amount(number), False, digits, short))
        rest, is_last = rest[match.end() :], not more
    return tuple(clauses)


def _bare(word: str) -> str:
    return word[1:-1] if word[0] in "\"'" else word


def names_in(expression: str) -> set[str]:
    """Returns the columns that ``expression`` names, and the words that may be columns."""
    return {str(x) for clause in parse_rows(expression) for x in (clause.column, clause.value)}


def _checked(expression: str) -> str:
    try:
        parse_rows(expression)
    except UserError as error:
        raise ValueError(str(error)) from None
    return expression


RowExpression = Annotated[str, AfterValidator(_checked)]


def select(columns: Mapping[str, Any], expression: str) -> Any:
    """Returns a mask (n,) of the rows where every clause holds; a missing value satisfies none.

    ``columns`` maps names to arrays of shape (n,), which hold numbers, or texts as objects; a
    missing value is NaN. They may also be the values of one row, where a missing one is None. An
    empty expression selects all rows: it returns ``True``, which NumPy and pandas broadcast.
    """
    mask: Any = True
    clauses = parse_rows(expression)
    with located(f"rows expression {expression!r}"):
        for clause in clauses:
            mask = mask & _holds(columns, clause)
    return mask


def _holds(columns: Mapping[str, Any], clause: Clause) -> Any:
    name, right = clause.column, clause.value
    if name not in columns:
        raise UserError(f"no column {name!r}; there are {listed(sorted(columns))}")
    left = columns[name]
    if isinstance(right, str) and not clause.is_word:
        right = columns.get(right, right)
    if left is None or right is None:
        return False
    if _are_texts(left) != _are_texts(right):
        kind = "words, and no number" if _are_texts(left) else "numbers, and no word"
        raise UserError(f"{name} has {kind} such as {clause.value!r}")
    if _are_texts(left) and clause.op not in ("==", "!="):
        raise UserError(f"{name} has words, which only == and != compare")
    whole = isinstance(left, int) or "int" in str(getattr(left, "dtype", "")).lower()
    by_digits = clause.digits and (clause.is_short or not whole)
    if by_digits and isinstance(right, float) and 0 < abs(right) < math.inf:
        last = 10.0 ** (math.floor(math.log10(abs(right))) - clause.digits + 1)
        # Half of the last digit, and what rounding makes of a number in between
        left = right + (left - right) * (abs(left - right) > 0.5 * last * (1 + 1e-9))
    holds = _OPERATORS[clause.op](left, right)
    if clause.op == "!=":  # NaN != x is true to IEEE, but a missing value selects nothing
        holds = holds & (left == left) & (right == right)
    return holds


def _are_texts(values: Any) -> bool:
    return isinstance(values, str) or str(getattr(values, "dtype", "")) == "object"
