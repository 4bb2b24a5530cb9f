"""A simulated study of the sparsity paper: its law's losses on a grid, fits, derived tables."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.fitting.errors import errors
from moelaws.fitting.report import Estimate, FitReport, GroupFit
from moelaws.spec.fit import Fit
from moelaws.spec.project import load_study
from repository import REPOSITORY
from study_case import OPTIMUM, Case, as_fitted, filled

# A surface with minima at known places: N*(S=.9) = 1.27476e9, S*(N=1e9) = .769431.
BOWL = {"a1": -1.2, "a2": 0.03, "b1": 0.5, "b2": 0.02, "c1": -0.03, "c2": 5e-5, "d": 15.0}


@dataclass(frozen=True)
class Setting:
    """A grid to simulate; losses follow Eq 6 with the published coefficients."""

    budgets: tuple[float, ...] = (3e19, 6e19, 1e20, 3e20, 1e21)
    sparsities: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98)
    sizes: int = 9
    spread: float = 4.0  # sizes from the optimum / spread to the optimum * spread
    seeds: int = 1
    noise: float = 0.003  # of ln L
    scale: float = 1.0  # divides sizes and tokens before the law sees them
    source: str = "simulated"
    holdout: str = "S >= 0.98"
    shift: float = 1.0  # moves the grid's sizes off the optimum


PAPER = Setting()
DEMO = Setting(
    budgets=(1e11, 3e11, 1e12), sparsities=(0.0, 0.5, 0.75, 0.9375), sizes=5, seeds=2,
    noise=0.01, scale=3e-5, source="trained", spread=3.0, holdout="S >= 0.93",
)  # fmt: skip


def simulate(setting: Setting, seed: int = 0) -> pd.DataFrame:
    """A study's table with the losses of Eq 6 at a grid around each isoFLOP optimum."""
    rng = np.random.default_rng(seed)
    law = laws.get("sparsity.loss")
    records = []
    for C in setting.budgets:
        for S in setting.sparsities:
            grid = np.geomspace(1e3, 1e14, 4001)
            tokens = C / (6 * (1 - S) * grid)
            columns = {"N": grid / setting.scale, "D": tokens / setting.scale, "S": S}
            centre = grid[np.argmin(law.predict(law.published, columns))] * setting.shift
            for N in centre * np.geomspace(1 / setting.spread, setting.spread, setting.sizes):
                for run_seed in range(setting.seeds):
                    records.append({"C": C, "S": S, "N_total": round(N), "seed": run_seed})
    frame = pd.DataFrame(records)
    active = (1 - frame["S"]) * frame["N_total"]
    D = frame["C"] / (6 * active)
    columns = {"N": frame["N_total"] / setting.scale, "D": D / setting.scale, "S": frame["S"]}
    L = law.predict(law.published, columns) * np.exp(rng.normal(0, setting.noise, len(frame)))
    frame = frame.assign(
        N_active=active.round().astype(int), D=D.round().astype(int), L=L,
        L_se=0.004 if setting.source == "trained" else np.nan,
        C_6N=frame["C"], C_sparsity=frame["C"] * (1.03 + 2.0 * active**-0.25),
        source=setting.source, status="completed", study="sparsity", tier="demo",
        n_seeds=setting.seeds, k=2, E=(2 / (1 - frame["S"])).round().astype(int),
    )  # fmt: skip
    frame["run_id"] = [f"{row:016x}" for row in range(len(frame))]
    # The sizes of a budget and sparsity have widths of their own, the same at every sparsity.
    rank = frame.groupby(["C", "S"])["N_total"].rank(method="dense")
    frame["d_model"] = (16 * rank).astype(int)
    return filled(frame).assign(recipe=frame["d_model"].astype(str))


