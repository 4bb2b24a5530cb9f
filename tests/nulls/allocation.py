"""Tables of budgets and ratios as tier node's, with the noise of real runs, 0.004 nats.

Some are of laws of ln r* and the curvature over c = ln C and x = ln(1-S), both centred. A valley
that gets shallower lets r* move to the middle of the grid. Others are of Eq 2 with the penalty and
the share that the paper publishes, and with terms of size and data that give losses of 2 to 4 nats.
"""

from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from allocation_case import PAPER, STUDY, TRUE, simulate
from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.grids.sweep import expand_study
from moelaws.spec.project import Project
from moelaws.studies.allocation.claims import MISALLOCATION
from moelaws.studies.allocation.derived import fits, r_star
from moelaws.studies.allocation.laws.loss import LAW
from moelaws.studies.allocation.laws.ratio import ratio
from moelaws.tables.simulate import design
from nulls.trial import edge, fit_of, seen
from repository import REPOSITORY
from study_case import filled

PRINTED = 0.15 / np.log(MISALLOCATION) ** 2  # nats, the curvature at the printed cost
NOISE = 0.004  # nats
# ln r* and the curvature without the effect
LAWS = {
    "ratio_rises": lambda c, x: (np.log(0.4) + 0.1 * x, 0.05 * np.exp(-0.2 * c)),
    "steeper_when_denser": lambda c, x: (np.log(0.6) + 0.1 * c, 0.03 * np.exp(0.4 * x)),
    "more_experts_when_denser": lambda c, x: (np.log(0.5) + 0.05 * c, 0.04 * np.exp(-0.4 * x)),
    "valley": lambda c, x: (0 * c, 0 * c),
    "crosses_one": lambda c, x: (0 * c, 0.05 + 0 * c),
    "costly_misallocation": lambda c, x: (np.log(0.6) + 0 * c, PRINTED / 2 + 0 * c),
}
# The same with the effect: r* is half as large again as 1 below 90 % sparsity, and 2/3 above 95 %
WITH = {
    "crosses_one": lambda c, x: (0.4 * np.sign(np.round(x, 1)), 0.05 + 0 * c),
    "costly_misallocation": lambda c, x: (np.log(0.6) + 0 * c, PRINTED + 0 * c),
}
OF_R = {name: LAW.published[name] for name in ("c", "lambda", "gamma", "d")}
EQ_2 = TRUE | OF_R
NOTHING = 1e-12  # nats, in place of 0, which has no logarithm
SIZE_ALONE = TRUE | {"c": NOTHING, "d": NOTHING}
# Starts about the terms of size and data, from which fits come to the optimum of all starts
STARTS = {
    name: [float(value)]
    for name, value in zip(LAW.names, LAW.vector(TRUE), strict=True)
    if name in ("a", "b", "tau", "alpha", "beta")
} | {
    "c": [-4.6, 3.7], "lambda": [0.0, 0.4], "gamma": [-0.5, 0.0, 0.5], "d": [-7.0, -3.0],
}  # fmt: skip


@cache
def base():
    return simulate(replace(
        PAPER, noise=0.0, budgets=(1e18, 2e18, 4e18, 8e18, 1.5e19, 2.7e19), experts=(16, 32, 64),
        ratios=(0.2, 0.35, 0.6, 0.9, 1.2, 1.5),
    ))  # fmt: skip


@cache
def grid(tier):
    """The runs of a tier."""
    sweep = expand_study(STUDY, Project(tier=tier, source="simulated"), REPOSITORY)
    return filled(design(sweep).assign(L=1.0, status="completed", source="simulated"))


def noisy(runs, L, seed):
    return runs.assign(L=L + np.random.default_rng(seed).normal(0, NOISE, len(L)))


def optima(runs):
    """The table r_star, without the draws behind its intervals, which no rule reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(r_star, "DRAWS", 20)
        return r_star.derive(Inputs(frame=runs))


def made(seed, law):
    """Parabolas in ln r by a law of ln r* and the curvature."""
    c, x = np.log(base()["C"]), np.log1p(-base()["S_shared"])
    c, x = c - c.mean(), x - x.mean()
    ln_r, depth = law(c, x)
    runs = noisy(base(), 3 - 0.1 * c + depth * (np.log(base()["r"]) - ln_r) ** 2, seed)
    return SimpleNamespace(completed=runs, derived={"r_star": optima(runs)}.get)


def eq_2(runs, params):
    """Losses by Eq 2 with the published r*."""
    C, S, r = runs["C"], runs["S_shared"], runs["r"]
    columns = {"N": runs["N_active_nonemb"], "D": runs["D"], "S": S, "r": r, "r_star": ratio(C, S)}
    return LAW.predict(params, columns)


def published(seed, tier="paper"):
    """A tier's runs with losses of Eq 2."""
    runs = noisy(grid(tier), eq_2(grid(tier), EQ_2), seed)
    return SimpleNamespace(completed=runs, derived={"r_star": optima(runs)}.get)


def fitted(seed, names, settings, params, tier="node"):
    """Fits of laws to losses of Eq 2, with r* of these runs."""
    runs, paths = noisy(grid(tier), eq_2(grid(tier), params), seed), {}
    table, derived = optima(runs), Path("runs.parquet")
    for name in ("ratio", *names):
        spec = STUDY.fit(name)
        starts = {"sample": 10, "grid": STARTS if laws.fittable(spec.law).id == LAW.id else {}}
        # Of the law of r* no draws are read.
        quick = {"protocol": starts, **settings} if name != "ratio" else {"bootstrap": 1}
        paths[name] = fit_of(spec.model_copy(update=quick), table)
        if name == "ratio":
            table = fits.runs(FittedInputs(frame=runs, fits=paths))
            table.to_parquet(derived)
    return FittedInputs(frame=runs, fits=paths, derived_tables={"runs": derived})


RIVALS = partial(fitted, names=("loss", "wang", "abnar", "chinchilla"), settings={"bootstrap": 20})
TRIALS = [
    *(edge(claim, partial(made, law=law)) for claim, law in LAWS.items()),
    seen(tuple(LAWS)[:4], published, 0, 20),
    seen("crosses_one", partial(made, law=WITH["crosses_one"]), 60),
    seen("costly_misallocation", partial(made, law=WITH["costly_misallocation"]), 90),
    # Chinchilla's law is as good as Eq 2 where size and tokens are all there is.
    edge("beats_baselines", partial(RIVALS, params=SIZE_ALONE), 12),
    seen("beats_baselines", partial(RIVALS, params=EQ_2), 10, 12),
]
