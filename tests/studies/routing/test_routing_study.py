"""Eq 1 fitted to the published runs holds what the paper prints; figures and verdicts of them."""

import numpy as np
import pytest

from moelaws import laws
from moelaws.claims.base import Verdict
from moelaws.claims.judge import judge
from moelaws.figures.draw import set_table
from moelaws.laws.clark.routing import STATED_CUTOFFS
from moelaws.spec.project import load_study
from moelaws.studies.routing.figures import LARGEST
from moelaws.studies.routing.routers import CUTOFF, ROUTERS
from nulls import routing as nulls
from nulls.trial import decided
from picture import assert_legible, words
from repository import REPOSITORY

STUDY = load_study("routing", REPOSITORY)
FIGURES = tuple(figure.name for figure in STUDY.figures)
NAMES = [router.name for router in ROUTERS]


@pytest.mark.parametrize("router", ROUTERS, ids=NAMES)
def test_the_intervals_hold_table_3(inputs, router):
    report = inputs.fit(router.fit)
    printed = laws.get(report.law).published
    for name, estimate in report.group({}).params.items():
        assert estimate.low < printed[name] < estimate.high, name
    assert report.source == "imported"
    assert report.group({}).metrics["r2"] > 0.996
    assert report.group({}).metrics["rmse"] < 0.019


@pytest.mark.parametrize("fit", ["s_base", "rl_r", "hash"])
def test_least_squares_of_the_log_loss_by_another_optimiser(inputs, fit):
    """The optimum that SciPy's Levenberg-Marquardt gives for the same rows and objective."""
    from scipy.optimize import least_squares

    rows = inputs.rows(fit)
    N, E, L = (np.log10(rows["N_dense"]), rows["E"].to_numpy(float), np.log(rows["L"]))

    def residuals(theta):
        a, b, c, d, start, top = theta
        start, top = np.exp(start), np.exp(top)
        e = np.log10(1 / (1 / (E - 1 + 1 / (1 / start - 1 / top)) + 1 / top))
        return np.log(10) * (a * N + b * e + c * N * e + d) - L

    at = [-0.08, -0.1, 0.01, 1.1, np.log(2.0), np.log(300.0)]
    theirs = least_squares(residuals, at, method="lm", x_scale="jac", xtol=1e-14, ftol=1e-14).x
    theirs[4:] = np.exp(theirs[4:])
    ours = list(inputs.fit(fit).group({}).estimates().values())
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


def test_the_dense_law_is_the_printed_one(inputs):
    result, law = inputs.fit("dense").group({}), laws.get("clark.dense")
    assert result.n == 8
    assert result.params["alpha"].low < law.published["alpha"] < result.params["alpha"].high
    N = inputs.rows("dense")["N_dense"].to_numpy(float)
    ours, theirs = (law.predict(p, {"N": N}) for p in (result.estimates(), law.published))
    np.testing.assert_allclose(ours, theirs, rtol=0.01)


def test_routed_models_lie_on_the_dense_line_over_their_effective_size(inputs):
    gains = inputs.derived("gains")
    dense = laws.get("clark.dense")
    params = inputs.fit("dense").group({}).estimates()
    over = {name: dense.predict(params, {"N": gains[name]}) for name in ("N_dense", "N_effective")}
    rmse = {name: float(np.sqrt(np.mean((gains["L"] - L) ** 2))) for name, L in over.items()}
    assert rmse["N_dense"] > 0.25
    assert rmse["N_effective"] < 0.025
    assert (gains["N_effective"] > gains["N_dense"]).all()
    assert (gains["low"] <= gains["N_effective"]).all()
    assert (gains["N_effective"] <= gains["high"]).all()


def test_the_stated_sizes_lie_in_the_intervals_of_the_cutoffs(inputs):
    cutoffs = inputs.derived("cutoffs")
    assert list(cutoffs["router"].unique()) == NAMES
    assert set(cutoffs["objective"]) == {"squared", "huber"}
    assert (10 ** cutoffs["stated"].unique()).tolist() == pytest.approx([*STATED_CUTOFFS.values()])
    assert ((cutoffs["low"] < cutoffs["log10_N"]) & (cutoffs["log10_N"] < cutoffs["high"])).all()
    squared = cutoffs[cutoffs["objective"] == "squared"]
    assert ((squared["low"] < squared["stated"]) & (squared["stated"] < squared["high"])).all()


