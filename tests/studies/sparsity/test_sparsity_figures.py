"""Every figure of the sparsity paper from simulated runs: what it shows, honestly and in full."""

import os
from dataclasses import replace

import numpy as np
import pytest

from moelaws.figures.draw import draw, make
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_study
from moelaws.studies.sparsity.derived.optima import optima
from moelaws.studies.sparsity.derived.surface import middle_surface
from picture import assert_legible, words
from repository import REPOSITORY, moelaws
from sparsity_case import DEMO, PAPER, simulate, write_case

# All but those of scores, which no law gives (test_sparsity_downstream.py).
FIGURES = tuple(
    figure.name
    for figure in load_study("sparsity", REPOSITORY).figures
    if "downstream" not in figure.derived
)
# Few noisy runs whose sizes miss most of the optima, and nothing held out.
POOR = replace(
    DEMO, shift=2.6, noise=0.02, budgets=(1e11, 3e11), seeds=1, sparsities=(0.0, 0.75, 0.9375),
    holdout="S >= 0.99",
)  # fmt: skip
SETTINGS = {"paper": PAPER, "poor": POOR}
LARGE_AT = {"paper": {"F1a", "F1b", "F2a", "F8", "F9"}}  # thousands of runs, five budgets


@pytest.mark.parametrize(
    ("figure", "setting"),
    [
        pytest.param(
            figure, setting, marks=[pytest.mark.slow] * (figure in LARGE_AT.get(setting, ()))
        )
        for figure in FIGURES
        for setting in SETTINGS
    ],
)
def test_nothing_is_clipped_and_simulated_losses_say_so(figure, setting, make_sheet):
    sheet = make_sheet(SETTINGS[setting], figure)
    assert_legible(sheet)
    simulated = SETTINGS[setting].source == "simulated"
    assert ("SIMULATED DATA" in words(sheet)) == simulated
    marks = set(sheet.data.get("data", ()))
    assert marks == ({"SIMULATED DATA, PARTLY ASSUMED"} if simulated else set())
    for panel in sheet.panels:
        if panel.ax.name == "3d":
            continue
        shown = sheet.data[sheet.data["panel"] == panel.name]
        for axis, column in ((panel.ax.get_xlim(), "x"), (panel.ax.get_ylim(), "y")):
            values = shown[column].dropna()
            assert values.between(min(axis) * (1 - 1e-9), max(axis) * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("figure", "paired_of", "shown"),
    [("F2a", 1.0, 0.0004), ("F2a", 0.9, 0.004), ("F6a", 1.0, 0.004)],
)
def test_bars_are_paired_where_one_budgets_runs_all_are(figure, paired_of, shown, make_case):
    """Runs of several budgets are compared by the error of each loss alone."""
    case = make_case(DEMO)
    frame = case.inputs.table
    paired = np.where(np.arange(len(frame)) % 10 < 10 * paired_of, 0.0004, np.nan)
    inputs = replace(case.inputs, frame=frame.assign(L_paired_se=paired))
    data = make(case.study, figure, inputs).data
    points = data[data["series"].str.match("runs|C=")]
    np.testing.assert_allclose((points["high"] - points["low"]) / 2, shown)


def test_the_same_inputs_write_the_same_bytes(make_case, tmp_path):
    case = make_case(DEMO)
    there, here = tmp_path / "there" / "F7.pdf", tmp_path / "here" / "F7.pdf"
    result = moelaws(
        *("figure", "F7", "--study", "sparsity", "--table", case.table, "--out", there),
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )
    assert result.returncode == 0, result.stderr
    draw(case.study, "F7", case.inputs, here)
    for suffix in (".pdf", ".png", ".csv"):
        assert there.with_suffix(suffix).read_bytes() == here.with_suffix(suffix).read_bytes()


def test_type_is_embedded_and_raster_is_fine_enough(make_case, tmp_path):
    case = make_case(DEMO)
    draw(case.study, "F3a", case.inputs, tmp_path / "F3a.pdf")
    pdf = (tmp_path / "F3a.pdf").read_bytes()
    assert b"/FontFile2" in pdf  # TrueType, embedded
    assert b"/Type3" not in pdf
    png = (tmp_path / "F3a.png").read_bytes()
    width = int.from_bytes(png[16:20], "big")
    assert width >= 200 * 3.4


def test_every_measured_run_is_on_the_slices(make_case, make_sheet):
    rows = make_case(DEMO).inputs.table
    middle = rows[rows["C"] == 3e11]
    for figure, column in (("F2a", "S"), ("F2b", "N_total"), ("F2c", "N_active")):
        data = make_sheet(DEMO, figure).data
        runs = data[data["series"].str.startswith("runs")]
        np.testing.assert_allclose(np.sort(runs["x"]), np.sort(middle[column].astype(float)))
        if figure != "F2a":
            np.testing.assert_allclose(np.sort(runs["y"]), np.sort(middle["L"]))
        np.testing.assert_allclose(runs["high"] - runs["low"], 2 * 0.004)


