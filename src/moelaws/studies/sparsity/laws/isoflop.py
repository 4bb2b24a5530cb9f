"""IsoFLOP surface: loss over size and sparsity at one compute (sparsity paper, Eq 8)."""

import itertools
import math
from collections.abc import Mapping

import numpy as np

from moelaws.laws.base import FitProtocol, Parameter
from moelaws.laws.forms import LinearLaw
from moelaws.laws.terms import Feature, one
from moelaws.laws.vocabulary import LOSS, variable

_BASES: Mapping[str, tuple[str, Feature]] = {
    "a": ("u", lambda columns: np.log(columns["N"])),
    "b": ("v", lambda columns: -np.log1p(-columns["S"])),
    "c": ("(u*v)", lambda columns: np.log(columns["N"]) * -np.log1p(-columns["S"])),
}


def _power(base: Feature, degree: int) -> Feature:
    return lambda columns: base(columns) ** degree


def surface(degrees: tuple[int, ...], variant: str = "") -> LinearLaw:
    """Returns Eq 8 with powers of u, v and uv up to ``degrees``."""
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
            "squared",
            "sparsity, App B: degrees by cross-validation, 100 random subsamples",
        ),
        errata=(
            "E2.4 (App B): the degrees printed as alpha = beta = gamma = 2 are alpha_1..alpha_3 of "
            "Eq 8; the surface called quadratic holds (uv)^2, which is quartic.",
            "The vertices N*(S) and S*(N) have a closed form up to degree 2 in their own variable, "
            "and are minima where the curvature is positive; S* is at least 0.",
        ),
    )


LAW = surface((2, 2, 2))

# The paper's candidates, by their three degrees alpha_1 to alpha_3, such as 211.
VARIANTS: Mapping[str, LinearLaw] = {
    name: surface(tuple(map(int, name)), name)
    for name in map("".join, itertools.product("01234", repeat=3))
}
