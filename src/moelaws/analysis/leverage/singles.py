"""Efficiency leverage of single runs: where a baseline's curve has the loss of one run.

For the sub-experiments with fewer budgets than a curve needs, and whose baseline is another than
the dense counterpart (App F.4, leverage: a model without dense layers).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.leverage.curves import Curve, curve
from moelaws.analysis.leverage.series import SERIES
from moelaws.tables.column import Column

# Sweep -> the fit whose curve its runs are read against.
BASELINES = {
    "shared": "curve_dense",
    "granularity_weak": "curve_dense",
    "dense_layers": "curve_layers",
    "attention": "curve_attention",
}

COLUMNS = (
    Column("sweep", "string", "1", "the study's sweep"),
    Column("run_id", "string", "1", "identity of the run"),
    Column("C", "float", "FLOP", "training budget"),
    Column("x", "float", "1", "what the sweep varies: G, or a share"),
    Column("baseline", "string", "1", "the fit whose curve the loss is looked up on"),
    Column("L", "float", "nats/token", "loss of the run"),
    Column("EL", "float", "1", "compute of the baseline for that loss over the run's", True),
    Column("EL_low", "float", "1", "lower end of its interval", True),
    Column("EL_high", "float", "1", "upper end; infinite where draws never get there", True),
    Column("level", "float", "1", "coverage of the interval, by the baseline's draws and scatter"),
)


def derive(inputs: Inputs) -> pd.DataFrame:
    """The table ``COLUMNS`` for each sweep of ``BASELINES`` whose fit the entry declares."""
    parts = []
    for sweep, fit in BASELINES.items():
        runs = SERIES[sweep].runs(inputs) if fit in inputs.fits else pd.DataFrame()
        if len(runs):
            parts.append(_single(runs, curve(inputs, fit)).assign(sweep=sweep, baseline=fit))
    names = [c.name for c in COLUMNS]
    return pd.concat(parts, ignore_index=True)[names] if parts else pd.DataFrame(columns=names)


def warnings(frame: pd.DataFrame) -> list[str]:
    """A line for each sweep with runs that the baseline's curve never comes down to."""
    return [
        f"{sweep}: {int(rows['EL'].isna().sum())} of {len(rows)} runs have a loss that the "
        "baseline's curve never comes down to: no leverage"
        for sweep, rows in frame.groupby("sweep")
        if rows["EL"].isna().any()
    ]


def _single(runs: pd.DataFrame, baseline: Curve, seed: int = 0) -> pd.DataFrame:
    L, C = runs["L"].to_numpy(float), runs["C_leverage"].to_numpy(float)
    level, noise = baseline.level, baseline.noise()
    low, high = np.full((2, len(L)), np.nan)
    if np.isfinite(noise) and len(baseline.draws):
        z = np.random.default_rng(seed).standard_normal((len(baseline.draws), len(L)))
        drawn = baseline.compute_draws(L * np.exp(noise * z)) / C
        drawn = np.sort(np.where(np.isnan(drawn), np.inf, drawn), axis=0)
        tail = int((len(drawn) - 1) * (1 - level) / 2 + 1e-9)
        low, high = drawn[tail], drawn[len(drawn) - 1 - tail]
    EL = baseline.compute_for(L) / C
    return runs[["run_id", "C", "x", "L"]].assign(EL=EL, EL_low=low, EL_high=high, level=level)
