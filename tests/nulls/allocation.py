"""Tables of tier gpu's budgets and ratios, with the noise of real runs, 0.004 nats.

They are of laws in which the effect is not there: ln r* and the curvature, of c = ln C and
x = ln(1-S), both centred. A valley that gets shallower lets r* move to the middle of the grid.
"""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from allocation_case import PAPER, simulate
from moelaws.analysis.inputs import Inputs
from moelaws.studies.allocation.derived import r_star
from nulls.trial import null

LAWS = {
    "ratio_rises": lambda c, x: (np.log(0.4) + 0.1 * x, 0.05 * np.exp(-0.2 * c)),
    "steeper_when_denser": lambda c, x: (np.log(0.6) + 0.1 * c, 0.03 * np.exp(0.4 * x)),
    "more_experts_when_denser": lambda c, x: (np.log(0.5) + 0.05 * c, 0.04 * np.exp(-0.4 * x)),
    "valley": lambda c, x: (0 * c, 0 * c),
    "crosses_one": lambda c, x: (0 * c, 0.05 + 0 * c),
    "costly_misallocation": lambda c, x: (0 * c, 0 * c),
}


@cache
def base():
    return simulate(replace(
        PAPER, noise=0.0, budgets=(1e18, 2e18, 4e18, 8e18, 1.5e19, 2.7e19), experts=(16, 32, 64),
        ratios=(0.2, 0.35, 0.6, 0.9, 1.2, 1.5),
    ))  # fmt: skip


def made(seed, law):
    c, x = np.log(base()["C"]), np.log1p(-base()["S_shared"])
    c, x = c - c.mean(), x - x.mean()
    ln_r, depth = law(c, x)
    L = 3 - 0.1 * c + depth * (np.log(base()["r"]) - ln_r) ** 2
    runs = base().assign(L=L + np.random.default_rng(seed).normal(0, 0.004, len(L)))
    with (
        pytest.MonkeyPatch.context() as patch
    ):  # of the intervals in the table, which no rule reads
        patch.setattr(r_star, "DRAWS", 20)
        table = pd.DataFrame(r_star.derive(Inputs(frame=runs)))
    return SimpleNamespace(completed=runs, derived={"r_star": table}.get)


TRIALS = [null(claim, lambda seed, law=law: made(seed, law)) for claim, law in LAWS.items()]
