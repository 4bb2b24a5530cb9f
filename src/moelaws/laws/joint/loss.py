"""Loss from active size, data and experts of dense and MoE models (Ludziejewski et al. 2025, Eq 6).

At a fixed number of experts it is a Chinchilla law, L = m N_active^mu + n D^nu + c. Exponents keep
the paper's sign: they are negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from moelaws.laws.base import AT_LEAST_1, Array, Columns, FitProtocol, Parameter, Variable
from moelaws.laws.clark.routing import effective_experts, log_effective_experts
from moelaws.laws.kinds import GeneralLaw, PowerLawSum, Term, log


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """ln L (B, n) and its derivatives (B, P, n)."""
    ln_a, alpha, delta, gamma, ln_b, beta, omega, zeta, ln_start, ln_max, ln_c = theta_BP.T[
        :, :, None
    ]
    ln_N, ln_D = np.log(columns["N_active"])[None], np.log(columns["D"])[None]
    y, by_start, by_max = log_effective_experts(ln_start, ln_max, columns["E"][None])  # y = ln Eh
    size = ln_a + delta * y + (alpha + gamma * y) * ln_N
    data = ln_b + omega * y + (beta + zeta * y) * ln_D
    z = np.stack(np.broadcast_arrays(size, data, ln_c))
    top = z.max(axis=0)
    share = np.exp(z - top)
    total = share.sum(axis=0)
    p, q, r = share / total  # the terms' shares of the loss
    by_y = p * (delta + gamma * ln_N) + q * (omega + zeta * ln_D)
    of_size = (p, p * ln_N, p * y, p * y * ln_N)
    of_data = (q, q * ln_D, q * y, q * y * ln_D)
    rows = (*of_size, *of_data, by_y * by_start, by_y * by_max, r)
    return top + np.log(total), np.stack(rows, axis=1)


def at_experts(params: Mapping[str, float], E: ArrayLike) -> dict[str, Array]:
    """m, mu, n, nu and c of L = m N_active^mu + n D^nu + c, each of the shape of ``E`` experts.

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
        "c": np.full_like(y, p["c"]),
    }


@dataclass(frozen=True)
class Optimum:
    """The best split of a compute budget."""

    N_active: Array
    D: Array  # tokens
    L: Array  # nats/token

    @property
    def ratio(self) -> Array:
        """Tokens an active parameter."""
        return self.D / self.N_active


def compute_optimal(reduced: Mapping[str, ArrayLike], F: ArrayLike) -> Optimum:
    """The best active size and tokens at training compute ``F`` = 6 N_active D (FLOPs).

    Args:
        reduced: m, mu, n, nu and c at a number of experts, as :func:`at_experts` or the published
            values of a variant such as ``joint.loss:E32`` give them.
        F: FLOPs; broadcasts with them.

    NaN where mu or nu is not below 0. Source: Ludziejewski et al. 2025, Eq 7.
    """
    m, mu, n, nu, c = (np.asarray(reduced[name], float) for name in ("m", "mu", "n", "nu", "c"))
    falls = (mu < 0) & (nu < 0)
    size, data = np.where(falls, -mu, np.nan), np.where(falls, -nu, np.nan)
    ND = np.asarray(F, float) / 6
    N = (size * m / (data * n)) ** (1 / (size + data)) * ND ** (data / (size + data))
    D = ND / N
    return Optimum(N, D, m * N**mu + n * D**nu + c)


