"""Efficiency leverage of architectures and of single runs, and forms of its laws by budget.

``points`` looks the loss of an architecture's curve up on the curve of its dense counterpart
(Algorithm 1). ``singles`` looks up the losses of single runs: it serves sub-experiments that have
fewer budgets than a curve needs, or another baseline than the dense counterpart (App F.4: a model
without dense layers). ``forms`` are fitted here and not as fits of the study (App N): a budget with
too few points for a form has a note, where a fit would fail.
"""

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import BY_SEEDS
from moelaws.analysis.derive import Row, Rows, of_runs, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array
from moelaws.fitting.fit import fit
from moelaws.fitting.prediction import of_draws
from moelaws.fitting.quantiles import stretched
from moelaws.laws.base import FittableLaw
from moelaws.spec.errors import UserError, located
from moelaws.spec.fit import Fit
from moelaws.studies.leverage.derived.curves import (
    COMPUTE,
    DENSE,
    Curve,
    curve,
    curves,
    leverage_errors,
    leverage_points,
    open_interval,
)
from moelaws.studies.leverage.derived.series import SERIES
from moelaws.studies.leverage.laws import activation, granularity
from moelaws.studies.leverage.laws.curve import compute_for
from moelaws.tables.column import COVERAGE, NOTE, RUNS, Column, estimated
from moelaws.tables.sweeps import in_sweep

# Times the largest budget, where curves are extrapolated: from 3e20 FLOPs to 6e20, ..., and 1e22,
# of which the paper speaks.
BEYOND = (2.0, 10 / 3, 20 / 3, 10.0, 20.0, 100 / 3)
JOINT = "joint"  # the study's fit of Eq 4
VALIDATION = 6.0  # points of at least this leverage validate it (sec 4.2.3)
# Sweep -> the fit on whose curve the losses of its runs are looked up.
BASELINES = {
    "shared": "curve_dense",
    "granularity_weak": "curve_dense",
    "dense_layers": "curve_layers",
    "attention": "curve_attention",
}
# Each form with the sweep of its points, the column of its variable and the R2 that is printed.
FORMS = (
    (activation.LAW, "activation", "A_routed", 0.9915),
    (activation.VARIANTS["power"], "activation", "A_routed", 0.9772),
    (granularity.LAW, "granularity", "G", 0.9575),
    (granularity.VARIANTS["saturating"], "granularity", "G", 0.9432),
    (granularity.VARIANTS["power"], "granularity", "G", 0.8276),
)