def test_a_run_moved_to_the_size_of_a_line_is_as_far_from_the_surface_as_before(make_case):
    case = make_case(DEMO)
    data = make(case.study, "F2a", case.inputs).data
    surface = middle_surface(case.inputs, "isoflop_total")
    runs = data[data["series"].str.startswith("runs")]
    size = runs["series"].str.extract(r"N=(.*)")[0].to_numpy(float)
    drawn = runs["y"] - surface.loss(size, runs["x"].to_numpy(float))
    rows, N, S = surface.rows, surface.columns["N"], surface.columns["S"]
    np.testing.assert_allclose(np.sort(drawn), np.sort(rows["L"] - surface.loss(N, S)), atol=1e-9)
    assert len(set(size)) == 5


def test_optima_repeat_the_claims_of_the_paper_that_its_law_makes(make_sheet):
    def lines(figure):
        data = _own(make_sheet(PAPER, figure).data)
        return data.pivot_table(index="x", columns="series", values="y").sort_index()

    N, N_a, L = lines("F3a"), lines("F3b"), lines("F3c")
    assert N.shape == (7, 5)
    assert (N.diff().iloc[1:] > 0).all(axis=None)  # larger
    assert (N_a.diff().iloc[1:] < 0).all(axis=None)  # with fewer active parameters
    assert (L.diff().iloc[1:] < 0).all(axis=None)  # and better, the sparser
    budget = N[r"$10^{20}$"]
    assert budget.loc[0.0] == pytest.approx(6.4e8, rel=0.15)
    assert budget.loc[0.98] == pytest.approx(1.71e10, rel=0.15)


def test_optimal_sparsity_rises_with_size_and_falls_with_budget(make_sheet):
    data = _own(make_sheet(PAPER, "F4").data)
    by_budget = {series: group.sort_values("x") for series, group in data.groupby("series")}
    assert len(by_budget) == 5
    for group in by_budget.values():
        assert (group["y"].diff().dropna() >= -1e-9).all()
    at_2e9 = [
        np.interp(np.log(2e9), np.log(group["x"]), group["y"])
        for group in (by_budget[r"$3\times10^{19}$"], by_budget[r"$10^{21}$"])
    ]
    assert at_2e9[0] > at_2e9[1]


@pytest.mark.parametrize("figure", ["F3a", "F3b", "F3c", "F4", "F11", "F12"])
def test_published_optima_stand_beside_own_ones_at_the_papers_budgets_alone(figure, make_sheet):
    sheet = make_sheet(PAPER, figure)
    published = sheet.data[sheet.data["series"].str.startswith("published")]
    assert published["series"].nunique() == 5
    assert "published (Eq 6)" in words(sheet)
    if figure == "F3a":  # N*(S=.9) at 1e20
        at_1e20 = published[published["series"].str.endswith("C=1e+20")]
        v = -np.log1p(-at_1e20["x"])
        N = np.exp(np.interp(-np.log1p(-0.9), v, np.log(at_1e20["y"])))
        assert pytest.approx(3.96999e9, rel=1e-3) == N
    assert not make_sheet(DEMO, figure).data["series"].str.startswith("published").any()


def test_every_budget_has_its_surface_its_unseen_runs_and_its_slices(make_case, make_sheet):
    surfaces, slices = make_sheet(DEMO, "F8"), make_sheet(DEMO, "F9")
    assert (len(surfaces.panels), len(slices.panels)) == (6, 9)
    rows = make_case(DEMO).inputs.table
    for i, C in enumerate(DEMO.budgets):
        of_budget = rows[rows["C"] == C]
        unseen = surfaces.data[surfaces.data["panel"] == surfaces.panels[2 * i + 1].name]
        np.testing.assert_allclose(np.sort(unseen["y"]), np.sort(of_budget["L"]))
        assert np.corrcoef(unseen["x"], unseen["y"])[0, 1] > 0.9
        for panel in slices.panels[3 * i + 1 : 3 * i + 3]:
            drawn = slices.data[slices.data["panel"] == panel.name]
            runs = drawn[drawn["series"].str.startswith("runs")]
            np.testing.assert_allclose(np.sort(runs["y"]), np.sort(of_budget["L"]))


def test_baselines_predict_the_same_held_out_runs(make_case, make_sheet):
    data = make_sheet(PAPER, "baselines").data
    held = np.sort(make_case(PAPER).inputs.table.query("S >= 0.98")["L"])
    for panel in "abc":
        np.testing.assert_allclose(np.sort(data.loc[data["panel"] == panel, "y"]), held)


