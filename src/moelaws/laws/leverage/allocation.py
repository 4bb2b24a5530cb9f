"""Compute-optimal model scale and data over compute (leverage paper, Table 5).

The model's scale M is its training FLOPs per token, without logits, so that C = M D.
"""

from collections.abc import Mapping
from functools import partial

from moelaws.laws.base import Array, Columns, FitProtocol, Formula, Law, Variable
from moelaws.laws.forms import LinearLaw, power_law
from moelaws.laws.leverage.hyperparameters import over_compute
from moelaws.laws.vocabulary import variable

_NAMES = ("M_coefficient", "M_exponent", "D_coefficient", "D_exponent")
MOE = dict(zip(_NAMES, (0.1915, 0.5095, 5.2232, 0.4905), strict=True))
DENSE = dict(zip(_NAMES, (0.0655, 0.5422, 15.2582, 0.4578), strict=True))

_C = variable("C", "training compute M D, without logits")
_RESULTS = {
    "M": Variable("M", "FLOP/token", "best model scale: training FLOPs per token, without logits"),
    "D": variable("D", "best number of training tokens"),
}
_M = (
    "E1.1 (App I, Eq 10): printed: attention's projections cost 2 d^2 (1 + 2 n_kv/n_h); corrected: "
    "2 + 2 n_kv/n_h: the output projection is missing.",
    "E1.2 (App I): printed: shared experts cost 4 d d_shared, no router, and logits are counted; "
    "corrected: 6 d d_shared and the router's 2 d E, without logits. M so defined is constant "
    "within Table 12's groups to .03 % (3 % as printed), and the models of Table 8 are trained on "
    "3.2 to 4.7 times their optimal tokens, as the text says; with logits on .6 to 2.3 times.",
)
_PRODUCTS = (
    "M*D is 1.00024 C for mixtures of experts and .99941 C for dense models; the exponents sum to "
    "1. A mixture's best M is the smaller, and its best D the larger, only for C > 1.77e14."
)


def _optimum(params: Mapping[str, float], columns: Columns) -> dict[str, Array]:
    C = columns["C"]
    return {x: params[f"{x}_coefficient"] * C ** params[f"{x}_exponent"] for x in ("M", "D")}


def _formula(variant: str, models: str, law: Mapping[str, float]) -> Formula:
    M, D = (f"{x} = {law[f'{x}_coefficient']}*C^{law[f'{x}_exponent']}" for x in ("M", "D"))
    return Formula(
        id="leverage.allocation",
        variant=variant,
        title=f"Best model scale and data over compute, {models}",
        source="leverage, Table 5",
        equation=f"{M}, {D}",
        latex=(
            rf"M = {law['M_coefficient']}\, C^{{{law['M_exponent']}}},\quad"
            rf" D = {law['D_coefficient']}\, C^{{{law['D_exponent']}}}"
        ),
        variables=(_C,),
        outputs=(_RESULTS["M"], _RESULTS["D"]),
        function=partial(_optimum, law),
        constants=law,
        errata=(*_M, _PRODUCTS),
    )


def _fitted(variant: str, result: str, models: str, law: Mapping[str, float]) -> LinearLaw:
    coefficient, exponent = law[f"{result}_coefficient"], law[f"{result}_exponent"]
    return power_law(
        over_compute(_C, _RESULTS[result].unit, coefficient, exponent),
        id="leverage.allocation",
        variant=variant,
        title=f"Best {'model scale' if result == 'M' else 'data'} over compute, {models}",
        source="leverage, Table 5",
        latex=rf"{result} = k\, C^{{\epsilon}}",
        response=_RESULTS[result],
        protocol=FitProtocol(
            "squared",
            "leverage, App E.2: a line in logarithms through the best of each budget",
        ),
        errata=(*_M, _PRODUCTS) if result == "M" else (_PRODUCTS,),
    )


_MOE, _DENSE = "mixtures of experts", "dense models"

LAW = _formula("", _MOE, MOE)

VARIANTS: dict[str, Law] = {
    "dense": _formula("dense", _DENSE, DENSE),
    "M": _fitted("M", "M", _MOE, MOE),
    "D": _fitted("D", "D", _MOE, MOE),
    "dense_M": _fitted("dense_M", "M", _DENSE, DENSE),
    "dense_D": _fitted("dense_D", "D", _DENSE, DENSE),
}
