"""Arithmetic over a table's columns, such as ``steps * 256 * 2048``.

An expression has names of columns, numbers, ``+ - * / **``, brackets, and ``ln``, ``exp``, ``min``
and ``max`` of such expressions. Python's parser reads it, but Python never evaluates it.
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

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
# name -> number of arguments (None: any), function
_FUNCTIONS: dict[str, tuple[int | None, Callable[..., Any]]] = {
    "ln": (1, np.log),
    "exp": (1, np.exp),
    "min": (None, lambda *x: reduce(np.minimum, x)),
    "max": (None, lambda *x: reduce(np.maximum, x)),
}
_ALLOWED = (
    f"it may have columns, numbers, + - * / **, brackets and {', '.join(_FUNCTIONS)} of these"
)


def names(expression: str) -> frozenset[str]:
    """Returns the columns that ``expression`` reads."""
    return frozenset(_walk(_parse(expression), expression))


def evaluate(expression: str, columns: Mapping[str, Array], n: int) -> Array:
    """Returns the value of ``expression`` in each of ``n`` rows of ``columns``, floats (n,).

    Undefined values, such as a quotient by zero, are NaN or infinite; the caller checks for them.
    """
    tree = _parse(expression)
    for name in _walk(tree, expression):
        if name not in columns:
            known = or_nearest(name, columns, "there are")
            raise UserError(
                f"expression {quoted(expression)}: no column {name!r} of numbers{known}"
            )
    with np.errstate(all="ignore"):
        value = _value(tree, columns)
    return np.array(np.broadcast_to(np.asarray(value, float), n))


def _parse(expression: str) -> ast.expr:
    if len(expression) > MAX_LENGTH:
        raise UserError(
            f"expression {quoted(expression)}: it has {len(expression):,} characters; at most "
            f"{MAX_LENGTH:,} are allowed"
        )
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UserError(f"expression {quoted(expression)} is no arithmetic; {_ALLOWED}") from None


def _walk(node: ast.expr, expression: str, depth: int = 0) -> list[str]:
    """Returns the columns that ``node`` names; refuses whatever is not allowed in it."""
    if depth > DEEPEST:
        raise UserError(f"expression {quoted(expression)} is no arithmetic that a person reads")
    match node:
        case ast.Name(id=name):
            return [name]
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            if number >= 1e100:
                raise UserError(
                    f"expression {quoted(expression)}: a number in it is not below 1e100"
                )
            return []
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            return _walk(inner, expression, depth + 1)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return [n for side in (left, right) for n in _walk(side, expression, depth + 1)]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            count = _FUNCTIONS[name][0]
            if args and count in (None, len(args)):
                return [column for arg in args for column in _walk(arg, expression, depth + 1)]
    text = ast.get_source_segment(expression.strip(), node)  # ast.unparse recurses without limit
    raise UserError(f"expression {quoted(expression)}: {quoted(text)} is not allowed; {_ALLOWED}")


def _value(node: ast.expr, columns: Mapping[str, Array]) -> Any:
    match node:
        case ast.Name(id=name):
            return columns[name]
        case ast.Constant(value=number):
            return np.float64(number)  # type: ignore[arg-type]
        case ast.UnaryOp(op=op, operand=inner):
            value = _value(inner, columns)
            return -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, columns), _value(right, columns))
        case ast.Call(func=ast.Name(id=name), args=args):
            return _FUNCTIONS[name][1](*(_value(arg, columns) for arg in args))
    raise AssertionError(node)  # _walk refuses all else
