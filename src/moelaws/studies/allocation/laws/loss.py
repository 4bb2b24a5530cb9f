"""Loss from size, data, sparsity and the expert-attention ratio (allocation paper, Eq 2).

Shapes: B parameter vectors, n rows, P parameters, T = 5 terms.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from moelaws.laws.base import Array, Columns, Derivation, FittableLaw, State
from moelaws.laws.declared import law_beside
from moelaws.laws.forms import PowerLawModel, log_sum_exp
from moelaws.studies.allocation.laws import ratio

# The bound on ln of the factor (1-S)^gamma: the square of such a factor, times another, still is a
# finite number.
_LARGEST_LOG_FACTOR = 100.0

# The order of the parameters in every vector and Jacobian here.
_A, _B, _C, _D, _TAU, _ALPHA, _BETA, _LAMBDA, _GAMMA = range(9)
_PENALTY, _EXPERTS = 2, 3  # the terms of c and d


@dataclass(frozen=True)
class Form:
    """A reading of one factor in Eq 2: text, LaTeX, and a function of a table's columns."""

    equation: str
    latex: str
    of: Callable[[Columns], Array]


def _ln_ratio(columns: Columns) -> Array:
    return np.log(columns["r"]) - np.log(columns["r_star"])


# R of Eq 2, which the paper never defines, is the deviation from the optimal ratio.
DEVIATIONS: Mapping[str, Form] = {
    "abslog": Form(
        "abs(ln(r/r_star))", r"\left|\ln\frac{r}{r^*}\right|", lambda x: np.abs(_ln_ratio(x))
    ),
    "absdiff": Form("abs(r - r_star)", r"|r - r^*|", lambda x: np.abs(x["r"] - x["r_star"])),
    "sqlog": Form("ln(r/r_star)^2", r"\ln^2\frac{r}{r^*}", lambda x: _ln_ratio(x) ** 2),
    "literal": Form("r", "r", lambda x: x["r"]),
}
# The experts' fraction of the FLOPs, in the paper's own form and the two that it tried and gave up
# (App D.2).
FRACTIONS: Mapping[str, Form] = {
    "fraction": Form("r/(1+r)", r"\frac{r}{1+r}", lambda x: x["r"] / (1 + x["r"])),
    "log1p": Form("ln(1+r)", r"\ln(1+r)", lambda x: np.log1p(x["r"])),
    "exp": Form("(1 - exp(-r))", r"\left(1-e^{-r}\right)", lambda x: -np.expm1(-x["r"])),
}


@dataclass(frozen=True, kw_only=True)
class AllocationLoss(FittableLaw):
    """Eq 2 with one reading of R and one form of the experts' fraction; fitted on ln L."""

    deviation: Callable[[Columns], Array]
    fraction: Callable[[Columns], Array]

    def model(self, columns: Columns) -> "AllocationModel":
        values = self.columns(columns)
        return AllocationModel(
            np.log(values["N"]),
            np.log(values["D"]),
            np.log1p(-values["S"]),
            self.deviation(values),
            np.log(self.fraction(values)),
        )

    def fractions(self, params: Mapping[str, float], columns: Columns) -> dict[str, Array]:
        _, (weight_TBn, _) = self.model(columns).evaluate(self.vector(params)[None])
        return dict(zip(self.names[:5], weight_TBn[:, 0], strict=True))


