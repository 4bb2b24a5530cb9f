"""Farseer: a data term whose coefficient and exponent change with size (Li et al. 2025)."""

import numpy as np

from moelaws.laws.base import Array, Columns
from moelaws.laws.declared import law_beside
from moelaws.laws.forms import log_sum_exp


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


LAW, VARIANTS = law_beside(__file__, function=_value_and_jacobian, second=_curvature)
