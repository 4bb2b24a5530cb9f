"""IsoFLOP surface: loss over size and sparsity at one compute (sparsity paper, Eq 8)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns, FitProtocol, Parameter
from moelaws.laws.forms import LinearLaw
from moelaws.laws.terms import Feature, one
from moelaws.laws.vocabulary import LOSS, variable
from moelaws.spec.errors import UserError

Degrees = tuple[int, int, int]

DEGREES: tuple[Degrees, ...] = tuple(
    itertools.product(range(5), range(5), range(5))
)  # the paper's candidates, by alpha_1..3


def _u(columns: Columns) -> Array:
    return np.asarray(np.log(columns["N"]))


def _v(columns: Columns) -> Array:
    return np.asarray(-np.log1p(-columns["S"]))


def _uv(columns: Columns) -> Array:
    return _u(columns) * _v(columns)


_BASES: Mapping[str, tuple[str, Feature]] = {"a": ("u", _u), "b": ("v", _v), "c": ("(u*v)", _uv)}


def _power(base: Feature, degree: int) -> Feature:
    return lambda columns: base(columns) ** degree


def surface(degrees: Degrees, variant: str = "") -> LinearLaw:
    """Eq 8 with powers of u, v and uv up to ``degrees``."""
    features: dict[str, Feature] = {}
    factor: dict[str, str] = {}
    for (letter, (text, base)), degree in zip(_BASES.items(), degrees, strict=True):
        for i in range(1, degree + 1):
            features[f"{letter}{i}"] = _power(base, i)
            factor[f"{letter}{i}"] = text if i == 1 else f"{text}^{i}"
    terms = [f"{name}*{text}" for name, text in factor.items()]
    descriptions = {name: f"coefficient of {text}" for name, text in factor.items()}
    descriptions["d"] = "constant"
    return LinearLaw(
        id="sparsity.isoflop",
        variant=variant,
        title="IsoFLOP surface over size and sparsity at one compute",
        source=f"sparsity, Eq 8 at degrees {degrees}",
        equation=f"L = {' + '.join([*terms, 'd'])}, u = ln(N), v = -ln(1-S)",
        latex=(
            rf"L = \sum_{{i=1}}^{{{degrees[0]}}} a_i u^i + \sum_{{i=1}}^{{{degrees[1]}}} b_i v^i"
            rf" + \sum_{{i=1}}^{{{degrees[2]}}} c_i (uv)^i + d,\quad u = \ln N,\; v = -\ln(1-S)"
        ),
        variables=(
            variable("N", "total or active parameters: one of them throughout a fit"),
            variable("S"),
        ),
        response=LOSS,
        # The paper prints the form and its error, not the coefficients.
        parameters=tuple(
            Parameter(name, "nats/token", -math.inf, math.inf, description)
            for name, description in descriptions.items()
        ),
        features={**features, "d": one},
        protocol=FitProtocol(
            objective="squared",
            source="sparsity, App B: degrees by cross-validation, 100 random subsamples",
        ),
        errata=(
            "E2.4 (App B): the degrees printed as alpha = beta = gamma = 2 are alpha_1..alpha_3 of "
            "Eq 8; the surface called quadratic holds (uv)^2, which is quartic.",
            "The vertices N*(S) and S*(N) have this closed form up to degree 2 in their own "
            "variable, and are minima where the curvature is positive; S* is at least 0.",
        ),
    )


LAW = surface((2, 2, 2))

# Every candidate by its three degrees, such as 211.
VARIANTS: Mapping[str, LinearLaw] = {
    name: surface(degrees, name) for degrees, name in ((d, "".join(map(str, d))) for d in DEGREES)
}


def optimal_size(params: Mapping[str, float], S: ArrayLike) -> Array:
    """N*(S): the size at the surface's minimum in u at each sparsity, in the fit's own N.

    NaN where the surface is not convex in u. Source: vertex of Eq 8.

    Raises:
        UserError: for a surface with u^3 or above, whose vertex this closed form does not give.
    """
    _refuse_above_2(params, "ac")
    v = -np.log1p(-np.asarray(S, float))
    return np.exp(_vertex(*_quadratic(params, "a", v)))


def optimal_sparsity(params: Mapping[str, float], N: ArrayLike, cap: float | None = None) -> Array:
    """S*(N): the sparsity at the surface's minimum in v at each size, at least 0.

    Args:
        params: the surface's coefficients.
        N: sizes, in the fit's own N.
        cap: the largest sparsity to report, such as the grid's own .98.

    NaN where the surface is not convex in v. Source: vertex of Eq 8.

    Raises:
        UserError: for a surface with v^3 or above, whose vertex this closed form does not give.
    """
    _refuse_above_2(params, "bc")
    u = np.log(np.asarray(N, float))
    S = -np.expm1(-np.maximum(_vertex(*_quadratic(params, "b", u)), 0.0))
    return S if cap is None else np.minimum(S, cap)


def _refuse_above_2(params: Mapping[str, float], letters: str) -> None:
    for name in (f"{letter}{degree}" for letter in letters for degree in (3, 4)):
        if np.any(np.asarray(params.get(name, 0.0)) != 0):
            raise UserError(
                f"sparsity.isoflop: coefficient {name} is of degree {name[1]}: the vertex in closed"
                f" form needs degrees up to 2 in {' and '.join(letters)}; fit such a variant, as"
                " sparsity.isoflop:222, or search the surface's minimum"
            )


def _quadratic(params: Mapping[str, float], own: str, other: Array) -> tuple[Array, Array]:
    """Coefficients of t and t^2 of the surface at the other variable; absent ones are 0."""
    first, second, c1, c2 = (params.get(name, 0.0) for name in (f"{own}1", f"{own}2", "c1", "c2"))
    return first + c1 * other, second + c2 * other**2


def _vertex(slope: Array, curvature: Array) -> Array:
    """Minimum of slope t + curvature t^2; NaN where there is none."""
    convex = curvature > 0
    return np.where(convex, -slope / (2 * np.where(convex, curvature, 1.0)), np.nan)
