"""The text that users read as a law's equation, evaluated."""

import math

import numpy as np


def said(law, columns):
    """Left-hand side -> value, for each ``name = expression`` of a text joined by semicolons."""
    names = {"e": math.e, "ln": np.log, "log2": np.log2, **(law.published or {}), **columns}
    found = {}
    for part in law.equation.split(";"):
        name, text = part.split("=", 1)
        found[name.strip()] = eval(text.strip().replace("^", "**"), {}, names | found)
    return found
