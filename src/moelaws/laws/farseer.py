"""Farseer: a data term whose coefficient and exponent change with size (Li et al. 2025)."""

import numpy as np

from moelaws.laws.base import Array, Columns, FitProtocol, Parameter, Starts, signed
from moelaws.laws.forms import GeneralLaw, log_sum_exp
from moelaws.laws.vocabulary import LOSS, variable


def _curves(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns the three curves factor N^exponent + shift (3, B, n), and their derivatives.

    These are by the curve's own factor, exponent and shift, (3, 3, B, n). While a fit searches,
    values are cut where their exponential is still a number.
    """
    factor, exponent, shift = theta_BP.T.reshape(3, 3, -1, 1).swapaxes(0, 1)
    ln_N = np.log(columns["N"])
    slopes = np.ones((3, 3, len(theta_BP), len(ln_N)))
    power = np.exp(np.clip(exponent * ln_N, -50.0, 50.0), out=slopes[:, 0])
    scaled = factor * power
    np.multiply(scaled, ln_N, out=slopes[:, 1])
    return np.clip(scaled + shift, -300.0, 300.0), slopes


def _joined(curves: Array, columns: Columns) -> tuple[Array, Array, Array]:
    """Returns ln L (B, n), its derivatives by the three curves (3, B, n) and by how much D helps.

    The last is how far the data term's logarithm falls by D, (B, n).
    """
    floor, factor, ln_exponent = curves
    fall = np.exp(np.minimum(ln_exponent, 5.0)) * np.log(columns["D"])
    terms = np.stack([floor, factor - fall])
    ln_L = log_sum_exp(terms)
    p, q = terms  # which became their weights in the loss
    return ln_L, np.stack([p, q, -q * fall]), fall


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    curves, slopes = _curves(theta_BP, columns)
    ln_L, by_curve, _ = _joined(curves, columns)
    jacobian = by_curve[:, None] * slopes
    return ln_L, jacobian.reshape(9, *ln_L.shape).swapaxes(0, 1)


def _curvature(theta_BP: Array, columns: Columns, psi_Bn: Array) -> Array:
    """Returns the second derivatives of ln L, weighted by ``psi_Bn`` and summed over the rows."""
    curves, slopes = _curves(theta_BP, columns)
    _, by_curve, fall = _joined(curves, columns)
    p, q, by_exponent = by_curve
    # By the curves, they are p q v v' with v = (1, -1, fall), and by_exponent for the last alone.
    v = np.stack([np.ones_like(fall), -np.ones_like(fall), fall])
    along = (v[:, None] * slopes).reshape(9, *fall.shape).swapaxes(0, 1)
    curvature: Array = (along * (psi_Bn * p * q)[:, None]) @ along.swapaxes(1, 2)
    last = slopes[2].swapaxes(0, 1)
    curvature[:, 6:, 6:] += (last * (psi_Bn * by_exponent)[:, None]) @ last.swapaxes(1, 2)
    # A curve is linear in its factor and its shift.
    bends = np.einsum("cbn,cfbn->cfb", psi_Bn * by_curve * np.log(columns["N"]), slopes[:, :2])
    for curve, (by_factor, by_itself) in enumerate(bends):
        factor, exponent = 3 * curve, 3 * curve + 1
        curvature[:, factor, exponent] += by_factor
        curvature[:, exponent, factor] += by_factor
        curvature[:, exponent, exponent] += by_itself
    return curvature


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
    second=_curvature,
    protocol=FitProtocol("huber", "ours: the paper fits the three terms one after the other"),
    errata=(
        "R: coefficients are not shipped, for the paper was not at hand. A fit gives them.",
        "Factor, exponent and shift of a term hardly differ where N spans two decades: "
        "predictions are determined, the nine coefficients are not.",
    ),
)
