"""Models that people trained, beside the advice for a budget."""

import math
from collections.abc import Mapping

from moelaws.analysis.advice.short import in_units
from moelaws.spec.advice import KnownModel
from moelaws.spec.words import joined


def nearby(known: Mapping[str, KnownModel], compute: float) -> dict[str, float]:
    """Returns the three known models whose training cost nearest to ``compute``, and what it cost.

    It is counted as 6 N_active D, so models whose tokens are not published are left out.
    """
    costs = {name: 6 * own.N_active * own.D for name, own in known.items() if own.D}
    nearest = sorted(costs, key=lambda name: abs(math.log(costs[name] / compute)))[:3]
    return {name: costs[name] for name in nearest}


def of_known(known: Mapping[str, KnownModel], compute: float) -> str:
    """Returns the known models of about this budget, in words."""
    each = []
    for name, cost in nearby(known, compute).items():
        own = known[name]
        size = f"{in_units(own.N)}, {in_units(own.N_active)} active, {own.k} of {own.E} experts"
        shape = f", {own.n_layers} layers of width {own.d_model}" if own.n_layers else ""
        each.append(f"{name} ({size}{shape}; {in_units(own.D or 0)} tokens, {cost:.2g} FLOPs)")
    return f"- People trained, nearest to this budget by 6 N_active D: {joined(each)}."
