"""Tables of the published runs of Eq 1, from what is left of it without an effect.

The losses of claims on its coefficients follow it, or what the null leaves of it, fitted to all
runs at once. Their noise is the residuals of the routers' own fits. Those of one base size go
together: they are multiplied by one normal number a size. These claims read refits by SciPy's
optimiser, which begins at the truth, in place of the fitting engine with its many starts; E_max
alone comes from the engine, with one start.
"""

from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.fitting.quantiles import jackknife
from moelaws.laws.clark.routing import log10_cutoff
from moelaws.spec.project import load_study
from moelaws.studies.routing.routers import CUTOFF, DENSE, ROUTERS, main_runs
from moelaws.tables.at_hand import imported_files
from nulls.trial import Trial, null, seen
from repository import REPOSITORY

STUDY = load_study("routing", REPOSITORY)
RUNS = main_runs(pd.read_parquet(next(iter(imported_files(STUDY)))))
IS_DENSE = RUNS["router"] == DENSE
OWN = {r.name: RUNS.index[IS_DENSE | (RUNS["router"] == r.name)] for r in ROUTERS}
LN_L = np.log(RUNS["L"])
LAW = laws.fittable("clark.routing")
START = LAW.vector(LAW.published)
LARGEST = np.log10(RUNS["N_dense"].max())
SEED_SD = float(RUNS[IS_DENSE].groupby("N_dense")["L"].std().max())  # nats

# What is left of Eq 1: theta = matrix @ free parameters + constant, on the working scale.
A, B, C, D, E_START, E_MAX = np.eye(6)
EQ_1 = np.eye(6), np.zeros(6)
FORMS = {
    "eq_1": EQ_1,
    "same_fraction": (np.array([A, B, D, E_START, E_MAX]).T, np.zeros(6)),  # c = 0
    "up_to_the_largest": (np.array([A, C - LARGEST * B, D, E_START, E_MAX]).T, np.zeros(6)),
    "endless": (np.array([A, B, C, D, E_START]).T, np.log(1e9) * E_MAX),
}


def eq_1(rows):
    sizes, E = rows["N_dense"].to_numpy(float), rows["E"].to_numpy(float)
    return LAW.model({"N_active": sizes, "E": E})


def solved(rows, ln_L, form=EQ_1, start=START):
    """The parameters (6,) of least squares of ln L within a ``form`` of Eq 1."""
    (matrix, constant), model = form, eq_1(rows)

    def residuals(x):
        return model.evaluate((matrix @ x + constant)[None])[0][0] - ln_L

    def slopes(x):
        state = model.evaluate((matrix @ x + constant)[None])[1]
        return model.jacobian(state)[0].T @ matrix

    free = np.linalg.lstsq(matrix, start - constant)[0]
    bounds = np.tile([[-np.inf], [np.inf]], len(free))
    for axis, ends in ((E_START, (0.1, 1e3)), (E_MAX, (1.0, 1e9))):
        bounds[:, axis @ matrix > 0] = np.log(ends)[:, None]
    free = np.clip(free, bounds[0] + 1e-6, bounds[1] - 1e-6)
    return matrix @ least_squares(residuals, free, slopes, bounds, x_scale="jac").x + constant


def predicted(rows, theta):
    return pd.Series(eq_1(rows).evaluate(theta[None])[0][0], index=rows.index)


@cache
def residuals_of_the_routers():
    fitted = {
        name: predicted(RUNS.loc[own], solved(RUNS.loc[own], LN_L[own].to_numpy()))
        for name, own in OWN.items()
    }
    return LN_L - pd.DataFrame(fitted).mean(axis=1)


@cache
def truth_of(form):
    return solved(RUNS, LN_L.to_numpy(), FORMS[form])


def losses_of(form, seed):
    """ln L of a table."""
    rng = np.random.default_rng(seed)
    factor = {N: rng.standard_normal() for N in sorted(RUNS["N_dense"].unique())}
    noise = residuals_of_the_routers() * RUNS["N_dense"].map(factor)
    return predicted(RUNS, truth_of(form)) + noise


