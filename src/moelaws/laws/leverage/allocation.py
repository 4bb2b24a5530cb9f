"""Compute-optimal model scale and data over compute (leverage paper, Table 5).

The model's scale M is its training FLOPs per token, without logits, so that C = M D.
"""

from collections.abc import Sequence
from typing import Any

from moelaws.laws.base import FitProtocol, Formula, Law, Variable
from moelaws.laws.forms import LinearLaw, power_law
from moelaws.laws.leverage.hyperparameters import over_compute
from moelaws.laws.terms import symbol
from moelaws.laws.vocabulary import variable

Line = tuple[Variable, float, float]  # a result over compute: its coefficient and its exponent

_C = variable("C", "training compute M D, without logits")
_SCALE = Variable("M", "FLOP/token", "best model scale: training FLOPs per token, without logits")
_DATA = variable("D", "best number of training tokens")
_MOE: tuple[Line, Line] = (_SCALE, 0.1915, 0.5095), (_DATA, 5.2232, 0.4905)
_DENSE: tuple[Line, Line] = (_SCALE, 0.0655, 0.5422), (_DATA, 15.2582, 0.4578)
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


def optimum(lines: Sequence[Line], C: Variable, **stated: Any) -> Formula:
    """Returns the formula of several results over compute; ``stated`` are its other fields."""
    constants: dict[str, float] = {}
    for x, a, b in lines:
        constants |= {f"{x.name}_coefficient": a, f"{x.name}_exponent": b}
    return Formula(
        equation=", ".join(f"{x.name} = {a}*C^{b}" for x, a, b in lines),
        latex=r",\quad ".join(rf"{symbol(x.name)} = {a}\, C^{{{b}}}" for x, a, b in lines),
        variables=(C,),
        outputs=tuple(x for x, _, _ in lines),
        function=lambda columns: {x.name: a * columns["C"] ** b for x, a, b in lines},
        constants=constants,
        **stated,
    )


def _formula(variant: str, models: str, lines: Sequence[Line]) -> Formula:
    return optimum(
        lines,
        _C,
        id="leverage.allocation",
        variant=variant,
        title=f"Best model scale and data over compute, {models}",
        source="leverage, Table 5",
        errata=(*_M, _PRODUCTS),
    )


def _fitted(variant: str, models: str, line: Line) -> LinearLaw:
    result, coefficient, exponent = line
    return power_law(
        over_compute(_C, result.unit, coefficient, exponent),
        id="leverage.allocation",
        variant=variant,
        title=f"Best {'model scale' if result is _SCALE else 'data'} over compute, {models}",
        source="leverage, Table 5",
        latex=rf"{result.name} = k\, C^{{\epsilon}}",
        response=result,
        protocol=FitProtocol(
            "squared",
            "leverage, App E.2: a line in logarithms through the best of each budget",
        ),
        errata=(*_M, _PRODUCTS) if result is _SCALE else (_PRODUCTS,),
    )


_MIXTURES, _MODELS = "mixtures of experts", "dense models"

LAW = _formula("", _MIXTURES, _MOE)

VARIANTS: dict[str, Law] = {
    "dense": _formula("dense", _MODELS, _DENSE),
    "M": _fitted("M", _MIXTURES, _MOE[0]),
    "D": _fitted("D", _MIXTURES, _MOE[1]),
    "dense_M": _fitted("dense_M", _MODELS, _DENSE[0]),
    "dense_D": _fitted("dense_D", _MODELS, _DENSE[1]),
}
