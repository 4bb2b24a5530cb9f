"""IsoFLOP surface: loss over size and sparsity at one compute (sparsity paper, Eq 8)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import SPARSITY, Array, Columns, Parameter, Protocol, Variable
from moelaws.laws.kinds import Feature, LinearLaw

DEGREES = tuple(itertools.product(range(5), repeat=3))  # the paper's candidates, by alpha_1..3


def _u(columns: Columns) -> Array:
    return np.asarray(np.log(columns["N"]))


def _v(columns: Columns) -> Array:
    return np.asarray(-np.log1p(-columns["S"]))


def _uv(columns: Columns) -> Array:
    return _u(columns) * _v(columns)


def _power(base: Feature, degree: int) -> Feature:
    return lambda columns: base(columns) ** degree


def surface(degrees: tuple[int, int, int]) -> LinearLaw:
    """Eq 8 with powers of u, v and uv up to ``degrees``; ``LAW`` is that of (2, 2, 2)."""
    features: dict[str, Feature] = {
        f"{letter}{i}": _power(base, i)
        for letter, base, degree in zip("abc", (_u, _v, _uv), degrees, strict=True)
        for i in range(1, degree + 1)
    }
    features["d"] = lambda columns: np.ones_like(columns["N"])
    base_of = {"a": "u", "b": "v", "c": "(uv)"}
    parameters = tuple(
        Parameter(
            name,
            "nats/token",
            -math.inf,
            math.inf,
            f"coefficient of {base_of[name[0]]}^{name[1:]}" if name != "d" else "constant",
        )
        for name in features
    )
    return LinearLaw(
        id="sparsity.isoflop",
        title="IsoFLOP surface over size and sparsity at one compute",
        source=f"sparsity, Eq 8 at degrees {degrees}",
        equation="L = sum_i a_i u^i + sum_i b_i v^i + sum_i c_i (uv)^i + d, u = ln N, v = -ln(1-S)",
        latex=(
            r"L = \sum_i a_i u^i + \sum_i b_i v^i + \sum_i c_i (uv)^i + d,\quad"
            r" u = \ln N,\; v = -\ln(1-S)"
        ),
        variables=(
            Variable("N", "parameters", "total or active parameters: one of them throughout a fit"),
            Variable("S", "1", "sparsity (E - k) / E", SPARSITY),
        ),
        response=Variable("L", "nats/token", "held-out loss"),
        parameters=parameters,
        published=None,  # the paper prints the form and its error, not the coefficients
        features=features,
        protocol=Protocol(
            objective="squared",
            source="sparsity, App B: degrees by cross-validation, 100 random subsamples",
        ),
        errata=(
            "E2.4 (App B): the degrees printed as alpha = beta = gamma = 2 are alpha_1..alpha_3 of "
            "Eq 8; the surface called quadratic holds (uv)^2, which is quartic.",
        ),
    )


LAW = surface((2, 2, 2))


def optimal_size(params: Mapping[str, float], S: ArrayLike) -> Array:
    """N*(S): the size at the surface's minimum in u at each sparsity, in the fit's own N.

    NaN where the surface is not convex in u. Source: vertex of Eq 8.
    """
    v = -np.log1p(-np.asarray(S, float))
    curvature = params["a2"] + params["c2"] * v**2
    return np.exp(_vertex(params["a1"] + params["c1"] * v, curvature))


def optimal_sparsity(params: Mapping[str, float], N: ArrayLike, cap: float | None = None) -> Array:
    """S*(N): the sparsity at the surface's minimum in v at each size, at least 0.

    Args:
        params: the surface's coefficients.
        N: sizes, in the fit's own N.
        cap: the largest sparsity to report, such as the grid's own .98.

    NaN where the surface is not convex in v. Source: vertex of Eq 8.
    """
    u = np.log(np.asarray(N, float))
    curvature = params["b2"] + params["c2"] * u**2
    S = -np.expm1(-np.maximum(_vertex(params["b1"] + params["c1"] * u, curvature), 0.0))
    return S if cap is None else np.minimum(S, cap)


def _vertex(slope: Array, curvature: Array) -> Array:
    """Minimum of slope t + curvature t^2; NaN where there is none."""
    convex = curvature > 0
    return np.where(convex, -slope / (2 * np.where(convex, curvature, 1.0)), np.nan)
