"""The points at which each paper measured its law, as far as it says, and the noise given to them.

A design is a table of a law's variables, one row a run. Papers print budgets, sparsities and shapes
rather than every run: where they do not, sizes are spread evenly in their logarithm over the range
that is stated. Noise is a standard deviation on the law's own scale: of ln of the response for laws
of a logarithm, else of the response itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.studies.sparsity.laws.loss import optimal_size

LOSS_NOISE = 0.003  # of ln L: two seeds of one model differ by about this times sqrt(2)


@dataclass(frozen=True)
class Design:
    """Where a law is measured, how noisily, and how many starts find its optimum.

    ``starts`` None runs the whole grid of the law's protocol.
    """

    points: Callable[[], pd.DataFrame]
    noise: float
    source: str
    starts: int | None = None


def _grid(**axes: object) -> pd.DataFrame:
    return pd.DataFrame(list(product(*axes.values())), columns=list(axes))  # type: ignore[call-overload]


def sparsity_loss() -> pd.DataFrame:
    """Ten sizes around the optimum of each of three budgets and six sparsities: 180 runs."""
    law = laws.fittable("sparsity.loss")
    assert law.published
    table = _grid(
        C=(3e19, 1.7e20, 1e21),
        S=(0.0, 0.25, 0.5, 0.75, 0.9, 0.98),
        factor=np.geomspace(1 / 6, 6, 10),
    )
    table["N"] = optimal_size(law.published, table["S"], table["C"]).N * table["factor"]
    table["D"] = table["C"] / (6 * (1 - table["S"]) * table["N"])
    return table[["N", "D", "S"]]


def chinchilla() -> pd.DataFrame:
    """Nine isoFLOP profiles of twelve sizes around 20 tokens a parameter."""
    table = _grid(
        C=(6e18, 1e19, 3e19, 6e19, 1e20, 3e20, 6e20, 1e21, 3e21), factor=np.geomspace(0.2, 5, 12)
    )
    table["N"] = np.sqrt(table["C"] / 120) * table["factor"]
    table["D"] = table["C"] / (6 * table["N"])
    return table[["N", "D"]]


def allocation_loss() -> pd.DataFrame:
    """The paper's four sparsities, five ratios in its range, four sizes, three lengths."""
    table = _grid(
        S=(14 / 17, 30 / 33, 62 / 65, 126 / 129),
        r=(0.2, 0.4, 0.7, 1.1, 1.5),
        N=np.geomspace(1e8, 5e9, 4),
        D=(5e9, 2e10, 1e11),
    )
    compute = 6 * (1 - table["S"]) * table["N"] * table["D"]
    ratio = laws.fittable("allocation.ratio")
    table["r_star"] = ratio.predict(ratio.published or {}, {"C": compute, "S": table["S"]})
    return table


def allocation_ratio() -> pd.DataFrame:
    return _grid(C=np.geomspace(1e18, 1e21, 6), S=(14 / 17, 30 / 33, 62 / 65, 126 / 129))


def leverage_joint() -> pd.DataFrame:
    """Tables 8 and 9 at six budgets: activations at G = 2, granularities at 2 of 64 experts."""
    budgets = (2e18, 6e18, 2e19, 6e19, 2e20, 6e20)
    activations = _grid(A=[2 / E for E in (4, 8, 16, 32, 64, 128, 256)], G=(2.0,), C=budgets)
    granularities = _grid(A=(2 / 64,), G=(4.0, 6.0, 8.0, 12.0, 16.0), C=budgets)
    return pd.concat([activations, granularities], ignore_index=True)


def leverage_loss() -> pd.DataFrame:
    """The same architectures with their dense counterpart, by sparsity: A = 1 - S."""
    mixtures = leverage_joint()
    dense = _grid(A=(1.0,), G=(2.0,), C=mixtures["C"].unique())
    runs = pd.concat([dense, mixtures], ignore_index=True)
    return runs.assign(S=1 - runs["A"]).drop(columns="A")


def leverage_hyperparameters() -> pd.DataFrame:
    """Near-optimal points of seven budgets, a dozen each."""
    return _grid(C=np.repeat(np.geomspace(3e17, 3e20, 7), 12))


def leverage_optima() -> pd.DataFrame:
    return _grid(C=np.geomspace(3e17, 3e20, 8))


def clark_routing() -> pd.DataFrame:
    return _grid(
        N_active=(15e6, 25e6, 55e6, 130e6, 370e6, 870e6, 1.3e9),
        E=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0),
    )


def granularity_loss() -> pd.DataFrame:
    return _grid(
        N=np.geomspace(1e8, 4e9, 6), D=(1.6e10, 3.3e10, 6.6e10, 1.3e11), G=(1, 2, 4, 8, 16)
    )


def joint_loss() -> pd.DataFrame:
    return _grid(
        N_active=np.geomspace(1e8, 3e9, 6), D=np.geomspace(4e9, 1.6e11, 5), E=(1, 2, 4, 8, 16, 32)
    )


def kappa() -> pd.DataFrame:
    return _grid(E=(1.0, 2.0, 4.0, 8.0, 16.0, 32.0))


_OPTIMA = "leverage, sec 3: the best of each of eight budgets"
_NEAR = "leverage, sec 3: points within 0.25 % of the least loss"
_KAPPA = "generalization, Table 5"

DESIGNS: dict[str, Design] = {
    "allocation.loss": Design(
        allocation_loss, LOSS_NOISE, "allocation, sec 3 and Table 2", starts=60
    ),
    "allocation.ratio": Design(allocation_ratio, 0.05, "allocation, Fig 2: six budgets"),
    "chinchilla": Design(chinchilla, LOSS_NOISE, "Hoffmann et al., approach 2", starts=500),
    "clark.routing": Design(clark_routing, LOSS_NOISE, "Clark et al., seven sizes"),
    "generalization.kappa": Design(kappa, 0.005, _KAPPA),
    "generalization.kappa:log2": Design(kappa, 0.01, _KAPPA),
    "granularity.loss": Design(granularity_loss, LOSS_NOISE, "Krajewski et al.", starts=500),
    "joint.loss": Design(joint_loss, LOSS_NOISE, "Ludziejewski et al.", starts=60),
    "leverage.allocation:D": Design(leverage_optima, 0.03, _OPTIMA),
    "leverage.allocation:M": Design(leverage_optima, 0.03, _OPTIMA),
    "leverage.hyperparameters:batch": Design(leverage_hyperparameters, 0.2, _NEAR),
    "leverage.hyperparameters:lr": Design(leverage_hyperparameters, 0.2, _NEAR),
    "leverage.joint": Design(leverage_joint, 0.03, "leverage, Tables 8 and 9"),
    "leverage.loss": Design(
        leverage_loss, LOSS_NOISE, "leverage, Tables 8 and 9, an assumed dense curve", starts=100
    ),
    "sparsity.loss": Design(sparsity_loss, LOSS_NOISE, "sparsity, Table 1", starts=500),
}