def test_laws_that_err_by_more_than_the_range_of_the_losses_squeeze_no_other(make_sheet):
    """The baselines' coefficients are those of far larger models."""
    sheet, alone = make_sheet(DEMO, "baselines"), make_sheet(DEMO, "F6b")
    assert set(sheet.data["panel"]) == {"a"}
    named = [text.partition(" is not drawn: its RMSE of ")[0] for text in sheet.warnings]
    assert named == ["Chinchilla ($N_a$)", "Wang ($N_a, E$)"]
    assert all(name in words(sheet) for name in named)
    assert sheet.panels[0].ax.get_xlim() == alone.panels[0].ax.get_xlim()


def test_bounds_are_hollow_explained_and_warned_of(make_case, make_sheet):
    table = make_case(POOR).inputs.derived("optima")
    bounds = table[(table["method"] == "surface") & (table["size"] == "total") & ~table["inside"]]
    assert len(bounds)
    sheet = make_sheet(POOR, "F3a")
    drawn = sheet.data[sheet.data["series"].str.contains("measured range")]
    np.testing.assert_allclose(np.sort(drawn["y"]), np.sort(bounds["N_star"]))
    assert len(sheet.data) == 6  # none is dropped: two budgets, three sparsities
    assert "smallest size measured" in words(sheet)
    warnings = optima.warnings(table)
    assert len(warnings) == int((~table["inside"]).sum())
    assert "at the low end of the measured range" in warnings[0]


def test_predictions_are_checked_on_the_right_runs(make_case, make_sheet):
    fitted, held_out = make_sheet(DEMO, "F6a").data, make_sheet(DEMO, "F6b").data
    rows = make_case(DEMO).inputs.table
    assert (len(fitted), len(held_out)) == ((rows["S"] < 0.93).sum(), (rows["S"] >= 0.93).sum())
    assert np.std(np.log(held_out["y"] / held_out["x"])) == pytest.approx(0.01, rel=0.4)


def test_a_figure_with_nothing_to_show_says_why(make_sheet):
    sheet = make_sheet(POOR, "F6b")
    assert "none has S >= 0.99" in words(sheet)
    assert sheet.warnings == ["no held-out run: none has S >= 0.99"]
    assert sheet.data.empty


def test_two_sizes_make_no_optimum_and_no_crash(make_sheet):
    setting = replace(DEMO, budgets=(1e11,), sparsities=(0.0, 0.75), sizes=2)
    for figure in FIGURES:
        sheet = make_sheet(setting, figure)
        if figure == "F8":
            assert "too few runs to refit" in words(sheet)
        if figure in ("F3a", "F3b", "F3c", "F11", "F12"):
            assert "fewer than three sizes" in words(sheet)
            assert sheet.warnings


def test_diverged_runs_are_left_out(tmp_path):
    frame = simulate(DEMO)
    frame.loc[::7, "status"] = "diverged"
    frame.loc[::7, "L"] = np.nan
    case = write_case(tmp_path, frame, DEMO)
    data = make(case.study, "F2b", case.inputs).data
    done = frame[(frame["status"] == "completed") & (frame["C"] == 3e11)]
    assert data["series"].str.startswith("runs").sum() == len(done)


def test_a_figure_reads_only_what_it_declares(make_case):
    case = make_case(DEMO)
    undeclared = case.study.entry("figures", "F2b").model_copy(update={"fits": ()})
    study = case.study.model_copy(update={"figures": (undeclared,)})
    with pytest.raises(UserError, match="reads the fit 'isoflop_total', which the study's entry"):
        make(study, "F2b", case.inputs)


def _own(data):
    return data[~data["series"].str.startswith("published")]


@pytest.mark.parametrize("slowed", [0, 3])
def test_time_is_that_of_the_best_runs_whatever_else_the_machine_did(make_case, slowed):
    """Speeds are a power law, and every third run had the machine to itself for a tenth of it."""
    case = make_case(POOR)
    runs = case.inputs.completed
    speed = 1e9 * (runs["C"] / runs["D"]) ** -0.8 * (1 - runs["S"]) ** 0.1
    load = np.where(np.arange(len(runs)) % 3 < (slowed > 0), 0.1, 1.0)
    table = runs.assign(tokens_per_second=speed * load)
    data = make(case.study, "time", replace(case.inputs, frame=table)).data
    best = runs.loc[runs.groupby(["C", "S"])["L"].idxmin()]
    assert set(data["y"]) == set(best["L"])
    seconds = dict(zip(best["L"], best["D"] / speed[best.index], strict=True))
    unit = 3600 if max(seconds.values()) > 360 else 1
    timed = data[data["panel"] == "b"]
    expected = [seconds[L] / unit for L in timed["y"]]
    assert timed["x"].to_numpy() == pytest.approx(expected, rel=1e-3)
