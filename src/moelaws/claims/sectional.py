"""What the sectional paper stands on, judged by its own cost model with its misprints corrected.

No run is behind these verdicts: each rule evaluates the model, as printed and corrected, over a
grid of shapes and overheads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from moelaws import laws
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import CANNOT_TELL, NOT_SUPPORTED, SUPPORTED, Claim, Finding, Verdict
from moelaws.laws.base import Array
from moelaws.laws.sectional import cost

LENGTHS = 2.0 ** np.arange(7, 18)  # tokens an expert: 128 to 131072
WIDTHS = 2.0 ** np.arange(7, 16)  # 128 to 32768
OVERHEADS = np.concatenate([[0.0], 10.0 ** np.arange(3, 16)])  # multiply-adds
EXPERTS = 2.0 ** np.arange(0, 11)  # 1 to 1024
GRID = (
    f"all {len(LENGTHS) * len(WIDTHS) * len(OVERHEADS)} combinations of L = 128 to 131072, "
    "d0 = 128 to 32768 and alpha = 0 to 1e15"
)
SAME = 1e-6  # relative: bisection ends below it

L, D0, ALPHA = np.meshgrid(LENGTHS, WIDTHS, OVERHEADS, indexing="ij")


def more_experts(inputs: Inputs) -> Finding:
    """Whether the best whole number of experts rises with L or d0 anywhere."""
    found = {form: _model(form) for form in ("printed", "corrected")}
    whole = [f["E_whole"] for f in found.values()]
    rises = [bool((np.diff(w, axis=axis) > 0).any()) for w in whole for axis in (0, 1)]
    falls = [bool((np.diff(w, axis=axis) < 0).any()) for w in whole for axis in (0, 1)]
    printed, real = (f["E_opt"] for f in found.values())
    longer = float(np.mean(np.diff(real, axis=0) < -SAME))
    return Finding(
        _all(rises, not any(rises) or any(falls)),
        f"the best whole number is {_span(np.array(whole))} at {GRID}, in both forms. The real "
        f"E_opt stays below {max(printed.max(), real.max()):.4g}; corrected, it falls in "
        f"{longer:.0%} of the doublings of L",
        float(max(w.max() for w in whole)),
        unit="experts",
    )


def sections_pay(inputs: Inputs) -> Finding:
    """The least of S(2)/S(1), which is below 1 where a second expert saves cost."""
    ratio = {form: _model(form, E=2.0)["S"] / _model(form, E=1.0)["S"] for form in _FORMS}
    least = {form: float(r.min()) for form, r in ratio.items()}
    corrected = ratio["corrected"]
    return Finding(
        _all([bool((corrected < 1).all())], bool((corrected > 1).all())),
        f"two experts cost {least['corrected']:.4g} times as much as one or more (as printed "
        f"{least['printed']:.4g}) at {GRID}: the model has its optimum at E = 1 and gives no "
        "compute benefit",
        least["corrected"],
        unit="S(2)/S(1)",
    )


def gain_over_traditional(inputs: Inputs) -> Finding:
    """The most that E traditional experts cost, in units of E sections without overhead."""
    E = EXPERTS[:, None, None]
    factor = laws.get("sectional.cost").evaluate(
        {}, {"E": E, "L": LENGTHS[:, None], "d0": WIDTHS, "alpha": 0.0}
    )["total_factor"]
    most, at = float(factor.max()), np.unravel_index(int(factor.argmax()), factor.shape)
    return Finding(
        _all([bool((factor[1:] > 1).all())], bool((factor < 1).all())),
        f"E traditional experts cost at most {most:.4g} of E sections (at E = {EXPERTS[at[0]]:g}, "
        f"L = {LENGTHS[at[1]]:g}, d0 = {WIDTHS[at[2]]:g}; E = 1 to 1024): sections are dearer "
        "even without overhead",
        most,
        unit="traditional / sectional cost",
    )


def super_linear(inputs: Inputs) -> Finding:
    """The largest slope of ln of the projections' reduction factor over ln E, from E = 2 on."""
    slopes = {}
    for form in _FORMS:
        factor = laws.get(_FORMS[form]).evaluate(
            {}, {"E": EXPERTS[1:], "L": 4096.0, "d0": 4096.0, "alpha": 0.0}
        )["projection_factor"]
        slopes[form] = np.diff(np.log(factor)) / np.diff(np.log(EXPERTS[1:]))
    steepest = float(slopes["corrected"].max())
    return Finding(
        _all([bool((slopes["corrected"] > 1).all())], steepest < 1),
        f"from E = 2 to 1024 the corrected factor E^3/(E^3+1) rises at most as E^{steepest:.2g} "
        f"and ends at 1; as printed (Eq 15, misprinted) it would rise as "
        f"E^{slopes['printed'].min():.3g} or faster",
        steepest,
        unit="slope of ln factor over ln E",
    )