def over_sizes(truth, ln_L):
    """The rules' inputs by refits without one base size: the table ``sizes``."""
    sizes = []
    for router in ROUTERS:
        rows = RUNS.loc[OWN[router.name]]
        refits = [solved(rows, ln_L[rows.index].to_numpy(), start=truth)]
        for N in rows["N_dense"].unique():
            kept = rows[rows["N_dense"] != N]
            refits.append(solved(kept, ln_L[kept.index].to_numpy(), start=refits[0]))
        cuts = log10_cutoff(dict(zip(LAW.names, np.transpose(refits), strict=True)))
        values = np.column_stack([refits, cuts])
        with np.errstate(invalid="ignore"):  # a refit may have no cut-off
            low, high = jackknife(values[0], values[1:], 0.9)
        for i, quantity in enumerate((*LAW.names, CUTOFF)):
            row = {"router": router.name, "quantity": quantity, "estimate": values[0][i]}
            sizes.append(row | {"low": low[i], "high": high[i]})
    return SimpleNamespace(derived={"sizes": pd.DataFrame(sizes)}.get)


def refitted(seed, form):
    return over_sizes(truth_of(form), losses_of(form, seed))


def profiled(seed, form):
    """The engine's fits of all routers, as the rule reads them."""
    frame = RUNS.assign(L=np.exp(losses_of(form, seed)))
    update = {"bootstrap": 1, "protocol": {"objective": "squared", "sample": 1}}

    def report(name):
        spec = STUDY.fit(name).model_copy(update=update)
        return fit(laws.fittable(spec.law), frame, spec, calibrated=False)

    return SimpleNamespace(fit=report)


def gains(L):
    dense = L[IS_DENSE].groupby(RUNS["N_dense"]).mean()
    frame = RUNS.assign(L=L, gain=RUNS["N_dense"].map(dense) - L)
    return SimpleNamespace(
        completed=frame, derived={"gains": frame[~IS_DENSE].reset_index(drop=True)}.get
    )


def helping(seed, helps):
    """The real losses where routing ``helps``, else those of dense models, with seeds' noise."""
    dense = RUNS["N_dense"].map(RUNS[IS_DENSE].groupby("N_dense")["L"].mean())
    real = RUNS["L"].where(~IS_DENSE & helps, dense)
    return gains(real + np.random.default_rng(seed).normal(0, SEED_SD, len(real)))


def permuted_by_model(seed):
    cells = RUNS.groupby(["N_dense", "E", IS_DENSE])["L"]
    return gains(cells.transform(np.random.default_rng(seed).permutation))


def permuted_by_size(seed):
    """The routers change names, at all numbers of experts of a base size alike."""
    rng = np.random.default_rng(seed)
    cells = RUNS[~IS_DENSE].pivot(index=["N_dense", "E"], columns="router", values="L")
    for _, rows in cells.groupby("N_dense"):
        cells.loc[rows.index] = rows.to_numpy()[:, rng.permutation(3)]
    known = cells.stack(future_stack=True)
    named = pd.MultiIndex.from_frame(RUNS[["N_dense", "E", "router"]])
    return gains(RUNS["L"].where(IS_DENSE, known.reindex(named).to_numpy()))


SHRINKS = "routing_helps_less_as_models_grow"
BEYOND = "routing_stops_helping_beyond_the_sizes_measured"
HELPS = "routing_helps_at_every_size"
BEST = "s_base_is_the_best_router"
ALL = pd.Series(True, RUNS.index)
AT_LARGEST = RUNS["N_dense"] == RUNS["N_dense"].max()
ONE_MODEL = AT_LARGEST & (RUNS["router"] == "Hash") & (RUNS["E"] == 2)
TRIALS = [
    null(SHRINKS, partial(refitted, form="same_fraction")),
    null(BEYOND, partial(refitted, form="up_to_the_largest")),
    *(seen(claim, partial(refitted, form="eq_1"), 90) for claim in (SHRINKS, BEYOND)),
    null("gains_saturate_in_experts", partial(profiled, form="endless"), 40),
    seen("gains_saturate_in_experts", partial(profiled, form="eq_1"), 4, 10),
    Trial((HELPS,), partial(helping, helps=~ALL), (0, 0)),  # at no size does it help
    Trial((HELPS,), partial(helping, helps=~AT_LARGEST), (0, 0)),
    null(HELPS, partial(helping, helps=~ONE_MODEL)),
    seen(HELPS, partial(helping, helps=ALL), 50),
    null(BEST, permuted_by_model),
    null(BEST, permuted_by_size),
    seen(BEST, partial(helping, helps=ALL), 90),
]