_N = Variable("N_active", "parameters", "active parameters, embeddings included")
_D = Variable("D", "tokens", "training tokens")
_L = Variable("L", "nats/token", "held-out loss")
_SOURCE = (
    "Ludziejewski et al. 2025, App B: Huber at delta 0.01 on ln L by log-sum-exp, L-BFGS; "
    "left out here: its weight decay of 1e-5 and the lower weight of runs of high loss"
)
_C = Parameter("c", "nats/token", 1e-3, 1e3, "irreducible loss", "log")
_EXPONENTS = (-0.5, -0.25, -0.05)
_FACTORS = tuple(float(np.log(x)) for x in (30.0, 100.0, 300.0))
_LOSSES = tuple(float(np.log(x)) for x in (0.5, 1.0, 2.0))
_CHANGES = (-0.5, 0.0, 0.5)

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
    variables=(
        _N,
        _D,
        Variable("E", "experts", "experts of an MoE layer, one active; 1 for dense", AT_LEAST_1),
    ),
    response=_L,
    parameters=(
        Parameter("a", "nats/token parameters^-alpha", 1e-6, 1e40, "size term at Eh = 1", "log"),
        Parameter("alpha", "1", -4.0, 0.0, "exponent of N_active at Eh = 1"),
        Parameter("delta", "1", -8.0, 8.0, "exponent of Eh in the size term"),
        Parameter("gamma", "1", -2.0, 2.0, "change of the exponent of N_active with ln Eh"),
        Parameter("b", "nats/token tokens^-beta", 1e-6, 1e40, "data term at Eh = 1", "log"),
        Parameter("beta", "1", -4.0, 0.0, "exponent of D at Eh = 1"),
        Parameter("omega", "1", -8.0, 8.0, "exponent of Eh in the data term"),
        Parameter("zeta", "1", -2.0, 2.0, "change of the exponent of D with ln Eh"),
        Parameter("E_start", "experts", 0.1, 1e3, "Eh at one expert", "log"),
        Parameter("E_max", "experts", 1.0, 1e9, "Eh at infinitely many experts", "log"),
        _C,
    ),
    coefficients={
        "a": 35.91,
        "alpha": -0.1889,
        "delta": -0.2285,
        "gamma": 0.0098,
        "b": 35.98,
        "beta": -0.1775,
        "omega": 0.5529,
        "zeta": -0.0259,
        "E_start": 2.0732,
        "E_max": 290.4521,
        "c": 1.3637,
    },
    function=_value_and_jacobian,
    protocol=FitProtocol(
        objective="huber",
        delta=0.01,
        grid={
            "a": _FACTORS,
            "alpha": _EXPONENTS,
            "delta": _CHANGES,
            "gamma": _CHANGES,
            "b": _FACTORS,
            "beta": _EXPONENTS,
            "omega": _CHANGES,
            "zeta": _CHANGES,
            "E_start": (float(np.log(2.0)),),
            "E_max": (float(np.log(256.0)),),
            "c": _LOSSES,
        },
        source=f"{_SOURCE}; 19,683 starts, those of E_start and E_max are ours",
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
    """The law at a fixed number of experts, a Chinchilla law in active parameters."""
    return PowerLawSum(
        id=LAW.id,
        variant=f"E{E}",
        title=f"Loss from active size and data at {E} expert{'s' if E > 1 else ''}",
        source=f"Ludziejewski et al. 2025, Eq 5; values: Table 4, E = {E}",
        equation="L = m*N_active^mu + n*D^nu + c",
        latex=r"L = m N_{act}^{\mu} + n D^{\nu} + c",
        variables=(_N, _D),
        response=_L,
        parameters=(
            Parameter("m", "nats/token parameters^-mu", 1e-6, 1e40, "size term", "log"),
            Parameter("mu", "1", -4.0, 0.0, "exponent of N_active"),
            Parameter("n", "nats/token tokens^-nu", 1e-6, 1e40, "data term", "log"),
            Parameter("nu", "1", -4.0, 0.0, "exponent of D"),
            _C,
        ),
        coefficients={"m": m, "mu": mu, "n": n, "nu": nu, "c": 1.3637},
        terms=(Term("m", {"mu": log("N_active")}), Term("n", {"nu": log("D")}), Term("c")),
        protocol=FitProtocol(
            objective="huber",
            delta=0.01,
            grid={
                "m": _FACTORS,
                "mu": _EXPONENTS,
                "n": _FACTORS,
                "nu": _EXPONENTS,
                "c": _LOSSES,
            },
            source=f"{_SOURCE}; 243 starts",
        ),
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