def one_minimum(inputs: Inputs) -> Finding:
    """Whether the real cost has one minimum: its differences over ln E change sign once."""
    E = np.geomspace(0.001, 100, 501).reshape(-1, *[1] * L.ndim)
    once = []
    for function in (cost.printed_cost, cost.cost):
        S = function(E, L, D0, ALPHA)
        rises = np.diff(S, axis=0) > 0
        once.append((np.diff(rises.astype(int), axis=0) != 0).sum(axis=0) == 1)
    share = float(np.mean(once))
    return Finding(
        _all([share == 1.0], share == 0.0),
        f"S(E) over real E from 0.001 to 100 falls and then rises, once, in {share:.0%} of {GRID}, "
        f"in both forms; the minimum lies at E = {_span(_model('corrected')['E_opt'])} corrected",
        share,
        unit="share of the grid",
    )


def overhead_lowers(inputs: Inputs) -> Finding:
    """Whether the real E_opt never rises, and somewhere falls, with the overhead."""
    steps = np.diff(_model("corrected")["E_opt"], axis=2)
    worst = float(steps.max())
    return Finding(
        _all([worst < SAME and bool((steps < -SAME).any())], bool((steps > SAME).all())),
        f"the real E_opt is {_span(_at_overhead(0))} at alpha = 0 and {_span(_at_overhead(-1))} at "
        f"1e15, and rises by at most {max(worst, 0.0):.1g} between ({GRID})",
        worst,
        unit="largest change of E_opt",
    )


_FORMS = {"printed": "sectional.cost:printed", "corrected": "sectional.cost"}


def _model(form: str, **at: Any) -> dict[str, Array]:
    return laws.get(_FORMS[form]).evaluate({}, {"L": L, "d0": D0, "alpha": ALPHA, **at})


def _at_overhead(index: int) -> Array:
    return np.asarray(_model("corrected")["E_opt"][..., index])


def _all(holds: list[bool], fails: bool) -> Verdict:
    """Supported where all ``holds``, not supported where ``fails``, else undecided."""
    if all(holds):
        return SUPPORTED
    return NOT_SUPPORTED if fails else CANNOT_TELL


def _span(values: Array) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


CLAIMS = {
    "larger_models_take_more_experts": Claim(
        "Wider embeddings (d0) and longer sequences (L) accommodate more experts.",
        "sectional, sec 4.3",
        "The best whole number of experts of the cost as printed and as corrected over a grid of "
        "L, d0 and alpha: supported where it rises with both, not supported where it never rises "
        "or falls.",
        more_experts,
    ),
    "sections_save_compute": Claim(
        "Splitting into more than one section lowers the cost until overhead takes over.",
        "sectional, sec 4.2 and 4.3, Eq 20-23",
        "S(2)/S(1) of the corrected model over a grid of L, d0 and alpha: supported where it is "
        "below 1 throughout, not supported where it is above 1 throughout.",
        sections_pay,
    ),
    "cheaper_than_traditional_experts": Claim(
        "Sectional experts cost less than as many traditional experts.",
        "sectional, sec 3.3",
        "The corrected cost of E traditional experts over that of E sections without overhead: "
        "supported where it is above 1 at every E >= 2, not supported where it is below 1 "
        "everywhere.",
        gain_over_traditional,
    ),
    "gain_faster_than_experts": Claim(
        "The saving on projections grows faster than in proportion to the number of experts.",
        "sectional, sec 3.3, Eq 15",
        "The slope of ln of the corrected reduction factor over ln E from E = 2: supported where "
        "it is above 1 throughout, not supported where it is below 1 throughout.",
        super_linear,
    ),
    "one_optimum": Claim(
        "The whole cost has one well-defined minimum over the number of experts.",
        "sectional, sec 4.2",
        "Whether S(E) over real E falls and then rises, changing once, in both forms over a grid: "
        "supported where it does everywhere, not supported where it does nowhere.",
        one_minimum,
    ),
    "overhead_lowers_the_optimum": Claim(
        "The more overhead, the fewer experts are best.",
        "sectional, sec 4.3",
        "Steps of the real E_opt of the corrected cost along alpha over a grid: supported where "
        "none is up and some are down, not supported where all are up.",
        overhead_lowers,
    ),
}