@table(
    Column("sweep", "string", "the study's sweeps of the architecture, joined by commas"),
    Column("architecture", "string", "routed, active and shared experts: E64 k2 s1"),
    *of_runs("E", "k", "E_s", "A"),
    Column("A_routed", "float", "activation ratio k / E, that of the paper's Fig 4"),
    Column("G", "float", "granularity 2 d_model / d_expert, the middle one of its sizes"),
    *of_runs("C"),
    Column("measured", "int", "1 at a budget that was trained, 0 beyond: extrapolated"),
    Column("L_star", "float", "loss of the mixture's curve at C", "nats/token"),
    Column("C_dense", "float?", "the dense counterpart's compute for it", "FLOP"),
    *estimated("EL", "efficiency leverage C_dense / C; its upper end may be infinite"),
    Column("EL_router", "float?", "EL with the routers' FLOPs in both computes"),
    COVERAGE,
    Column("ln_EL_paired_se", "float?", "error of ln EL by held-out documents, paired"),
    Column("ln_EL_seed_se", "float?", f"error of ln EL {BY_SEEDS}"),
    Column("extrapolated", "int", "1 where C_dense lies beyond the dense runs"),
    RUNS,
    told={
        "measured == 0": "some points lie beyond the budgets that were trained: there the loss "
        "curves are extrapolated, and all points of a curve share its errors",
        "measured == 1 and EL.isna()": "{architecture}: no efficiency leverage at some budgets: "
        "the dense curve never comes down to its loss",
        "measured == 1 and EL_high == inf": "{architecture}: efficiency leverage has no upper end "
        "at some budgets: too many draws of the dense curve never come down to its loss; train it "
        "further",
    },
)
def points(inputs: FittedInputs) -> Rows:
    """Returns the points of the dense counterpart and of each curve of the declared fits.

    They lie at the budgets that were trained and, marked as extrapolated, at some beyond. The dense
    counterpart has leverage 1 against itself, as the architecture of A = 1 in the paper's tables.
    An architecture that two sweeps share appears once.
    """
    dense = curve(inputs, DENSE)
    mixtures: dict[tuple[str, ...], tuple[Curve, list[str]]] = {}  # by their runs
    for name in (name for name in inputs.fits if name != DENSE):
        for moe in curves(inputs, name):
            runs = tuple(sorted(moe.rows["run_id"]))
            mixtures.setdefault(runs, (moe, []))[1].append(inputs.spec(name).sweep)
    every = [moe.rows["C"].to_numpy(float) for moe, _ in mixtures.values()]
    budgets = np.unique(np.concatenate(every))
    points = [_points(dense, dense, "activation", budgets)]
    for moe, sweeps in mixtures.values():
        own = _points(dense, moe, ",".join(sweeps), budgets)
        C, C_dense = own["C"].to_numpy(float), own["C_dense"].to_numpy(float)
        errors = leverage_errors(inputs, dense, moe.rows, moe.influence(C), C_dense)
        points.append(own.assign(**errors))
    order = ["A_routed", "G", "C"]
    return pd.concat(points).sort_values(order, ascending=[False, True, True], ignore_index=True)


def by_joint_law(inputs: FittedInputs, points: pd.DataFrame) -> tuple[Array, Array]:
    """Returns EL by the fitted Eq 4 at ``points`` (n,), and by each draw of the fit (draws, n)."""
    fitted = inputs.fit(JOINT).parts[0]
    law = inputs.law(JOINT)
    names = {"A": "A_routed", "G": "G", "C": "C"}
    columns = {name: points[column].to_numpy(float) for name, column in names.items()}
    draws = inputs.draws(JOINT).reindex(columns=[*law.names]).to_numpy(float)
    return law.predict(fitted.estimates(), columns), of_draws(law, fitted, draws, columns)


def _points(dense: Curve, moe: Curve, sweep: str, budgets: Array) -> pd.DataFrame:
    """Returns the points of ``moe`` at those of the ``budgets`` that it spans, and beyond."""
    first = moe.rows.iloc[0]
    own = budgets[budgets <= moe.rows["C"].max() * (1 + 1e-9)]
    own = own[own >= moe.rows["C"].min() * (1 - 1e-9)]
    C = np.concatenate([own, own[-1] * np.array(BEYOND)])
    points = leverage_points(dense, moe, C)
    if moe is dense:
        points = points.assign(EL=1.0, EL_low=1.0, EL_high=1.0, C_dense=C)
    EL_router = points["EL"] * dense.router(points["C_dense"].to_numpy(float)) / moe.router(C)
    E, k, E_s = (int(first[name]) for name in ("E", "k", "E_s"))
    largest_dense = dense.rows[COMPUTE].max() * (1 + 1e-6)
    return points.assign(
        E=E,
        k=k,
        E_s=E_s,
        A=float(first["A"]),
        A_routed=k / E,
        sweep=sweep,
        architecture=f"E{E} k{k} s{E_s}",
        G=float(moe.rows["G"].median()),
        EL_router=EL_router,
        measured=(np.arange(len(C)) < len(own)).astype(int),
        extrapolated=(points["C_dense"] > largest_dense).astype(int),
        n=len(moe.rows),
    )


