"""What the claims on routing say of tables in which their effect is not there.

The tables have the published runs of Eq 1. The losses of claims on its coefficients follow it, or
what the null leaves of it, fitted to all runs at once. Their noise is the residuals of the routers'
own fits. Those of one base size go together: they are multiplied by one normal number a size.
These claims read refits by SciPy's optimiser, which begins at the truth, in place of the fitting
engine with its many starts; E_max alone comes from the engine, with one start.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares

from moelaws import laws
from moelaws.claims.base import Verdict, verdict
from moelaws.fitting.fit import fit
from moelaws.fitting.quantiles import jackknife
from moelaws.laws.clark.routing import log10_cutoff
from moelaws.spec.project import load_study
from moelaws.spec.references import resolve
from moelaws.studies.routing.routers import CUTOFF, DENSE, ROUTERS, main_runs
from moelaws.tables.at_hand import imported_files
from repository import REPOSITORY

STUDY = load_study("routing", REPOSITORY)
CLAIMS = {claim.name: claim for claim in STUDY.claims}
RUNS = main_runs(pd.read_parquet(next(iter(imported_files(STUDY)))))
IS_DENSE = RUNS["router"] == DENSE
OWN = {r.name: RUNS.index[IS_DENSE | (RUNS["router"] == r.name)] for r in ROUTERS}
LN_L = np.log(RUNS["L"])
LAW = laws.fittable("clark.routing")
START = LAW.vector(LAW.published)
LARGEST = np.log10(RUNS["N_dense"].max())
SEED_SD = float(RUNS[IS_DENSE].groupby("N_dense")["L"].std().max())  # nats
TABLES = 100

# What is left of Eq 1: theta = matrix @ free parameters + constant, on the working scale.
A, B, C, D, E_START, E_MAX = np.eye(6)
EQ_1 = np.eye(6), np.zeros(6)
SAME_FRACTION = np.array([A, B, D, E_START, E_MAX]).T, np.zeros(6)  # c = 0
UP_TO_THE_LARGEST = np.array([A, C - LARGEST * B, D, E_START, E_MAX]).T, np.zeros(6)
ENDLESS = np.array([A, B, C, D, E_START]).T, np.log(1e9) * E_MAX


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


def residuals_of_the_routers():
    fitted = {
        name: predicted(RUNS.loc[own], solved(RUNS.loc[own], LN_L[own].to_numpy()))
        for name, own in OWN.items()
    }
    return LN_L - pd.DataFrame(fitted).mean(axis=1)


RESIDUALS = residuals_of_the_routers()


def tables_of(form, number):
    """Pairs of the truth and a table's ln L, by seed."""
    truth = solved(RUNS, LN_L.to_numpy(), form)
    exact = predicted(RUNS, truth)
    for seed in range(number):
        rng = np.random.default_rng(seed)
        factor = {N: rng.standard_normal() for N in sorted(RUNS["N_dense"].unique())}
        yield truth, exact + RESIDUALS * RUNS["N_dense"].map(factor)


def decided(name, inputs):
    claim = CLAIMS[name]
    evidence = resolve(STUDY.home, claim.code)(inputs, **claim.arguments)
    return verdict(evidence.intervals, claim.expect.above, claim.expect.below)


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


def refitted(name, form, tables):
    """How many of the ``tables`` support a claim that rests on refits."""
    given = [over_sizes(*pair) for pair in tables_of(form, tables)]
    return sum(decided(name, inputs) == Verdict.SUPPORTED for inputs in given)


SHRINKS = "routing_helps_less_as_models_grow"
BEYOND = "routing_stops_helping_beyond_the_sizes_measured"


@pytest.mark.slow
@pytest.mark.parametrize(("claim", "form"), [(SHRINKS, SAME_FRACTION), (BEYOND, UP_TO_THE_LARGEST)])
def test_a_coefficient_without_its_effect_is_seldom_supported(claim, form):
    assert refitted(claim, form, TABLES) <= 10


@pytest.mark.slow
@pytest.mark.parametrize("claim", [SHRINKS, BEYOND])
def test_eq_1_as_fitted_is_told_from_its_nulls(claim):
    assert refitted(claim, EQ_1, TABLES) >= 90


