"""Loss from active size, data and experts of dense and MoE models (Ludziejewski et al. 2025, Eq 6).

At a fixed number of experts it is a Chinchilla law, L = m N_active^mu + n D^nu + c. Exponents keep
the paper's sign: they are negative.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import Array, Columns, FitProtocol, Parameter, signed
from moelaws.laws.clark.routing import E_MAX, E_START, effective_experts, ln_saturated
from moelaws.laws.forms import GeneralLaw, PowerLawSum, log_sum_exp, power_law_sum
from moelaws.laws.terms import Term, irreducible_loss, times
from moelaws.laws.vocabulary import LOSS, variable


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    theta_PB1 = theta_BP.T[:, :, None]
    ln_a, alpha, delta, gamma, ln_b, beta, omega, zeta, ln_start, ln_max, ln_c = theta_PB1
    ln_N, ln_D = np.log(columns["N_active"])[None], np.log(columns["D"])[None]
    y, by_start, by_max = ln_saturated(columns["E"] - 1, ln_start, ln_max)  # y = ln Eh
    size = ln_a + delta * y + (alpha + gamma * y) * ln_N
    data = ln_b + omega * y + (beta + zeta * y) * ln_D
    terms = np.stack(np.broadcast_arrays(size, data, ln_c))
    ln_L = log_sum_exp(terms)
    p, q, r = terms  # which became their weights in the loss
    by_y = p * (delta + gamma * ln_N) + q * (omega + zeta * ln_D)
    of_size = (p, p * ln_N, p * y, p * y * ln_N)
    of_data = (q, q * ln_D, q * y, q * y * ln_D)
    rows = (*of_size, *of_data, by_y * by_start, by_y * by_max, r)
    return ln_L, np.stack(rows, axis=1)


def at_experts(params: Mapping[str, Any], E: ArrayLike) -> dict[str, Array]:
    """Returns m, mu, n, nu and c of L = m N_active^mu + n D^nu + c, each of the shape of ``E``.

    Parameters of several draws broadcast with it.

    Source: Ludziejewski et al. 2025, Eq 5: m = a Eh^delta, mu = alpha + gamma ln Eh, and
    n = b Eh^omega, nu = beta + zeta ln Eh.
    """
    p = params
    y = np.log(effective_experts(E, p["E_start"], p["E_max"]))
    return {
        "m": np.asarray(p["a"] * np.exp(p["delta"] * y)),
        "mu": np.asarray(p["alpha"] + p["gamma"] * y),
        "n": np.asarray(p["b"] * np.exp(p["omega"] * y)),
        "nu": np.asarray(p["beta"] + p["zeta"] * y),
        "c": p["c"] + np.zeros_like(y),
    }


@dataclass(frozen=True)
class Optimum:
    """The best split of a compute budget."""

    N_active: Array
    D: Array  # tokens
    L: Array  # nats/token

    @property
    def ratio(self) -> Array:
        """Returns the tokens for each active parameter."""
        return self.D / self.N_active


def compute_optimal(reduced: Mapping[str, ArrayLike], F: ArrayLike) -> Optimum:
    """Returns the best active size and tokens at training compute ``F`` = 6 N_active D (FLOPs).

    ``reduced`` are m, mu, n, nu and c at a number of experts, as :func:`at_experts` or a variant
    such as ``joint.loss:E32`` give them; F broadcasts with them. NaN where mu or nu is not below 0.
    Source: Ludziejewski et al. 2025, Eq 7.
    """
    m, mu, n, nu, c = (np.asarray(reduced[name], float) for name in ("m", "mu", "n", "nu", "c"))
    falls = (mu < 0) & (nu < 0)
    size, data = np.where(falls, -mu, np.nan), np.where(falls, -nu, np.nan)
    ND = np.asarray(F, float) / 6
    N = (size * m / (data * n)) ** (1 / (size + data)) * ND ** (data / (size + data))
    D = ND / N
    return Optimum(N, D, m * N**mu + n * D**nu + c)


_N = variable("N_active", "active parameters, embeddings included")
_D = variable("D")
_E = variable("E", "experts of an MoE layer, one active; 1 for dense")
_SOURCE = (
    "Ludziejewski et al. 2025, App B: Huber at delta 0.01 on ln L by log-sum-exp, L-BFGS; "
    "left out here: its weight decay of 1e-5 and the lower weight of runs of high loss"
)
_PROTOCOL = FitProtocol("huber", f"{_SOURCE}; 243 starts", delta=0.01)
_FACTORS = tuple(float(np.log(x)) for x in (30.0, 100.0, 300.0))
_EXPONENTS = (-0.5, -0.25, -0.05)
_CHANGES = (-0.5, 0.0, 0.5)
_LOSSES = tuple(float(np.log(x)) for x in (0.5, 1.0, 2.0))
_FLOOR = irreducible_loss("c", 1.3637, starts=_LOSSES)


def _factor(name: str, unit: str, published: float, description: str) -> Parameter:
    unit = f"nats/token {unit}"
    return Parameter(name, unit, 1e-6, 1e40, description, "log", published, _FACTORS)


LAW = GeneralLaw(
    id="joint.loss",
    title="Loss from active size, data and experts, dense and MoE in one law",
    source="Ludziejewski et al. 2025, Eq 6; values: Table 3",
    equation=(
        "L = a*Eh^delta*N_active^(alpha + gamma*ln(Eh)) + b*Eh^omega*D^(beta + zeta*ln(Eh)) + c, "
        "1/Eh = 1/(E - 1 + 1/(1/E_start - 1/E_max)) + 1/E_max"
    ),
    latex=(
        r"L = a \hat{E}^{\delta} N_{act}^{\alpha + \gamma \ln \hat{E}}"
        r" + b \hat{E}^{\omega} D^{\beta + \zeta \ln \hat{E}} + c,\quad \frac{1}{\hat{E}} ="
        r" \frac{1}{E - 1 + \left(1/E_{start} - 1/E_{max}\right)^{-1}} + \frac{1}{E_{max}}"
    ),
    variables=(_N, _D, _E),
    response=LOSS,
    parameters=(
        _factor("a", "parameters^-alpha", 35.91, "size term at Eh = 1"),
        times(_N, "alpha", -0.1889, "exponent of N_active at Eh = 1", starts=_EXPONENTS).exponent,
        signed("delta", 8.0, "exponent of Eh in the size term", -0.2285, _CHANGES),
        signed("gamma", 2.0, "change of the exponent of N_active with ln Eh", 0.0098, _CHANGES),
        _factor("b", "tokens^-beta", 35.98, "data term at Eh = 1"),
        times(_D, "beta", -0.1775, "exponent of D at Eh = 1", starts=_EXPONENTS).exponent,
        signed("omega", 8.0, "exponent of Eh in the data term", 0.5529, _CHANGES),
        signed("zeta", 2.0, "change of the exponent of D with ln Eh", -0.0259, _CHANGES),
        replace(E_START, published=2.0732, starts=(float(np.log(2.0)),)),
        replace(E_MAX, published=290.4521, starts=(float(np.log(256.0)),)),
        _FLOOR.coefficient,
    ),
    function=_value_and_jacobian,
    only_with={
        "D": ("beta", "zeta"),
        "E": ("delta", "gamma", "omega", "zeta", "E_start", "E_max"),
    },
    protocol=replace(
        _PROTOCOL, source=f"{_SOURCE}; 19,683 starts, those of E_start and E_max are ours"
    ),
    errata=(
        "Eq 7: printed: G = (mu m/(nu n))^(1/(mu + nu)) with the negative mu and nu of Table 4; "
        "corrected: with their magnitudes. The printed sign inverts G; the paper's own Table 1 "
        "follows the corrected form.",
        "Eq 6: Eh is not E: Eh = E_start at one expert, so m, mu, n and nu of a dense model "
        "are not a, alpha, b and beta.",
        "The starts of alpha and beta are printed without their sign; here they are negative.",
        "Table 3 is rounded: its m, mu, n and nu differ from Table 4's by up to .3 %, its optimal "
        "N by up to 1 %. Table 1 follows Table 4, which the variants E1 to E32 hold.",
    ),
)


def _at(E: int, m: float, mu: float, n: float, nu: float) -> PowerLawSum:
    """Returns the law at a fixed number of experts, a Chinchilla law in active parameters."""
    size = times(_N, "mu", mu, "exponent of N_active", starts=_EXPONENTS)
    data = times(_D, "nu", nu, "exponent of D", starts=_EXPONENTS)
    return power_law_sum(
        id=LAW.id,
        variant=f"E{E}",
        title=f"Loss from active size and data at {E} expert{'s' if E > 1 else ''}",
        source=f"Ludziejewski et al. 2025, Eq 5; values: Table 4, E = {E}",
        terms=(
            Term(_factor("m", "parameters^-mu", m, "size term"), (size,)),
            Term(_factor("n", "tokens^-nu", n, "data term"), (data,)),
            _FLOOR,
        ),
        protocol=_PROTOCOL,
        errata=LAW.errata[:1],
    )


VARIANTS: Mapping[str, PowerLawSum] = {
    law.variant: law
    for law in (
        _at(1, 30.3640, -0.1817, 53.9838, -0.1965),
        _at(2, 27.7982, -0.1780, 66.8401, -0.2065),
        _at(4, 24.8462, -0.1731, 87.7022, -0.2192),
        _at(8, 21.8330, -0.1676, 119.9126, -0.2338),
        _at(16, 19.0159, -0.1617, 167.5073, -0.2494),
        _at(32, 16.5424, -0.1557, 234.6726, -0.2652),
    )
}