class AllocationModel(PowerLawModel):
    """ln of Eq 2 over fixed rows: a sum whose term c is not log-linear in gamma.

    Its state is each term's weight in the prediction (T, B, n), and R (1-S)^gamma (B, n).
    """

    def __init__(self, *rows: Array) -> None:
        """Takes ln N, ln D, ln (1-S), R and ln of the experts' fraction, each of shape (n,)."""
        self._rows = rows
        ln_N, ln_D, self._ln_density, self._deviation, self._ln_fraction = rows
        one = np.ones(len(ln_N))
        terms = [
            ([_A, _ALPHA], [one, -ln_N]),
            ([_B, _BETA], [one, -ln_D]),
            ([_C, _LAMBDA], [one, -ln_N]),  # the term's logarithm also has R (1-S)^gamma
            ([_D], [one]),
            ([_TAU], [one]),
        ]
        super().__init__([(np.array(index), np.stack(x)) for index, x in terms], n_params=9)
        steps = self._design.copy()
        # Of that term's logarithm, at gamma = 0
        steps[_PENALTY, _GAMMA] = self._deviation * self._ln_density
        self.metric = np.einsum("tpn,tqn->pq", steps, steps) / self.n

    def rows(self, index: NDArray[np.intp]) -> "AllocationModel":
        return AllocationModel(*(values[index] for values in self._rows))

    def evaluate(self, theta_BP: Array) -> tuple[Array, State]:
        """Returns ln L (B, n) and the state."""
        z_TBn = theta_BP @ self._design
        penalty_Bn = theta_BP[:, _GAMMA, None] * self._ln_density
        np.clip(penalty_Bn, -_LARGEST_LOG_FACTOR, _LARGEST_LOG_FACTOR, out=penalty_Bn)
        np.exp(penalty_Bn, out=penalty_Bn)
        penalty_Bn *= self._deviation
        z_TBn[_PENALTY] += penalty_Bn
        z_TBn[_EXPERTS] += self._ln_fraction
        return log_sum_exp(z_TBn), (z_TBn, penalty_Bn)

    def jacobian(self, state: State) -> Array:
        weight_TBn, penalty_Bn = state
        jacobian_BPn = super().jacobian((weight_TBn,))
        # The derivative of the penalty's logarithm by gamma.
        slope_Bn = penalty_Bn * self._ln_density
        np.multiply(weight_TBn[_PENALTY], slope_Bn, out=jacobian_BPn[:, _GAMMA])
        return jacobian_BPn

    def curvature(self, state: State, psi_Bn: Array) -> Array:
        """Adds the curvature of the penalty's logarithm in gamma to the terms' second moments."""
        weight_TBn, penalty_Bn = state
        moment = super().curvature((weight_TBn,), psi_Bn)
        slope_Bn = penalty_Bn * self._ln_density
        psi_slope_Bn = weight_TBn[_PENALTY] * psi_Bn * slope_Bn
        index, x_kn = self._terms[_PENALTY]
        cross_Bk = psi_slope_Bn @ x_kn.T
        moment[:, _GAMMA, index] += cross_Bk
        moment[:, index, _GAMMA] += cross_Bk
        moment[:, _GAMMA, _GAMMA] += (psi_slope_Bn * (slope_Bn + self._ln_density)).sum(axis=1)
        return moment


_OPTIMAL_RATIO = Derivation(
    "r_star", ("C", "S"), "r_star(C, S) by allocation.ratio, published", ratio.ratio
)
# Its texts name the readings R and F.
_EQ_2: AllocationLoss = law_beside(
    __file__,
    kind=AllocationLoss,
    derivations=(_OPTIMAL_RATIO,),
    deviation=DEVIATIONS["abslog"].of,
    fraction=FRACTIONS["fraction"].of,
)[0]


def _form(deviation: str, fraction: str) -> AllocationLoss:
    """Returns Eq 2 with that reading of R and that form of the fraction, by their names."""
    R, factor = DEVIATIONS[deviation], FRACTIONS[fraction]
    if fraction == "fraction":
        variant, tried = "" if deviation == "abslog" else deviation, ""
    else:
        variant, tried = f"{deviation}+{fraction}", f", with the {factor.equation} of App D.2"
    return replace(
        _EQ_2,
        variant=variant,
        source=f"{_EQ_2.source}{tried}; R read as {R.equation}",
        variables=_EQ_2.variables[:-1] if deviation == "literal" else _EQ_2.variables,
        equation=_EQ_2.equation.replace("R", R.equation).replace("F", factor.equation),
        latex=_EQ_2.latex.replace("R", R.latex).replace("F", factor.latex),
        # The values are printed for r/(1+r) alone.
        parameters=tuple(replace(p, published=None if tried else p.published)
                         for p in _EQ_2.parameters),
        deviation=R.of,
        fraction=factor.of,
    )  # fmt: skip


_FORMS = [_form(deviation, fraction) for fraction in FRACTIONS for deviation in DEVIATIONS]
LAW = _FORMS[0]
VARIANTS: Mapping[str, AllocationLoss] = {law.variant: law for law in _FORMS[1:]}
