"""Arithmetic over a table's columns, such as ``steps * 256 * 2048``.

An expression has names of columns, numbers, ``+ - * / **``, brackets, and ``ln``, ``exp``,
``round``, ``min`` and ``max`` of such expressions. A name with other signs than letters stands in
quotes. Python's parser reads it, but Python never evaluates it.
"""

import ast
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moelaws.spec.errors import UserError, or_nearest, quoted
from moelaws.spec.rows import MAX_LENGTH

Array = NDArray[np.float64]
DEEPEST = 60  # levels of nesting

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
# name -> number of arguments (None: any), function
_FUNCTIONS: dict[str, tuple[int | None, Callable[..., Any]]] = {
    "ln": (1, np.log),
    "exp": (1, np.exp),
    "round": (1, np.round),
    "min": (None, lambda *x: reduce(np.minimum, x)),
    "max": (None, lambda *x: reduce(np.maximum, x)),
}
_ALLOWED = (
    f"it may have columns, numbers, + - * / **, brackets and {', '.join(_FUNCTIONS)} of these"
)


def names(expression: str) -> frozenset[str]:
    """Returns the columns that ``expression`` reads."""
    read: dict[str, np.float64] = {}
    _value(expression, lambda name: read.setdefault(name, np.float64(1)))
    return frozenset(read)


def evaluate(expression: str, columns: Mapping[str, Array], n: int) -> Array:
    """Returns the value of ``expression`` in each of ``n`` rows of ``columns``, floats (n,).

    Undefined values, such as a quotient by zero, are NaN or infinite; the caller checks for them.
    """

    def column(name: str) -> Array:
        if name not in columns:
            known = or_nearest(name, columns, "there are")
            raise UserError(
                f"expression {quoted(expression)}: no column {name!r} of numbers{known}"
            )
        return columns[name]

    value = np.asarray(_value(expression, column), float)
    return np.array(np.broadcast_to(value, n))


def _value(expression: str, column: Callable[[str], Any]) -> Any:
    """Returns the value over what ``column`` returns for each name; refuses what is not allowed."""
    shown = f"expression {quoted(expression)}"
    if len(expression) > MAX_LENGTH:
        raise UserError(
            f"{shown}: it has {len(expression):,} characters; at most {MAX_LENGTH:,} are allowed"
        )
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UserError(f"{shown} is no arithmetic; {_ALLOWED}") from None

    def value(node: ast.expr, depth: int = 0) -> Any:
        if depth > DEEPEST:
            raise UserError(f"{shown} is no arithmetic that a person reads")
        # ast.unparse recurses without limit
        text = ast.get_source_segment(expression.strip(), node) or ""
        match node:
            case ast.Name(id=name) | ast.Constant(value=str() as name):
                return column(name)
            case ast.Constant(value=int() | float() as number) if not (
                isinstance(number, bool) or "_" in text
            ):
                if number >= 1e100:
                    raise UserError(f"{shown}: a number in it is not below 1e100")
                return np.float64(number)
            case ast.UnaryOp(op=op, operand=inner) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(inner, depth + 1))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left, depth + 1), value(right, depth + 1))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                count, function = _FUNCTIONS[name]
                if args and count in (None, len(args)):
                    return function(*(value(argument, depth + 1) for argument in args))
        raise UserError(f"{shown}: {quoted(text)} is not allowed; {_ALLOWED}")

    with np.errstate(all="ignore"):
        return value(tree)
