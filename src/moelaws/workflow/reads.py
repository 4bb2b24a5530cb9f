"""Which fits and derived tables an entry's code is certain to read, told from its source text.

Followed are the entry's function and the functions that it hands its inputs to, wherever a name is
written out, is a constant of the module or stands under the entry's ``with``. What a condition
guards is not certain, and what is computed is not known: neither is counted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moelaws.records.code import constant, definition, function_named
from moelaws.spec.references import module_of

# Method of the inputs -> the key of an entry under which what it reads is declared.
METHODS = {
    **dict.fromkeys(("fit", "draws", "spec", "rows"), "fits"),
    "derived": "derived",
    "shipped": "data",
}
_INPUTS = object()
_UNCERTAIN = (
    *(ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.Match, ast.While),
    *(ast.Lambda, ast.FunctionDef, ast.ClassDef),
)


def reads(home: str, reference: str, arguments: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Returns pairs of an entry's key and a name, such as ("fits", "loss").

    ("fits", "") says that all declared fits are read, whatever their names.

    Args:
        home: the study's package.
        reference: the entry's code, such as figures.optima:draw.
        arguments: the entry's ``with``.

    Raises:
        UserError: where the function is not there.
    """
    function = definition(home, reference)
    first, *_ = function.args.args
    known = {**arguments, first.arg: _INPUTS}
    return set(_reads(module_of(home, reference), function, known, ()))


def _reads(
    module: str, function: ast.FunctionDef, known: Mapping[str, Any], above: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    known = {**_defaults(function), **known}
    for node in _certain(function.body):
        if (
            isinstance(node, ast.Attribute)
            and _is_inputs(node.value, known)
            and node.attr == "fits"
        ):
            yield "fits", ""
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Attribute) and _is_inputs(called.value, known):
            name = _value(node.args[0], module, known) if node.args else None
            if called.attr in METHODS and isinstance(name, str):
                yield METHODS[called.attr], name
        elif isinstance(called, ast.Name) and any(_is_inputs(a, known) for a in node.args):
            place = function_named(module, called.id)
            if place is not None and place[1].name not in above:
                values = [_value(argument, module, known) for argument in node.args]
                names = [parameter.arg for parameter in place[1].args.args]
                given = dict(zip(names, values, strict=False))
                given |= {k.arg: _value(k.value, module, known) for k in node.keywords if k.arg}
                yield from _reads(*place, given, (*above, place[1].name))


def _certain(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yields the nodes that are evaluated whatever the data, down to the first condition."""
    for node in nodes:
        if not isinstance(node, _UNCERTAIN):
            yield node
            yield from _certain(ast.iter_child_nodes(node))
            if isinstance(node, ast.Return):
                return


def _is_inputs(node: ast.AST, known: Mapping[str, Any]) -> bool:
    return isinstance(node, ast.Name) and known.get(node.id) is _INPUTS


def _value(node: ast.AST, module: str, known: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return known[node.id] if node.id in known else constant(module, node.id)
    return None


def _defaults(function: ast.FunctionDef) -> dict[str, Any]:
    arguments = function.args
    positional = arguments.args[len(arguments.args) - len(arguments.defaults) :]
    pairs = [
        *zip(positional, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {a.arg: d.value for a, d in pairs if isinstance(d, ast.Constant)}