@table(
    *of_runs("sweep", "run_id", "C", "C_leverage_no_router", "L"),
    Column("variant", "int", "number of the architecture, for which budgets share a curve"),
    Column("budgets", "int", "budgets at which its runs completed"),
    Column("x", "float", "what the sweep varies: G, or a share"),
    Column("baseline", "string", "the fit whose curve the loss is looked up on"),
    *estimated("EL", "compute of the baseline for that loss over the run's"),
    COVERAGE,
    Column("ln_EL_paired_se", "float?", "error of ln EL by held-out documents, paired"),
    Column("ln_EL_seed_se", "float?", f"error of ln EL {BY_SEEDS}"),
    told={
        "EL.isna()": "{sweep}: some runs have a loss that the baseline's curve never comes down "
        "to: no leverage"
    },
)
def singles(inputs: FittedInputs) -> Rows:
    """Returns a row for each run of the sweeps of ``BASELINES`` whose fit the entry declares."""
    tables = []
    for sweep, name in BASELINES.items():
        runs = SERIES[sweep].by_architecture(inputs) if name in inputs.fits else pd.DataFrame()
        if len(runs):
            baseline = curve(inputs, name)
            own = _read(runs, baseline).assign(sweep=sweep, baseline=name)
            C_dense = (own["EL"] * own[COMPUTE]).to_numpy(float)
            errors = leverage_errors(inputs, baseline, runs, np.eye(len(runs)), C_dense)
            tables.append(own.assign(**errors))
    if not tables:
        return []
    frame = pd.concat(tables, ignore_index=True)
    variants = frame.groupby(["sweep", "architecture"])
    return frame.assign(variant=variants.ngroup() + 1, budgets=variants["C"].transform("nunique"))


def _read(runs: pd.DataFrame, baseline: Curve) -> pd.DataFrame:
    """Looks each run's loss up on the baseline's curve; intervals need the curve's noise."""
    L, C = runs["L"].to_numpy(float), runs[COMPUTE].to_numpy(float)
    level, noise = baseline.level, baseline.noise()
    low, high = np.full((2, len(L)), np.nan)
    EL = compute_for(baseline.params, L) / C
    if np.isfinite(noise) and len(baseline.draws):
        z = np.random.default_rng(0).standard_normal((len(baseline.draws), len(L)))
        scatter = np.exp(noise * z / baseline.stretch)  # which is not to be stretched
        drawn = compute_for(baseline.drawn_params(), L * scatter, unit=C)
        low, high = open_interval(stretched(drawn, EL, baseline.stretch), level)
    return runs.assign(EL=EL, EL_low=low, EL_high=high, level=level)


@table(
    Column("form", "string", "equation of the law"),
    Column("law", "string", "the law's form"),
    *of_runs("C"),
    Column("n", "int", "points of efficiency leverage"),
    Column("parameters", "int", "parameters of the form"),
    Column("R2", "float?", "share of the variance of EL explained"),
    Column("published", "float", "R2 that Table 16, Table 17 or App N.2 prints"),
    NOTE,
    told={"note != ''": "{law}: not fitted at some budgets: {note}"},
)
def forms(inputs: Inputs) -> Rows:
    """Yields a row for each form at each budget that was trained, from the table ``points``."""
    points = inputs.derived("points")
    points = points[(points["measured"] == 1) & (points["EL"] > 0)]
    for law, sweep, column, published in FORMS:
        own, equation = points[in_sweep(points, sweep)], law.equation.partition(", where")[0]
        for C, rows in own.groupby("C"):
            form = {"form": equation, "law": law.ref, "C": C, "published": published}
            yield form | _form_errors(law, rows, column)


def _form_errors(law: FittableLaw, points: pd.DataFrame, column: str) -> Row:
    """Fits the law to the points of one budget; returns its errors, or why there are none."""
    P, n = len(law.parameters), len(points)
    errors = {"n": n, "parameters": P, "note": ""}
    if n <= P:
        return {**errors, "note": f"{n} points for {P} parameters"}
    mapping = {law.variables[0].name: column, "EL": "EL"}
    spec = Fit(name="form", law=law.ref, mapping=mapping, bootstrap=1)
    try:
        with located("points"):
            return {**errors, "R2": fit(law, points, spec).parts[0].metrics["r2"]}
    except UserError as error:
        return {**errors, "note": str(error)}