def fit_surface(frame: pd.DataFrame, size: str, rng: np.random.Generator) -> FitReport:
    """Eq 8 by NumPy's least squares, a part a budget, with a bootstrap over rows."""
    law = laws.get("sparsity.isoflop")
    parts, draws = [], []
    for C, rows in frame.groupby("C"):
        columns = {"N": rows[size].to_numpy(float), "S": rows["S"].to_numpy(float)}
        X = np.column_stack([law.features[name](columns) for name in law.names])
        scale = np.abs(X).max(axis=0)
        L = rows["L"].to_numpy()
        estimate = np.linalg.lstsq(X / scale, L, rcond=None)[0] / scale
        for draw in range(40):
            i = rng.integers(len(L), size=len(L))
            drawn = np.linalg.lstsq(X[i] / scale, L[i], rcond=None)[0] / scale
            draws.append({"C": C, "draw": draw, **dict(zip(law.names, drawn, strict=True))})
        params = {n: Estimate(v, None, None) for n, v in zip(law.names, estimate, strict=True)}
        where = {"C": float(C)}
        parts.append(GroupFit(where, len(L), 0.0, True, params, {}, None, OPTIMUM))
    mapping = {"N": size, "S": "S", "L": "L"}
    name = f"isoflop_{size.removeprefix('N_')}"
    spec = Fit(name=name, law=law.id, mapping=mapping, split_by="C")
    return as_fitted(spec, parts, pd.DataFrame(draws), frame["source"].iloc[0])


def true_loss(frame: pd.DataFrame, setting: Setting) -> FitReport:
    """Eq 6 with the coefficients that the losses were simulated from, as if fitted."""
    law = laws.get("sparsity.loss")
    true = dict(law.published)
    for coefficient, exponent in (("a", "alpha"), ("b", "beta"), ("d", "gamma")):
        true[coefficient] *= setting.scale ** true[exponent]
    mapping = {"N": "N_total", "D": "D", "S": "S", "L": "L"}
    spec = Fit(name="loss", law=law.id, mapping=mapping, holdout=setting.holdout)
    return _whole(spec, true, frame)


def baselines(frame: pd.DataFrame, setting: Setting) -> list[FitReport]:
    """Laws blind to sparsity, as if fitted: Chinchilla's own coefficients and made-up ones."""
    columns = {"N": "N_active", "D": "D", "L": "L"}
    chinchilla = dict(laws.get("chinchilla").published)
    wang = {"a": 400.0, "b": 410.0, "tau": 1.7, "alpha": 0.34, "beta": 0.28, "gamma": 0.05}
    return [
        _whole(Fit(name=name, law=law, mapping=mapping, holdout=setting.holdout), params, frame)
        for law, name, params, mapping in (
            ("chinchilla", "chinchilla", chinchilla, columns),
            ("wang.loss", "wang", wang, {**columns, "E": "E"}),
        )
    ]


def _whole(spec: Fit, values: dict[str, float], frame: pd.DataFrame) -> FitReport:
    """A report of one part, its errors as measured and some draws around its estimates."""
    fittable = laws.fittable(spec.law)
    params = {name: Estimate(value, None, None) for name, value in values.items()}
    rng = np.random.default_rng(3)
    around = fittable.vector(values)
    drawn = fittable.natural(around + rng.normal(0, 1e-3, (20, len(around))))
    draws = pd.DataFrame(drawn, columns=list(fittable.names))
    held = frame["S"] >= float(spec.holdout.split()[-1])
    columns = {k: frame[c].to_numpy(float) for k, c in spec.mapping.items() if k != "L"}
    predicted = fittable.predict(values, columns)
    L = frame["L"].to_numpy()
    metrics = errors(L[~held], predicted[~held], 1e-3)
    holdout = errors(L[held], predicted[held], 1e-3) if held.any() else None
    part = GroupFit({}, int((~held).sum()), 0.0, True, params, metrics, holdout, OPTIMUM)
    return as_fitted(spec, [part], draws, frame["source"].iloc[0])


def write_case(root: Path, frame: pd.DataFrame, setting: Setting) -> Case:
    """Fit, derive and write everything that the figures read."""
    rng = np.random.default_rng(7)
    study = load_study("sparsity", REPOSITORY)
    case = Case.of(study, root, frame)
    done = frame[frame["status"] == "completed"]
    case.add(fit_surface(done, "N_total", rng), fit_surface(done, "N_active", rng))
    case.add(true_loss(done, setting), *baselines(done, setting))
    case.derive(*(entry.name for entry in study.derived))
    return case
