"""Claims of the sectional paper, measured on its own cost model with its misprints corrected.

No run is behind these measurements: each rule evaluates the model, as printed and corrected, over a
grid of shapes and overheads. The extremes over that grid decide.
"""

import numpy as np

from moelaws.analysis.effect import Effect
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Evidence
from moelaws.laws.base import Array
from moelaws.studies.sectional.laws.cost import CORRECTED, PRINTED, cost, evaluate

LENGTHS = 2.0 ** np.arange(7, 18)  # tokens an expert: 128 to 131072
WIDTHS = 2.0 ** np.arange(7, 16)  # 128 to 32768
OVERHEADS = np.concatenate([[0.0], 10.0 ** np.arange(3, 16)])  # multiply-adds
EXPERTS = 2.0 ** np.arange(0, 11)  # 1 to 1024
GRID = (
    f"all {len(LENGTHS) * len(WIDTHS) * len(OVERHEADS)} combinations of L = 128 to 131072, "
    "d0 = 128 to 32768 and alpha = 0 to 1e15"
)
SAME = 1e-6  # relative error of an optimum, which bisection stays below

GRIDS = np.meshgrid(LENGTHS, WIDTHS, OVERHEADS, indexing="ij")
SHAPES = dict(zip(("L", "d0", "alpha"), GRIDS, strict=True))


def more_experts(inputs: Inputs) -> Evidence:
    """Returns the largest best whole number of experts; its rises with L and with d0 decide."""
    results = [evaluate(form, **SHAPES) for form in (PRINTED, CORRECTED)]
    whole, real = (np.array([form[name] for form in results]) for name in ("E_whole", "E_opt"))
    rises = np.array([np.diff(whole, axis=axis).max(axis=(1, 2, 3)) for axis in (1, 2)])
    longer = float(np.mean(np.diff(real[1], axis=0) < -SAME))
    return Evidence(
        f"the best whole number is {_span(whole)} at {GRID}, in both forms. The real "
        f"E_opt stays below {real.max():.4g}; corrected, it falls in "
        f"{longer:.0%} of the doublings of L",
        Effect(float(whole.max())),
        "experts",
        [_across(rises)],
    )


def sections_pay(inputs: Inputs) -> Evidence:
    """Returns the least of S(2)/S(1), which is below 1 where a second expert saves cost."""
    printed, corrected = (
        evaluate(form, E=2.0, **SHAPES)["S"] / evaluate(form, E=1.0, **SHAPES)["S"]
        for form in (PRINTED, CORRECTED)
    )
    least = float(corrected.min())
    return Evidence(
        f"two experts cost {least:.4g} times as much as one or more (as printed "
        f"{printed.min():.4g}) at {GRID}: the model has its optimum at E = 1 and gives no "
        "compute benefit",
        Effect(least),
        "S(2)/S(1)",
        [_across(corrected)],
    )


def gain_over_traditional(inputs: Inputs) -> Evidence:
    """Returns the largest cost of E traditional experts over E sections without overhead."""
    E = EXPERTS[:, None, None]
    factor = evaluate(CORRECTED, E=E, L=LENGTHS[:, None], d0=WIDTHS, alpha=0.0)["total_factor"]
    largest, at = float(factor.max()), np.unravel_index(int(factor.argmax()), factor.shape)
    return Evidence(
        f"E traditional experts cost at most {largest:.4g} of E sections (at E = "
        f"{EXPERTS[at[0]]:g}, L = {LENGTHS[at[1]]:g}, d0 = {WIDTHS[at[2]]:g}; E = 1 to 1024): "
        "sections are dearer even without overhead",
        Effect(largest),
        "traditional / sectional cost",
        [_across(factor[1:])],
    )


def super_linear(inputs: Inputs) -> Evidence:
    """Returns the largest slope of ln of the projections' reduction factor over ln E from E = 2."""
    E = EXPERTS[1:]
    printed, corrected = (
        np.diff(np.log(evaluate(form, E=E, L=4096.0, d0=4096.0, alpha=0.0)["projection_factor"]))
        / np.diff(np.log(E))
        for form in (PRINTED, CORRECTED)
    )
    steepest = float(corrected.max())
    return Evidence(
        f"from E = 2 to 1024 the corrected factor E^3/(E^3+1) rises at most as E^{steepest:.2g} "
        f"and ends at 1; as printed (Eq 15, misprinted) it would rise as "
        f"E^{printed.min():.3g} or faster",
        Effect(steepest),
        "slope of ln factor over ln E",
        [_across(corrected)],
    )


def one_minimum(inputs: Inputs) -> Evidence:
    """Returns the fraction of the grid where the cost over real E falls and then rises, once."""
    E = np.geomspace(0.001, 100, 501).reshape(-1, 1, 1, 1)
    rises = [np.diff(cost(E, **SHAPES, printed=printed), axis=0) > 0 for printed in (True, False)]
    turns_once = np.diff(np.array(rises, int), axis=1).astype(bool).sum(axis=1) == 1
    fraction = float(np.mean(turns_once))
    optimum = evaluate(CORRECTED, **SHAPES)["E_opt"]
    return Evidence(
        f"S(E) over real E from 0.001 to 100 falls and then rises, once, in {fraction:.0%} of "
        f"{GRID}, in both forms; the minimum lies at E = {_span(optimum)} corrected",
        Effect(fraction),
        "share of the grid",
        [_across(turns_once)],
    )


def overhead_lowers(inputs: Inputs) -> Evidence:
    """Returns the largest change of the real E_opt from one overhead to the next larger one."""
    optimum = evaluate(CORRECTED, **SHAPES)["E_opt"]
    steps = np.diff(optimum, axis=2)
    largest = float(steps.max())
    decides = [_across(steps)] if (np.abs(steps) > SAME).any() else []
    return Evidence(
        f"the real E_opt is {_span(optimum[..., 0])} at alpha = 0 and {_span(optimum[..., -1])} at "
        f"1e15, and rises by at most {max(largest, 0.0):.1g} between ({GRID})",
        Effect(largest),
        "largest change of E_opt",
        decides,
    )


def _across(values: Array) -> Effect:
    return Effect(float(values.max()), float(values.min()), float(values.max()))


def _span(values: Array) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
