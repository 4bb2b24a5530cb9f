"""A simulated search: runs of the study's own grid with losses that are bowls about known laws."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.grids.expand import expand
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_study
from moelaws.tables.describe import describe
from planned_study import TEXT
from repository import REPOSITORY
from study_case import Case, filled

STUDY = load_study("hyperparameters", REPOSITORY)


@dataclass(frozen=True)
class Truth:
    """Where the bowls' bottoms lie: value at C0 and exponent, of mixtures and of dense models."""

    C0: float
    lr: dict[str, tuple[float, float]]
    batch_tokens: dict[str, tuple[float, float]]
    M: dict[str, tuple[float, float]]
    noise: float  # standard deviation of L, nats
    curvature: float = 0.03  # nats for a factor e off in one setting


def published(C0: float, batch: float = 1.0, noise: float = 1e-4) -> Truth:
    """Eq 5 for mixtures, batches over ``batch`` and rates 1.3 times as large for dense; Table 5."""
    lr, B = 1.1576 * C0**-0.1529, 0.0694 * C0**0.3644
    return Truth(
        C0,
        lr={"moe": (lr, -0.1529), "dense": (1.3 * lr, -0.14)},
        batch_tokens={"moe": (B, 0.3644), "dense": (B / batch, 0.33)},
        M={"moe": (0.1915 * C0**0.5095, 0.5095), "dense": (0.0655 * C0**0.5422, 0.5422)},
        noise=noise,
    )


# About what the demo's runs show: few budgets, coarse steps, seeds a hundredth of a nat apart.
DEMO = Truth(
    3e10,
    lr={"moe": (2.2e-2, -0.3), "dense": (2.2e-2, -0.3)},
    batch_tokens={"moe": (800, 0.2), "dense": (700, 0.2)},
    M={"moe": (0.8e5, 0.4), "dense": (1.0e5, 0.4)},
    noise=0.014,
    curvature=0.08,
)


@cache
def grid(tier: str) -> pd.DataFrame:
    runs = expand(STUDY.grids[tier], TEXT, "hyperparameters.yaml")  # type: ignore[index]
    return pd.DataFrame([{**describe(run), "C": run.C} for run in runs])


def table(tier: str, truth: Truth, seed: int = 0, source: str = "trained") -> pd.DataFrame:
    """A study's table: the tier's grid with simulated losses."""
    return with_losses(grid(tier), truth, seed, tier=tier, source=source)


def with_losses(runs: pd.DataFrame, truth: Truth, seed: int, **columns: str) -> pd.DataFrame:
    """A study's table of the runs of a grid, with simulated losses and these columns."""
    frame = runs.copy()
    rng = np.random.default_rng(seed)
    L = np.array([_loss(row, truth) for _, row in frame.iterrows()])
    frame["L"] = L + truth.noise * rng.standard_normal(len(frame))
    point = ["A", "C", "d_model", "lr", "batch_tokens", "E"]
    repeated = frame.groupby(point)["L"]
    frame["n_seeds"], frame["L_seed_sd"] = repeated.transform("size"), repeated.transform("std")
    frame = frame.assign(status="completed", study="hyperparameters", L_se=0.004, **columns)
    return filled(frame)


def _loss(row: pd.Series, truth: Truth) -> float:
    kind = "dense" if row["A"] == 1 else "moe"
    L = 2.0 + 2.0 * (row["C"] / truth.C0) ** -0.05
    laws = {"lr": truth.lr, "batch_tokens": truth.batch_tokens}
    bowls = [(row[name], *law[kind]) for name, law in laws.items()]
    if "sizes" in row["sweep"]:
        bowls = [(row["C_leverage_no_router"] / row["D"], *truth.M[kind])]
    for value, centre, exponent in bowls:
        best = centre * (row["C"] / truth.C0) ** exponent
        L += truth.curvature * np.log(value / best) ** 2
    return float(L)


def write_case(root: Path, frame: pd.DataFrame, every_fit: bool = True) -> Case:
    """Derive and fit everything that the study declares, as the workflow would.

    Where not ``every_fit`` is possible, those that the runs do not allow are left out.
    """
    case = Case.of(STUDY, root, frame)
    case.derive(*(entry.name for entry in STUDY.derived))
    for spec in STUDY.fits:
        rows = pd.read_parquet(case.derived[spec.table])
        try:
            case.add(fit(laws.fittable(spec.law), rows, spec))
        except UserError:
            if every_fit:
                raise
    return case
