"""A simulated allocation study: runs whose losses follow Eq 2, fits, derived tables, on disk."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.fitting.diagnostics import NearOptima, Starts
from moelaws.fitting.errors import errors
from moelaws.fitting.fit import fit
from moelaws.fitting.report import Estimate, FitReport, GroupFit
from moelaws.spec.fit import Fit
from moelaws.spec.project import load_study
from moelaws.studies.allocation.laws import loss
from moelaws.studies.allocation.laws.ratio import LAW, VARIANTS, ratio
from moelaws.tables.parquet import column_metadata
from repository import REPOSITORY
from study_case import OPTIMUM, Case, as_fitted, filled

STUDY = load_study("allocation", REPOSITORY)

# Plausible losses: 2 to 4 nats, and a valley in r that a sweep sees.
TRUE = {
    "a": 60.0, "b": 400.0, "c": 8.0, "d": 1e-4, "tau": 1.5,
    "alpha": 0.3, "beta": 0.3, "lambda": 0.2, "gamma": 0.05,
}  # fmt: skip
BASELINES: dict[str, Mapping[str, float]] = {
    "wang": {"a": 90.0, "b": 400.0, "tau": 1.6, "alpha": 0.3, "beta": 0.3, "gamma": 0.0},
    "chinchilla": {"A": 60.0, "B": 400.0, "E": 1.6, "alpha": 0.3, "beta": 0.3},
    "abnar": {"a": 60.0, "b": 400.0, "c": 0.02, "d": 1e-3, "e": 1.6, "alpha": 0.3, "beta": 0.3,
              "lambda": 0.3, "delta": 0.1, "gamma": 0.1},
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A sweep to simulate; experts are counted without the shared one."""

    budgets: tuple[float, ...] = (1e18, 4e18, 1.6e19, 6e19, 2.5e20, 1e21)
    experts: tuple[int, ...] = (16, 32, 64, 128)
    ratios: tuple[float, ...] = (0.2, 0.3, 0.45, 0.65, 0.9, 1.2, 1.5)
    noise: float = 0.002  # of ln L
    seeds: int = 1
    source: str = "simulated"


PAPER = Setting()
POOR = Setting(
    budgets=(2e10, 5e10, 1.2e11), experts=(8, 16, 32), ratios=(0.3, 0.45, 0.65, 1.0, 1.5),
    noise=0.01, source="trained",
)  # fmt: skip
ONE = Setting(budgets=(1e20, 2e20), experts=(16,), ratios=(0.5, 1.0), source="trained")


def simulate(setting: Setting, seed: int = 0) -> pd.DataFrame:
    """The study's table: losses of Eq 2 with ``TRUE`` and the published r*, with noise."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        [
            {"C": C, "E": E, "r": r, "seed": run_seed}
            for C in setting.budgets
            for E in setting.experts
            for r in setting.ratios
            for run_seed in range(setting.seeds)
        ]
    )
    active = np.sqrt(frame["C"] / 120)
    S = 1 - 3 / (frame["E"] + 1)
    D = frame["C"] / (6 * active)
    columns = {"N": active, "D": D, "S": S, "r": frame["r"], "r_star": ratio(frame["C"], S)}
    L = loss.LAW.predict(TRUE, columns) * np.exp(rng.normal(0, setting.noise, len(frame)))
    frame = frame.assign(
        S_shared=S, A=1 - S, S=1 - 2 / frame["E"], E_s=1, k=2, L=L, D=D.round().astype(int),
        L_se=0.004, N_active_nonemb=active.round().astype(int),
        N_total=(active * frame["E"] / 3).round().astype(int), source=setting.source,
        status="completed", study="allocation", tier="paper", sweep="ratio", n_seeds=1,
        n_layers=8, n_heads=8, d_model=512, batch_tokens=8192, context=128, lr=1e-3, steps=2000,
    )  # fmt: skip
    frame["run_id"] = [f"{row:016x}" for row in range(len(frame))]
    return filled(frame)


def write_case(root: Path, frame: pd.DataFrame) -> Case:
    """Fit r* by the engine, take the loss laws as if fitted, derive, and write all of it."""
    case = Case.of(STUDY, root, frame)
    case.derive("r_star")
    rows = case.inputs.derived("r_star")
    units = {name: unit for name, (unit, _) in column_metadata(case.derived["r_star"]).items()}
    for name in ("ratio_raw", "ratio_adjusted", "ratio"):
        spec = STUDY.fit(name)
        case.add(fit(laws.fittable(spec.law), rows, spec, units=units))
    case.derive("stages", "runs")
    rows = case.inputs.derived("runs")
    case.add(*(_as_fitted(spec, rows) for spec in STUDY.fits if spec.table == "runs"))
    return case


def _as_fitted(spec: Fit, rows: pd.DataFrame) -> FitReport:
    """A report with ``TRUE`` or a baseline's coefficients, and draws close to them."""
    law, params = laws.fittable(spec.law), BASELINES.get(spec.name, TRUE)
    spread = np.random.default_rng(0).normal(1, 1e-4, (20, len(law.names)))
    draws = pd.DataFrame(spread * [params[p] for p in law.names], columns=list(law.names))
    columns = {
        v.name: rows[spec.mapping.get(v.name, v.name)].to_numpy(float) for v in law.variables
    }
    value, held = law.predict(params, columns), rows["sparsest"].to_numpy(bool)
    L = rows["L"].to_numpy(float)
    estimates = {p: Estimate(params[p], 0.9 * params[p], 1.1 * params[p]) for p in law.names}
    metrics = {**errors(L[~held], value[~held], 1e-3), "aic": 1.0, "aicc": 1.0, "bic": 1.0}
    known = replace(
        OPTIMUM,
        unidentified=[law.names[0]],
        starts=Starts(150, 150, 9, 0, 0, False, 150),
        near_equivalent=NearOptima(1.5, []),
    )
    holdout = errors(L[held], value[held], 1e-3)
    result = GroupFit({}, int((~held).sum()), 0.0, True, estimates, metrics, holdout, known)
    return as_fitted(spec, [result], draws, str(rows["source"].iloc[0]))


def alpha_r(S):
    """The published prefactor of r* at sparsity ``S``."""
    return VARIANTS["stage2_alpha"].predict(LAW.published, {"S": S})


def beta_r(S):
    """The published exponent of compute in r* at sparsity ``S``."""
    return VARIANTS["stage2_beta"].predict(LAW.published, {"S": S})
