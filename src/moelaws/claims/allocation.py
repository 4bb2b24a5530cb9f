"""What the allocation paper claims of the ratio of expert to attention FLOPs."""

from __future__ import annotations

import math

import pandas as pd

from moelaws.analysis.allocation.comparison import excess, predicted, rmse
from moelaws.analysis.allocation.r_star import cells_of
from moelaws.analysis.allocation.trends import (
    Trend,
    curvature,
    exponent_difference,
    over_compute,
    over_sparsity,
)
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import (
    CANNOT_TELL,
    NOT_SUPPORTED,
    SUPPORTED,
    Claim,
    Finding,
    Verdict,
    by_interval,
)
from moelaws.laws.allocation.ratio import beta_r

OFF = 1.2  # a misallocation by 20 %
PRINTED_COST = 0.15  # nats/token that the paper names for it, at 2e20 FLOPs
PRINTED_AT = 2e20  # FLOPs
PRINTED_RISE = 0.4  # of r* from S = 97.67 % to 82.35 %
MORE = (
    "more budgets and ratios with several seeds each: the gpu or paper tier, whose budgets span "
    "a factor of 30 or 2000"
)
WIDER = "ratios beyond the ends of this grid at the budgets where r* is an end"


def rises_with_compute(inputs: Inputs) -> Finding:
    table = inputs.derived("r_star")
    trend, smooth = over_compute(table), over_compute(table, "r_parabola")
    S = table["S"]
    published = f"{beta_r(S.max()):.2g} to {beta_r(S.min()):.2g}"
    measured = (
        f"beta_r common to {S.nunique()} sparsities is {_interval(trend)} by the raw r* of "
        f"{trend.n} pairs of budget and sparsity, {_interval(smooth)} by parabolas; published "
        f"{published}. {_ends(table)}"
    )
    return _finding(_unless_ends(table, trend), measured, trend, "1", f"{MORE}; {WIDER}")


def steeper_when_denser(inputs: Inputs) -> Finding:
    table = inputs.derived("r_star")
    trend = exponent_difference(table)
    dense, sparse = table["S"].min(), table["S"].max()
    measured = (
        f"beta_r at S = {100 * dense:.2f} % minus beta_r at {100 * sparse:.2f} % is "
        f"{_interval(trend)} by the raw r* of {trend.n} pairs of budget and sparsity; published "
        f"{beta_r(dense) - beta_r(sparse):.2g}. {_ends(table)}"
    )
    return _finding(_unless_ends(table, trend), measured, trend, "1", f"{MORE}; {WIDER}")


def more_experts_when_denser(inputs: Inputs) -> Finding:
    table = inputs.derived("r_star")
    trend = over_sparsity(table)
    dense, sparse = table["S"].min(), table["S"].max()
    rise = math.expm1(trend.value * math.log((1 - dense) / (1 - sparse)))
    means = ""
    if math.isfinite(rise):
        means = f": {rise:+.0%} from S = {100 * sparse:.2f} % to {100 * dense:.2f} %"
    measured = (
        f"d ln r*/d ln(1-S) is {_interval(trend)} by the raw r* of {trend.n} pairs of budget and "
        f"sparsity{means}. The paper says over {PRINTED_RISE:.0%} from 97.67 % to 82.35 % (its own "
        "coefficients: 18 % at 1e20 and 35 % at 1e21 FLOPs, reversed below 5.4e18). "
        f"{_ends(table)}"
    )
    return _finding(_unless_ends(table, trend), measured, trend, "1", f"{MORE}; {WIDER}")


def has_a_valley(inputs: Inputs) -> Finding:
    cells = cells_of(inputs.completed)
    trend = curvature(cells)
    table = inputs.derived("r_star")
    inside = int((table["parabola_note"] == "").sum())
    measured = (
        f"curvature of the loss in ln r is {_interval(trend)} nats/token, one for all, by "
        f"{trend.n} runs; {inside} of {len(table)} pairs of budget and sparsity have the minimum "
        f"of their own parabola inside the ratios measured"
    )
    return _finding(by_interval(trend.low, trend.high), measured, trend, "nats/token", MORE)


def misallocation_is_costly(inputs: Inputs) -> Finding:
    trend = curvature(cells_of(inputs.completed))
    scale = math.log(OFF) ** 2
    cost = Trend(trend.value * scale, trend.low * scale, trend.high * scale, trend.n)
    measured = (
        f"a ratio 20 % off the optimum costs {_interval(cost)} nats/token by the curvature of "
        f"{cost.n} runs' losses; the paper's own Table 1 gives 0.004 to 0.009"
    )
    verdict = by_interval(cost.low, cost.high, PRINTED_COST / 2)
    if inputs.completed["C"].max() < PRINTED_AT / 10:
        return _finding(
            CANNOT_TELL, measured, cost, "nats/token", "budgets near 2e20 FLOPs: tier paper"
        )
    return _finding(verdict, measured, cost, "nats/token", MORE)


