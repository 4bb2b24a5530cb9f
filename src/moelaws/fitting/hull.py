"""The convex hull of a fit's rows: whether a query point lies within what was measured.

Each variable is taken on the scale on which laws see it: ln of a positive quantity, -ln(1 - S) of a
sparsity. The hull is kept as half-spaces, so that asking needs NumPy alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from moelaws.laws.base import SPARSITY, Array, Columns, Law, Mask, Variable

SLACK = 1e-6  # of each variable's range: the hull's own corners are inside
MOST = 2000  # half-spaces kept; beyond it the box of the ranges alone


def hull_of(law: Law, columns: Columns) -> dict[str, Any]:
    """The hull of rows ``columns`` (n,) as JSON data.

    ``ranges`` maps each variable to its least and largest value; ``normals`` (K, V) and ``offsets``
    (K,) are the half-spaces normal . x <= offset over the variables, scaled to their ranges.
    """
    from scipy.spatial import ConvexHull, QhullError

    ranges = {
        v.name: [float(columns[v.name].min()), float(columns[v.name].max())] for v in law.variables
    }
    x, vary = _scaled(law, ranges, columns)
    x, names = x[:, vary], [v.name for v, varies in zip(law.variables, vary, strict=True) if varies]
    empty: dict[str, Any] = {"ranges": ranges, "variables": names, "normals": [], "offsets": []}
    if len(names) < 2:
        return empty
    # Rows of one budget, say, lie in a plane of the space: the hull is one within that plane.
    centre = x.mean(axis=0)
    _, s, axes = np.linalg.svd(np.linalg.qr(x - centre, mode="r"), full_matrices=True)
    rank = int((s > 1e-6 * s[0]).sum())
    inner = (x - centre) @ axes[:rank].T
    flat = axes[rank:]
    normals = [*flat, *-flat]
    offsets = [*(flat @ centre), *-(flat @ centre)]
    if rank > 1:
        try:
            equations = ConvexHull(inner).equations
        except QhullError:
            return empty
    else:
        equations = np.array([[1.0, -inner.max()], [-1.0, inner.min()]])
    if len(equations) > MOST:
        return empty
    outward = equations[:, :-1] @ axes[:rank]
    normals += [*outward]
    offsets += [*(outward @ centre - equations[:, -1])]
    return empty | {"normals": np.array(normals).tolist(), "offsets": np.array(offsets).tolist()}


def outside(law: Law, hull: Mapping[str, Any], columns: Columns) -> Mask:
    """Which query points (n,) lie outside the hull."""
    x, vary = _scaled(law, hull["ranges"], columns)
    beyond = np.asarray(((x < -SLACK) | (x > vary + SLACK)).any(axis=1))
    if hull["normals"]:
        names = [v.name for v in law.variables]
        inside_of = x[:, [names.index(name) for name in hull["variables"]]]
        excess = inside_of @ np.array(hull["normals"]).T - np.array(hull["offsets"])
        beyond = beyond | (excess > SLACK).any(axis=1)
    return beyond


def beyond_ranges(hull: Mapping[str, Any], values: Mapping[str, float]) -> list[str]:
    """Sentences on the variables of one query that lie outside the rows' range."""
    return [
        f"{name} = {values[name]:.6g} is outside the {low:.6g} to {high:.6g} of the fitted rows"
        for name, (low, high) in hull["ranges"].items()
        if name in values and not low - 1e-9 * abs(low) <= values[name] <= high + 1e-9 * abs(high)
    ]


def _scaled(law: Law, ranges: Mapping[str, Any], columns: Columns) -> tuple[Array, Mask]:
    """Columns as (n, V) from 0 to 1 over their ranges, 0 for a constant; and which vary."""
    scaled, vary = [], []
    for variable in law.variables:
        low, high = _own_scale(variable, np.array(ranges[variable.name]))
        x = _own_scale(variable, np.atleast_1d(columns[variable.name]))
        varies = bool(high - low > 1e-12 * max(abs(low), abs(high), 1.0))
        scaled.append((x - low) / (high - low) if varies else (x - low))
        vary.append(varies)
    return np.stack(np.broadcast_arrays(*scaled), axis=1), np.array(vary)


def _own_scale(variable: Variable, values: Array) -> Array:
    if variable.domain is SPARSITY:
        return np.asarray(-np.log1p(-values))
    if variable.domain.holds(np.zeros(1))[0]:
        return values
    return np.asarray(np.log(values))
