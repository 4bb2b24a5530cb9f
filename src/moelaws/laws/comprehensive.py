"""Loss from sizes, data, and active and shared experts (Zhao et al. 2025, 2509.23678, Eq 11)."""

from dataclasses import replace

import numpy as np

from moelaws.laws.base import Array, Columns, FitProtocol, Parameter
from moelaws.laws.forms import GeneralLaw
from moelaws.laws.terms import irreducible_loss, over
from moelaws.laws.vocabulary import LOSS, variable

_LEAST = 1e-6  # nats/token: a negative coefficient can bring the sum to 0 while a fit searches


def _value_and_jacobian(theta_BP: Array, columns: Columns) -> tuple[Array, Array]:
    """Returns ln L (B, n) and its derivatives (B, P, n)."""
    theta_PB1 = theta_BP.T[:, :, None]
    ln_e, ln_f, ln_m, n, ln_kappa, ln_h, ln_a, alpha, ln_b, beta, ln_c, ln_eps = theta_PB1
    ln_N, ln_A, ln_D = (np.log(columns[name])[None] for name in ("N", "N_active", "D"))
    G = (columns["k"] + columns["E_s"])[None]
    s = columns["E_s"][None] / G
    experts = (np.exp(ln_e) * G, np.exp(ln_f) / G, np.exp(ln_m) * s**2, n * s)
    structure = sum(experts)
    total, active = np.exp(-alpha * ln_N), np.exp(ln_kappa - alpha * ln_A)
    ratio = np.exp(ln_h + ln_A - ln_N)
    scale = total + active + ratio
    of_N, of_A = np.exp(ln_a - alpha * ln_N), np.exp(ln_c - alpha * ln_A)
    of_D, floor = np.exp(ln_b - beta * ln_D), np.exp(ln_eps)
    L = np.maximum(structure * scale + of_N + of_A + of_D + floor, _LEAST)
    by_alpha = -ln_N * (structure * total + of_N) - ln_A * (structure * active + of_A)
    of_experts = (*(x * scale for x in experts[:3]), s * scale)
    of_sizes = (structure * active, structure * ratio, of_N, by_alpha)
    rows = np.broadcast_arrays(*of_experts, *of_sizes, of_D, -ln_D * of_D, of_A, floor)
    return np.log(L), np.stack(rows, axis=1) / L[:, None]


_N = variable("N")
_D = variable("D")
_ACTIVE, _SHARED = replace(variable("k"), default=5.0), replace(variable("E_s"), default=2.0)
_SIZE = "nats/token parameters^alpha"


def _factor(name: str, unit: str, published: float, what: str, *starts: float) -> Parameter:
    return Parameter(name, unit, 1e-9, 1e40, what, "log", published, starts)


LAW = GeneralLaw(
    id="comprehensive",
    title="Loss of mixtures from sizes, data, active experts and shared experts",
    source="Zhao et al. 2025 (arXiv 2509.23678), Eq 11; values: Table 2, App C.1",
    equation=(
        "L = (e*G + f/G + m*s^2 + n*s)*(N^-alpha + kappa*N_active^-alpha + h*N_active/N)"
        " + a*N^-alpha + b*D^-beta + c*N_active^-alpha + eps, G = k + E_s, s = E_s/G"
    ),
    latex=(
        r"L = \left(e G + \frac{f}{G} + m s^2 + n s\right) \left(\frac{1}{N^{\alpha}}"
        r" + \frac{\kappa}{N_{act}^{\alpha}} + \frac{h N_{act}}{N}\right) + \frac{a}{N^{\alpha}}"
        r" + \frac{b}{D^{\beta}} + \frac{c}{N_{act}^{\alpha}} + \varepsilon,"
        r"\quad G = k + E_s,\quad s = \frac{E_s}{G}"
    ),
    variables=(_N, variable("N_active"), _D, _ACTIVE, _SHARED),
    response=LOSS,
    parameters=(
        _factor("e", _SIZE, 0.1577, "coefficient of the active experts", -2.0),
        _factor("f", _SIZE, 7.2446, "coefficient of one over the active experts", 2.0),
        _factor("m", _SIZE, 5.1395, "coefficient of the squared share of shared experts", 1.5),
        Parameter("n", _SIZE, -1e3, 1e3, "coefficient of the share", "linear", -3.2363, (-3.0,)),
        _factor("kappa", "1", 0.0013, "weight of active beside total parameters", -6.0),
        _factor("h", "parameters^-alpha", 0.0450, "weight of the active fraction", -3.0),
        _factor("a", _SIZE, 38.051, "coefficient of the total size", 2.0, 4.0),
        over(_N, "alpha", 0.2383, "exponent of the sizes", starts=(0.1, 0.25, 0.4)).exponent,
        _factor("b", "nats/token tokens^beta", 27129.05, "coefficient of the data", 4.0, 8.0, 12.0),
        over(_D, "beta", 0.4694, "exponent of the data", starts=(0.3, 0.5)).exponent,
        _factor("c", _SIZE, 31.096, "coefficient of the active size", 2.0, 4.0),
        irreducible_loss("eps", 1.8182, starts=(0.5,)).coefficient,
    ),
    function=_value_and_jacobian,
    protocol=FitProtocol("huber", "ours, 72 starts: the paper does not describe its fit"),
    errata=(
        "R: the paper's G counts the active experts and its S is the share of shared experts among "
        "them. Here they are k + E_s and s = E_s/(k + E_s), for S is sparsity and G granularity; "
        "the paper's k is kappa, for k counts experts.",
        "R: N counts parameters: so read, the best N_active/N is 40 % at 30e9 and 22 % at 671e9, "
        "as the paper says. It does not say whether embeddings count. D is taken to count tokens.",
        "R: equation and values are as a survey quotes them. They give the paper's best G of about "
        "7, sqrt(f/e) = 6.78, and best S of about .31, -n/(2m) = .315; k = 5 and E_s = 2 are the "
        "whole numbers beside these. The ranges of the 446 runs are not known here.",
    ),
)
