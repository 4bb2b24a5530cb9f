"""Which sweep of one GPU would decide each claim: the cheapest whose simulated tables support it.

    python benchmarks/deciding.py [CLAIM ...] [--tables 40] [--out docs/evidence/deciding.csv]
    python benchmarks/deciding.py --report

Each claim has a few sweeps, from one budget of 3e14 FLOPs a run upwards, with one to four seeds.
They are tried in the order of their FLOPs, on tables with the effect that the entry states and with
the noise of runs on a GPU. The first sweep that supports the claim in 80 % of its tables decides.
Where none does, the dearest one is told. The rows of the claims that are named replace those in
the file. ``--report`` writes the file's Markdown page beside it, and computes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from moelaws.claims.base import Verdict  # noqa: E402
from moelaws.grids.sweep import expand_study  # noqa: E402
from moelaws.spec.project import Project, load_study  # noqa: E402
from moelaws.tables.simulate import design  # noqa: E402
from nulls import allocation, leverage, sparsity  # noqa: E402
from nulls.trial import decided  # noqa: E402

NOISE = 0.003  # of ln L, between seeds
SURE = 0.8  # of the tables
RATE = 1e14  # FLOPs a second of one H200, of eight runs at a time (docs/gpus.md)
BUDGETS = [(3e14,), (3e14, 1e15), (3e14, 1e15, 3e15), (3e14, 1e15, 3e15, 1e16)]
SEEDS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Question:
    """A claim, the sweeps that might decide it, and the effect that their runs have."""

    study: str
    claim: str
    effect: str  # in words
    values: str  # of the sweep at each budget, in words
    made: Callable[[int, tuple[float, ...], int], Any]  # seed, budgets, seeds a run -> what is read
    least: int = 1  # budgets


def repeated(made: Callable[..., pd.DataFrame], *effect: Any) -> Callable[..., pd.DataFrame]:
    """Returns what makes tables of the leverage study that have several seeds of each run."""

    def tables(seed: int, budgets: tuple[float, ...], seeds: int) -> pd.DataFrame:
        own = {"budgets": np.array(budgets), "noise": NOISE}
        parts = []
        for i in range(seeds):
            frame = made(100 * seed + i, *effect, **own)
            parts.append(frame.assign(run_id=frame["run_id"] + f" s{i}", place=range(len(frame))))
        both = pd.concat(parts, ignore_index=True).assign(n_seeds=seeds)
        spread = both.groupby("place")["L"].transform("std")
        return both.assign(L_seed_sd=spread, trunk=both["run_id"])

    return tables


@cache
def grid() -> pd.DataFrame:
    """Returns the runs of design-gpu.yaml."""
    study = load_study("docs/evidence/design-gpu.yaml", ROOT)
    return design(expand_study(study, Project(tier="gpu", validation=0.05), ROOT))


def as_measured(sweep: sparsity.Sweep) -> np.ndarray:
    """Returns losses as the first sweep on a GPU has them at 1e15 FLOPs (docs/speed.md).

    There each e-fold of 1/(1-S) lowered the loss by 0.057 nats and the best active size by 6 %, and
    a size that is off by a factor of e cost 0.2 nats. The best size grows as C^0.43, as on the CPU.
    """
    runs = sweep.runs
    u, v, c = np.log(runs["N_active"] / 2.1e6), -np.log1p(-runs["S"]), np.log(runs["C"] / 1e15)
    return (2.3 - 0.1 * c - 0.057 * v + 0.2 * (u - 0.43 * c + 0.06 * v) ** 2).to_numpy()


def surfaces(seed: int, budgets: tuple[float, ...], seeds: int) -> Any:
    """Returns the trends of the runs of design-gpu.yaml at these budgets."""
    runs = grid()[np.isclose(grid()["C"].to_numpy()[:, None], budgets).any(axis=1)]
    runs = pd.concat([runs] * seeds, ignore_index=True)
    sweep = sparsity.Sweep(runs, NOISE * 2.3)
    return SimpleNamespace(frame=runs, **vars(sparsity.trends(seed, as_measured, sweep)))


def valleys(law: Callable[..., Any], seed: int, budgets: tuple[float, ...], seeds: int) -> Any:
    """Returns what the rules on r read of seven ratios at three sparsities."""
    setting = replace(allocation.GPU, budgets=budgets, seeds=seeds, ratios=RATIOS_OF_FLOPS)
    given = allocation.made(seed, law, setting)
    return SimpleNamespace(frame=given.completed, **vars(given))