def beats_the_baselines(inputs: Inputs) -> Finding:
    ours = predicted(inputs, "loss")
    n = int(ours.held.sum())
    if not n:
        return Finding(CANNOT_TELL, "no run is held out", needed="runs at two sparsities or more")
    pairs = {"Wang": predicted(inputs, "wang"), "Abnar": predicted(inputs, "abnar")}
    found = {name: excess(other, ours) for name, other in pairs.items()}
    words = "; ".join(
        f"{name} {rmse(pairs[name], pairs[name].held):.3g} "
        f"(more by {e.value:.3g}, {e.low:.3g} to {e.high:.3g})"
        for name, e in found.items()
    )
    measured = (
        f"root mean square error on {n} held-out runs, nats/token: Eq 2 "
        f"{rmse(ours, ours.held):.3g}; {words}"
    )
    verdicts = [by_interval(e.low, e.high) for e in found.values()]
    verdict: Verdict = CANNOT_TELL
    if all(v == SUPPORTED for v in verdicts):
        verdict = SUPPORTED
    elif NOT_SUPPORTED in verdicts:
        verdict = NOT_SUPPORTED
    least = min(found.values(), key=lambda e: e.value)
    closest = Trend(least.value, least.low, least.high, least.n)
    return _finding(verdict, measured, closest, "nats/token", MORE)


def _unless_ends(table: pd.DataFrame, trend: Trend) -> Verdict:
    """By the interval, unless half or more of the r* are ends of the grid and so mere bounds."""
    if 2 * int((table["note"] != "").sum()) >= len(table):
        return CANNOT_TELL
    return by_interval(trend.low, trend.high)


def _ends(table: pd.DataFrame) -> str:
    ends = int((table["note"] != "").sum())
    return f"{ends} of {len(table)} r* are an end of the ratios measured"


def _finding(verdict: Verdict, measured: str, trend: Trend, unit: str, needed: str) -> Finding:
    return Finding(
        verdict,
        measured,
        value=_number(trend.value),
        low=_number(trend.low),
        high=_number(trend.high),
        unit=unit,
        needed=needed if verdict == CANNOT_TELL else "",
    )


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _interval(trend: Trend) -> str:
    if math.isnan(trend.value):
        return "not determined"
    if math.isnan(trend.low):
        return f"{trend.value:.3g} (no interval)"
    return f"{trend.value:.3g} ({trend.low:.3g} to {trend.high:.3g})"


_ENDS_RULE = "cannot tell where half of the r* or more are ends of the grid, for these are bounds"

CLAIMS = {
    "ratio_rises": Claim(
        "The loss-optimal ratio r* of expert to attention FLOPs rises with compute: a power law.",
        "allocation, sec 3.2, Eq 1, Fig 2a",
        "Least squares of ln r* (ratio of least measured loss, unadjusted) on ln C with a level of "
        f"each sparsity: supported where the slope's 90 % interval is above 0; {_ENDS_RULE}.",
        rises_with_compute,
    ),
    "steeper_when_denser": Claim(
        "The exponent of compute in r* is larger the more experts are active.",
        "allocation, sec 3.3, Fig 2c",
        "The same with a slope of each sparsity: supported where the 90 % interval of the one at "
        f"the least sparsity minus that at the largest is above 0; {_ENDS_RULE}.",
        steeper_when_denser,
    ),
    "more_experts_when_denser": Claim(
        "Less sparse models want more of their FLOPs in the experts: r* grows by over 40 % from "
        "S = 97.67 % to 82.35 %.",
        "allocation, sec 6.1",
        "Least squares of ln r* on ln(1-S) with a level for each budget: supported where the "
        f"slope's 90 % interval is above 0; {_ENDS_RULE}.",
        more_experts_when_denser,
    ),
    "valley": Claim(
        "At a fixed budget the loss has a minimum at some ratio within the range swept.",
        "allocation, sec 3.1, Fig 1",
        "Least squares of the loss on ln r and ln(r)^2, with level and slope of each budget and "
        "sparsity and one curvature: supported where its 90 % interval is above 0.",
        has_a_valley,
    ),
    "costly_misallocation": Claim(
        "A ratio 20 % off the optimum costs 0.15 nats/token (at 2e20 FLOPs).",
        "allocation, sec 6.1",
        "The same curvature times ln(1.2)^2: supported where its 90 % interval is above half of "
        "what is printed, 0.075, not supported where it is below; cannot tell where no budget "
        "comes within a tenth of 2e20 FLOPs.",
        misallocation_is_costly,
    ),
    "beats_baselines": Claim(
        "With the deviation from r* in it, the loss law predicts a held-out sparsity better than "
        "the laws of Wang et al. and of Abnar et al.",
        "allocation, sec 4.2, Fig 3b and 5",
        "Root mean square error on the sparsest runs, which all three fits hold out, minus that of "
        "Eq 2: supported where the 90 % intervals of both differences are above 0, not supported "
        "where either is below. As in the paper, r* is that of all runs, held-out ones among them.",
        beats_the_baselines,
    ),
}
