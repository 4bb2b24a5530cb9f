"""Efficiency leverage of each architecture at each budget (leverage paper, Algorithm 1).

Algorithm 1 looks the loss of the architecture's curve up on the curve of its dense counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import BY_SEEDS
from moelaws.analysis.derive import Rows, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.minimum import Array
from moelaws.studies.leverage.derived.curves import DENSE, Curve, curve, curves
from moelaws.studies.leverage.derived.efficiency import leverage_errors, leverage_points
from moelaws.tables.column import Column

BEYOND = (10**0.5, 10.0, 10**1.5)  # times the largest budget: the curves extrapolated


@table(
    Column("sweep", "string", "1", "the study's sweeps of the architecture, joined by commas"),
    Column("architecture", "string", "1", "routed, active and shared experts: E64 k2 s1"),
    Column("E", "int", "experts", "routed experts a layer"),
    Column("k", "int", "experts", "active routed experts a token"),
    Column("E_s", "int", "experts", "shared experts a layer"),
    Column("A", "float", "1", "activation ratio (k + E_s) / (E + E_s), the formal one"),
    Column("A_routed", "float", "1", "activation ratio k / E, that of the paper's Fig 4"),
    Column("G", "float", "1", "granularity 2 d_model / d_expert, the middle one of its sizes"),
    Column("C", "float", "FLOP", "training compute of the mixture of experts"),
    Column("measured", "int", "1", "1 at a budget that was trained, 0 beyond: extrapolated"),
    Column("L_star", "float", "nats/token", "loss of the mixture's curve at C"),
    Column("C_dense", "float", "FLOP", "the dense counterpart's compute for it", True),
    Column("EL", "float", "1", "efficiency leverage C_dense / C; missing where undefined", True),
    Column("EL_low", "float", "1", "lower end of its interval, by both curves' draws", True),
    Column("EL_high", "float", "1", "upper end; infinite where too many draws never get there"),
    Column("level", "float", "1", "coverage of the interval"),
    Column("ln_EL_paired_se", "float", "1", "error of ln EL by held-out documents, paired", True),
    Column("ln_EL_seed_se", "float", "1", f"error of ln EL {BY_SEEDS}", True),
    Column("unreached", "float", "1", "share of draws whose dense curve never comes down to it"),
    Column("extrapolated", "int", "1", "1 where C_dense lies beyond the dense runs"),
    Column("n", "int", "1", "runs behind the mixture's curve"),
)
def derive(inputs: FittedInputs) -> Rows:
    """Makes the points of the dense counterpart, then those of each curve of the declared fits.

    They are at the budgets that were trained and, marked, at some beyond. The dense counterpart
    has leverage 1 against itself, as the architecture of A = 1 in the paper's tables. An
    architecture that two sweeps share appears once.
    """
    dense = curve(inputs, DENSE)
    mixtures = list(_architectures(inputs))
    budgets = np.unique(np.concatenate([moe.rows["C"].to_numpy(float) for moe, _ in mixtures]))
    points = [_points(dense, dense, "activation", budgets)]
    for moe, sweeps in mixtures:
        own = _points(dense, moe, sweeps, budgets)
        C, C_dense = own["C"].to_numpy(float), own["C_dense"].to_numpy(float)
        errors = leverage_errors(inputs, dense, moe.rows, moe.influence(C), C_dense)
        points.append(own.assign(**errors))
    order = ["A_routed", "G", "C"]
    return pd.concat(points).sort_values(order, ascending=[False, True, True], ignore_index=True)


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Names each architecture whose leverage is undefined or unsure at measured budgets."""
    lines = []
    measured = frame[frame["measured"] == 1]
    for name, rows in measured.groupby("architecture", sort=False):
        if n := int(rows["EL"].isna().sum()):
            lines.append(
                f"{name}: no efficiency leverage at {n} of {len(rows)} budgets: the dense curve "
                "never comes down to its loss"
            )
        if n := int(np.isinf(rows["EL_high"].astype(float)).sum()):
            lines.append(
                f"{name}: efficiency leverage has no upper end at {n} of {len(rows)} budgets: too "
                "many draws of the dense curve never come down to its loss; train it further"
            )
    return lines


def _architectures(inputs: FittedInputs) -> Iterator[tuple[Curve, str]]:
    """Yields each mixture's curve with its sweeps; the same runs are one architecture."""
    architectures: dict[tuple[str, ...], tuple[Curve, list[str]]] = {}
    for fit in inputs.fits:
        if fit == DENSE:
            continue
        sweep = inputs.spec(fit).sweep
        for moe in curves(inputs, fit):
            runs = tuple(sorted(moe.rows["run_id"]))
            architectures.setdefault(runs, (moe, []))[1].append(sweep)
    for moe, sweeps in architectures.values():
        yield moe, ",".join(sweeps)


def _points(dense: Curve, moe: Curve, sweep: str, budgets: Array) -> pd.DataFrame:
    first = moe.rows.iloc[0]
    own = budgets[budgets <= moe.rows["C"].max() * (1 + 1e-9)]
    own = own[own >= moe.rows["C"].min() * (1 - 1e-9)]
    C = np.concatenate([own, own[-1] * np.array(BEYOND)])
    points = leverage_points(dense, moe, C)
    if moe is dense:
        points = points.assign(EL=1.0, EL_low=1.0, EL_high=1.0, C_dense=C, unreached=0.0)
    E, k, E_s = (int(first[name]) for name in ("E", "k", "E_s"))
    largest_dense = dense.rows["C_leverage"].max() * (1 + 1e-6)
    return points.assign(
        sweep=sweep,
        architecture=f"E{E} k{k} s{E_s}",
        E=E,
        k=k,
        E_s=E_s,
        A=float(first["A"]),
        A_routed=k / E,
        G=float(moe.rows["G"].median()),
        measured=(np.arange(len(C)) < len(own)).astype(int),
        extrapolated=(points["C_dense"] > largest_dense).astype(int),
        n=len(moe.rows),
    )
