"""Efficiency leverage of single runs: the compute at which a baseline's curve has a run's loss.

This serves sub-experiments that have fewer budgets than a curve needs, or another baseline than
the dense counterpart (App F.4, leverage: a model without dense layers).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import BY_SEEDS
from moelaws.analysis.derive import Rows, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.studies.leverage.derived.curves import Curve, curve
from moelaws.studies.leverage.derived.efficiency import leverage_errors, open_interval
from moelaws.studies.leverage.derived.series import SERIES
from moelaws.tables.column import Column

# Sweep -> the fit whose curve its runs are read against.
BASELINES = {
    "shared": "curve_dense",
    "granularity_weak": "curve_dense",
    "dense_layers": "curve_layers",
    "attention": "curve_attention",
}


@table(
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
    Column("ln_EL_paired_se", "float", "1", "error of ln EL by held-out documents, paired", True),
    Column("ln_EL_seed_se", "float", "1", f"error of ln EL {BY_SEEDS}", True),
)
def derive(inputs: FittedInputs) -> Rows:
    """Makes a row for each run of the sweeps of ``BASELINES`` whose fit the entry declares."""
    tables = []
    for sweep, fit in BASELINES.items():
        runs = SERIES[sweep].runs(inputs) if fit in inputs.fits else pd.DataFrame()
        if len(runs):
            baseline = curve(inputs, fit)
            own = _read(runs, baseline).assign(sweep=sweep, baseline=fit)
            C_dense = (own["EL"] * runs["C_leverage"].to_numpy(float)).to_numpy(float)
            errors = leverage_errors(inputs, baseline, runs, np.eye(len(runs)), C_dense)
            tables.append(own.assign(**errors))
    return pd.concat(tables, ignore_index=True) if tables else []


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Names each sweep with runs to whose loss the baseline's curve never comes down."""
    return [
        f"{sweep}: {int(rows['EL'].isna().sum())} of {len(rows)} runs have a loss that the "
        "baseline's curve never comes down to: no leverage"
        for sweep, rows in frame.groupby("sweep")
        if rows["EL"].isna().any()
    ]


def _read(runs: pd.DataFrame, baseline: Curve, seed: int = 0) -> pd.DataFrame:
    """Reads each run's loss on the baseline's curve, with intervals where its noise is known."""
    L, C = runs["L"].to_numpy(float), runs["C_leverage"].to_numpy(float)
    level, noise = baseline.level, baseline.noise()
    low, high = np.full((2, len(L)), np.nan)
    if np.isfinite(noise) and len(baseline.draws):
        z = np.random.default_rng(seed).standard_normal((len(baseline.draws), len(L)))
        low, high = open_interval(baseline.compute_draws(L * np.exp(noise * z)) / C, level)
    EL = baseline.compute_for(L) / C
    return runs[["run_id", "C", "x", "L"]].assign(EL=EL, EL_low=low, EL_high=high, level=level)
