"""The text that users read as a law's equation, evaluated."""

import math
import re

import numpy as np

FUNCTIONS = {"e": math.e, "ln": np.log, "log2": np.log2, "log10": np.log10, "exp": np.exp}


def said(law, columns, params=None):
    """Left-hand side -> value of each ``name = expression`` of the text, in whatever order.

    ``1/x = ...`` gives x, and ``ln(x) = ...`` too. ``lambda``, a word of Python, is renamed.
    """
    names = (
        FUNCTIONS
        | {"abs": np.abs, "min": np.minimum}
        | dict(params or law.published or {})
        | dict(columns)
    )
    names = {name.replace("lambda", "lambda_"): value for name, value in names.items()}
    text = law.equation.replace("^", "**").replace("lambda", "lambda_")
    clauses = re.split(r"(?:;|,)(?: where)? (?=[\w/()]+ = )", text)
    values = {}
    while clauses:
        ready = [c for c in clauses if _names(c.split(" = ", 1)[1]) <= {*names, *values}]
        assert ready, f"{law.ref}: {clauses} cannot be evaluated"
        for clause in ready:
            name, expression = clause.split(" = ", 1)
            with np.errstate(over="ignore"):
                value = eval(expression, {}, names | values)
            if name.startswith("1/"):
                name, value = name[2:], 1 / value
            elif name.startswith("ln("):
                name, value = name[3:-1], np.exp(value)
            values[name] = value
            clauses.remove(clause)
    return values


def _names(expression):
    return set(compile(expression, "equation", "eval").co_names)