def test_over_base_sizes_c_is_less_sure_than_by_independent_residuals(inputs):
    """The intervals of a jackknife that SciPy's refits give too."""
    sizes = inputs.derived("sizes").set_index(["router", "quantity"])
    assert len(sizes) == 3 * 7
    assert set(sizes["sizes"]) == {6}
    assert ((sizes["low"] < sizes["estimate"]) & (sizes["estimate"] < sizes["high"])).all()
    for router in ROUTERS:
        alone, own = inputs.fit(router.fit).group({}).params["c"], sizes.loc[router.name, "c"]
        assert 1.1 < (own["high"] - own["low"]) / (alone.high - alone.low) < 1.3
    ours, theirs = (
        table.query("quantity in ('c', @CUTOFF)")[["low", "high"]]
        for table in (
            inputs.derived("sizes"),
            nulls.over_sizes(nulls.START, nulls.LN_L).derived("sizes"),
        )
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)


def test_curves_end_at_the_tables_losses(inputs):
    curves = inputs.derived("curves")
    last = curves.loc[curves.groupby("run_id")["step"].idxmax()].set_index("run_id")
    table = inputs.completed.set_index("run_id")
    assert len(last) == 223
    assert (last["L"] == table["L"].reindex(last.index)).all()
    assert (last["D"] == table["D"].reindex(last.index)).all()
    assert 5700 < len(curves) < 5799  # some evaluations have no loss


def test_coefficients_stand_beside_the_printed_ones(inputs):
    frame = set_table(STUDY, "T3", inputs).frame
    assert len(frame) == 18
    assert set(frame["Holds the printed"]) == {"yes"}
    over = frame["Printed"].between(frame["Low (over sizes)"], frame["High (over sizes)"])
    outside = frame[~over]
    assert list(zip(outside["Router"], outside["Coefficient"], strict=True)) == [
        ("S-Base", "E_start"),
        ("S-Base", "E_max"),
    ]
    assert len(set_table(STUDY, "T_errors", inputs).frame) == len(STUDY.fits)
    sizes = set_table(STUDY, "T_cutoffs", inputs).frame
    assert sizes["Stated in the text"].unique().tolist() == pytest.approx([9.37e11, 8.5e10, 8.3e10])


def test_verdicts_on_the_published_runs(inputs):
    judged = judge(STUDY, inputs)
    assert (judged["source"], judged["runs"]) == ("imported", "published runs")
    verdicts = {claim["name"]: claim for claim in judged["claims"]}
    assert {name: claim["verdict"] for name, claim in verdicts.items()} == {
        "routing_helps_at_every_size": Verdict.SUPPORTED,
        "routing_helps_less_as_models_grow": Verdict.SUPPORTED,
        "gains_saturate_in_experts": Verdict.SUPPORTED,
        "s_base_is_the_best_router": Verdict.SUPPORTED,
        "routing_stops_helping_beyond_the_sizes_measured": Verdict.SUPPORTED,
    }
    assert (
        "the least of 158 gains is 0.00544 [" in verdicts["routing_helps_at_every_size"]["measured"]
    )
    beyond = verdicts["routing_stops_helping_beyond_the_sizes_measured"]
    assert beyond["measured"].count(": 1") == 3  # log10 of a size each
    # The rule tests that the sizes lie beyond the runs alone, so that the statement names none.
    assert "e1" not in beyond["statement"]


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
def test_nothing_is_clipped_and_published_runs_say_so(make_sheet, figure):
    sheet = make_sheet(figure)
    assert_legible(sheet)
    assert "PUBLISHED RUNS" in words(sheet)
    assert set(sheet.data["data"]) == {"PUBLISHED RUNS"}


def test_both_intervals_of_the_cutoff_are_drawn(inputs, make_sheet):
    """The claims decide by the one over base sizes."""
    data = make_sheet("gains").data
    cutoffs = inputs.derived("cutoffs").query("objective == 'squared'")
    sizes = inputs.derived("sizes").query("quantity == 'log10_N'")
    for name, table in (("independent residuals", cutoffs), ("base sizes left out", sizes)):
        ends = data[data["series"] == f"cut-off, interval by {name}"]["x"].to_numpy()
        expected = np.clip(table[["low", "high"]], 0, np.log10(LARGEST)).to_numpy().ravel()
        np.testing.assert_allclose(np.log10(ends), expected)


def test_refits_without_a_cutoff_decide_nothing():
    """Where the gain is the same at all sizes, -b/c may be endless, or beyond a float."""
    for seed, cutoff in enumerate((900.0, np.inf, None)):
        given = nulls.refitted(seed, "same_fraction")
        sizes = given.derived("sizes")
        if cutoff:
            sizes.loc[sizes["quantity"] == CUTOFF, "estimate"] = cutoff
        assert decided(STUDY, nulls.BEYOND, given) == Verdict.CANNOT_TELL
