"""Farseer: a data term whose coefficient and exponent change with size (Li et al. 2025)."""

import numpy as np

from moelaws.laws.base import Array, Columns, FitProtocol, Parameter, Starts, signed
from moelaws.laws.forms import GeneralLaw, log_sum_exp
from moelaws.laws.vocabulary import LOSS, variable


def _stretched(factor: Array, exponent: Array, shift: Array, ln_N: Array) -> tuple[Array, ...]:
    """Returns factor N^exponent + shift, and its derivatives by the three.

    While a fit searches, values are cut where their exponential is still a number.
    """
    power = np.exp(np.clip(exponent * ln_N, -50.0, 50.0))
    value = np.clip(factor * power + shift, -300.0, 300.0)
    return value, power, factor * power * ln_N, np.ones_like(power)


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    a3, gamma, b3, a2, beta, b2, a1, alpha, b1 = theta_BP.T[:, :, None]
    ln_N, ln_D = np.log(columns["N"])[None], np.log(columns["D"])[None]
    floor, *by_floor = _stretched(a3, gamma, b3, ln_N)
    factor, *by_factor = _stretched(a2, beta, b2, ln_N)
    ln_exponent, *by_exponent = _stretched(a1, alpha, b1, ln_N)
    fall = np.exp(np.minimum(ln_exponent, 5.0)) * ln_D
    terms = np.stack([floor, factor - fall])
    ln_L = log_sum_exp(terms)
    p, q = terms  # which became their weights in the loss
    rows = [p * x for x in by_floor] + [q * x for x in by_factor]
    return ln_L, np.stack([*rows, *(-q * fall * x for x in by_exponent)], axis=1)


def _triple(i: int, exponent: str, what: str, starts: Starts) -> list[Parameter]:
    """Returns factor, exponent of N and shift of one of the three logarithms."""
    factor, power, shift = starts
    return [
        signed(f"a{i}", 1e3, f"factor of N^{exponent} in {what}", None, (factor,)),
        signed(exponent, 1.0, f"exponent of N in {what}", None, (power,)),
        signed(f"b{i}", 1e3, f"shift of {what}", None, (shift,)),
    ]


LAW = GeneralLaw(
    id="farseer",
    title="Loss from size and data, whose term changes with size in factor and exponent",
    source="Li et al. 2025 (Farseer, arXiv 2506.10972)",
    equation="L = exp(a3*N^gamma + b3) + exp(a2*N^beta + b2)*D^(-exp(a1*N^alpha + b1))",
    latex=(r"L = e^{a_3 N^{\gamma} + b_3} + e^{a_2 N^{\beta} + b_2} D^{-e^{a_1 N^{\alpha} + b_1}}"),
    variables=(variable("N", "parameters without embeddings"), variable("D")),
    response=LOSS,
    parameters=(
        *_triple(3, "gamma", "ln of the loss at infinite data", (-0.1, 0.1, 0.5)),
        *_triple(2, "beta", "ln of the data term's factor", (30.0, -0.1, 0.0)),
        *_triple(1, "alpha", "ln of the data term's exponent", (-0.1, 0.1, 0.0)),
    ),
    function=_value_and_jacobian,
    protocol=FitProtocol("huber", "ours: the paper fits the three terms one after the other"),
    errata=(
        "R: coefficients are not shipped, for the paper was not at hand. A fit gives them.",
        "Factor, exponent and shift of a term hardly differ where N spans two decades: "
        "predictions are determined, the nine coefficients are not.",
    ),
)
