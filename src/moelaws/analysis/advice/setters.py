"""Laws that speak of one variable: they set that of a plan, and judge nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from moelaws.analysis.advice.plans import Constraints, Plans, ideal
from moelaws.laws.base import Law
from moelaws.spec.errors import UserError


@dataclass(frozen=True)
class Setter:
    """A law that gives one variable of a plan.

    Attributes:
        variable: what it sets.
        law: whose result it is or, with ``largest``, on whose variable that result depends.
        params: the law's coefficients, natural scale.
        largest: the result that is to be the largest.
        ends: least and most of the variable there.
        fitted_on: column of a plan -> least and most of the runs behind the coefficients.
    """

    variable: str
    law: Law
    params: Mapping[str, float]
    largest: str = ""
    ends: tuple[float, float] = (1.0, 64.0)
    fitted_on: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def value(self, plan: Plans) -> float:
        """Returns what the law sets for one plan.

        NaN for a dense plan, where the law speaks of experts.
        """
        columns = {name: float(value) for name, value in plan.columns().items()}
        if not self.largest:
            return float(self.law.evaluate(self.params, columns)[self.variable])
        if columns["S"] == 0:
            return float("nan")
        values = np.geomspace(*self.ends, 2001)
        results = self.law.evaluate(self.params, columns | {self.variable: values})[self.largest]
        return float(values[np.argmax(results)])


@dataclass(frozen=True)
class Adviser:
    """A law that says how many tokens a budget should train; ``S`` is the sparsity beside it.

    ``fitted_on`` is column of a plan -> least and most of the runs behind its coefficients.
    """

    name: str
    law: Law
    params: Mapping[str, float]
    S: float
    fitted_on: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def plan(self, limits: Constraints) -> Plans:
        """Returns the law's plan within the limits.

        Raises:
            UserError: where the limits do not allow it.
        """
        S = limits.nearest(self.S)
        if limits.served_tokens:
            raise UserError("it knows no tokens that are served")
        D = float(self.law.evaluate(self.params, {"C": limits.compute})["D"])
        plan = ideal(limits.compute / (6 * D), S, D, limits)
        if plan.N > limits.largest or D > limits.max_tokens:
            raise UserError(
                f"it wants {float(plan.N):.3g} parameters and {D:.3g} tokens, which the limits do "
                "not allow"
            )
        return plan