def test_refits_without_a_cutoff_decide_nothing():
    """Where the gain is the same at all sizes, -b/c may be endless, or beyond a float."""
    given = [over_sizes(*pair) for pair in tables_of(SAME_FRACTION, 3)]
    for inputs, cutoff in zip(given, (900.0, np.inf), strict=False):
        sizes = inputs.derived("sizes")
        sizes.loc[sizes["quantity"] == CUTOFF, "estimate"] = cutoff
    assert {decided(BEYOND, inputs) for inputs in given} == {Verdict.CANNOT_TELL}


@pytest.mark.slow
def test_the_refits_are_those_of_the_published_runs(inputs):
    ours = over_sizes(START, LN_L).derived("sizes").query("quantity in ('c', @CUTOFF)")
    theirs = inputs.derived("sizes").query("quantity in ('c', @CUTOFF)")
    np.testing.assert_allclose(ours[["low", "high"]], theirs[["low", "high"]], rtol=1e-3)


def all_bounded(ln_L):
    """Whether the engine's profiles bound E_max of all routers, as the rule reads them."""
    for router in ROUTERS:
        update = {"bootstrap": 1, "protocol": {"objective": "squared", "sample": 1}}
        spec = STUDY.fit(router.fit).model_copy(update=update)
        report = fit(laws.fittable(spec.law), RUNS.assign(L=np.exp(ln_L)), spec)
        high = report.group({}).profile["E_max"].high
        if high is None or high >= CLAIMS["gains_saturate_in_experts"].expect.below:
            return False  # the other routers cannot make it supported
    return True


@pytest.mark.slow
def test_gains_without_saturation_are_seldom_called_saturating():
    assert sum(all_bounded(ln_L) for _, ln_L in tables_of(ENDLESS, TABLES)) <= 10


def gains(L):
    dense = L[IS_DENSE].groupby(RUNS["N_dense"]).mean()
    frame = RUNS.assign(L=L, gain=RUNS["N_dense"].map(dense) - L)
    return SimpleNamespace(
        completed=frame, derived={"gains": frame[~IS_DENSE].reset_index(drop=True)}.get
    )


def helping(exact, tables):
    """How many ``tables`` of losses with the dense seeds' noise support that routing helps."""
    rule = "routing_helps_at_every_size"
    drawn = (exact + np.random.default_rng(i).normal(0, SEED_SD, len(exact)) for i in range(tables))
    return sum(decided(rule, gains(L)) == Verdict.SUPPORTED for L in drawn)


@pytest.mark.slow
def test_routing_that_does_nothing_at_one_size_is_seldom_called_helping():
    dense = RUNS["N_dense"].map(RUNS[IS_DENSE].groupby("N_dense")["L"].mean())
    real = RUNS["L"].where(~IS_DENSE, dense)
    largest = RUNS["N_dense"] == RUNS["N_dense"].max()
    one_model = largest & (RUNS["router"] == "Hash") & (RUNS["E"] == 2)
    assert helping(dense, TABLES) == 0  # at no size does it help
    assert helping(real.where(~largest, dense), TABLES) == 0
    assert helping(real.where(~one_model, dense), TABLES) <= 10
    assert helping(real, TABLES) >= 50


def best(permuted, tables):
    """How many ``tables`` of losses ``permuted`` (rng) among routers support the best one."""
    rule = "s_base_is_the_best_router"
    drawn = (gains(permuted(np.random.default_rng(seed))) for seed in range(tables))
    return sum(decided(rule, inputs) == Verdict.SUPPORTED for inputs in drawn)


def permuted_by_model(rng):
    return RUNS.groupby(["N_dense", "E", IS_DENSE])["L"].transform(rng.permutation)


def permuted_by_size(rng):
    """The routers change names, at all numbers of experts of a base size alike."""
    cells = RUNS[~IS_DENSE].pivot(index=["N_dense", "E"], columns="router", values="L")
    for _, rows in cells.groupby("N_dense"):
        cells.loc[rows.index] = rows.to_numpy()[:, rng.permutation(3)]
    known = cells.stack(future_stack=True)
    named = pd.MultiIndex.from_frame(RUNS[["N_dense", "E", "router"]])
    return RUNS["L"].where(IS_DENSE, known.reindex(named).to_numpy())


@pytest.mark.slow
@pytest.mark.parametrize("permuted", [permuted_by_model, permuted_by_size])
def test_routers_that_are_alike_seldom_have_a_best_one(permuted):
    assert best(permuted, TABLES) <= 10
