"""The leverage study's figures and tables from simulated runs at its own grids."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from leverage_case import DEMO, DEMO_LAW, PAPER, PAPER_TRAINED, POOR, table

from made_scores import score_row, write_scores
from moelaws.analysis.derive import derive
from moelaws.figures.draw import draw, make, set_table
from moelaws.files.layout import Results
from moelaws.studies.leverage.derived.series import attention_shape
from moelaws.studies.leverage.figures.losses import BINS
from moelaws.studies.leverage.laws import joint
from moelaws.studies.leverage.tables import NO_RUNS
from picture import assert_legible, words


@pytest.fixture(scope="module")
def sheets(make_case):
    """Returns a function that gives all figures of a setting, each drawn once.

    F6a is left out, for it needs the records of runs.
    """
    cases = {}

    def sheets_of(setting):
        if setting not in cases:
            case = make_case(setting)
            names = [figure.name for figure in case.study.figures if figure.name != "F6a"]
            cases[setting] = {name: make(case.study, name, case.inputs) for name in names}
        return cases[setting]

    return sheets_of


@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(DEMO, id="demo"),
        pytest.param(PAPER, id="paper", marks=pytest.mark.slow),
        pytest.param(POOR, id="poor", marks=pytest.mark.slow),
    ],
)
def test_nothing_is_clipped_and_simulated_losses_are_named(setting, sheets):
    for name, sheet in sheets(setting).items():
        assert_legible(sheet)
        assert ("SIMULATED DATA" in words(sheet)) == (setting.source == "simulated"), name


def test_points_are_the_derived_tables_and_the_published_curve_is_table_6(make_case, sheets):
    points = make_case(DEMO).inputs.derived("points")
    data = sheets(DEMO)["F4a"].data
    shown = data[~data["series"].str.contains("fit|published")]
    at_G2 = points[(points["measured"] == 1) & points["sweep"].str.contains("activation")]
    assert len(at_G2) == 20  # four activation ratios, five budgets
    np.testing.assert_allclose(np.sort(shown["y"]), np.sort(at_G2["EL"]))
    assert (shown.loc[shown["x"] == 1, ["y", "low", "high"]] == 1).all(axis=None)
    published = data[data["series"] == "published"]
    EL = joint.LAW.predict(
        joint.LAW.published, {"A": published["x"].to_numpy(), "G": 2.0, "C": 1e18}
    )
    np.testing.assert_allclose(published["y"], EL)


def test_leverage_of_the_simulated_law_is_read_back_where_dense_runs_are(make_case):
    """Without noise the curves' own form is all that differs: within 5 %, in the dense range."""
    case = make_case(replace(DEMO, noise=0.0))
    points = case.inputs.derived("points")
    points = points[(points["measured"] == 1) & (points["extrapolated"] == 0)]
    law = {n: DEMO_LAW["beta_G" if n == "beta" else n] for n in joint.LAW.names}
    columns = {"A": points["A_routed"], "G": points["G"], "C": points["C"]}
    true = joint.LAW.predict(law, columns)
    dense = joint.LAW.predict(law, {"A": 1.0, "G": 2.0, "C": points["C"]})
    np.testing.assert_allclose(points["EL"], true / dense, rtol=0.05)


def test_single_runs_are_read_against_their_own_baseline(make_case):
    singles = make_case(DEMO).inputs.derived("singles")
    base = singles[(singles["sweep"] == "dense_layers") & (singles["x"] == 0)]
    assert len(base) == 5
    assert base["EL"].between(0.85, 1.18).all()  # the runs that the curve was fitted to
    assert set(singles["sweep"]) == {"shared", "granularity_weak", "dense_layers", "attention"}
    known = singles[singles["EL_low"].notna()]
    assert len(known)
    assert (known["EL_low"] <= known["EL_high"]).all()


def test_an_architecture_of_few_budgets_is_drawn_as_single_runs_and_says_so(make_case, sheets):
    singles = make_case(DEMO).inputs.derived("singles")
    for figure, sweep in {
        "F12b": "granularity_weak",
        "F13b": "shared",
        "F14b": "dense_layers",
    }.items():
        sheet = sheets(DEMO)[figure]
        rows = singles[(singles["sweep"] == sweep) & (singles["budgets"] < 4)]
        runs = sheet.data[
            (sheet.data["panel"] == "a") & sheet.data["series"].str.contains(r"\d, runs")
        ]
        np.testing.assert_allclose(np.sort(runs["y"]), np.sort(rows["L"]))
        assert "single runs" in words(sheet)
        assert any("no curve" in warning for warning in sheet.warnings)


def test_shapes_are_counted_from_the_one_whose_experts_are_as_wide_as_the_model():
    """In the paper's Table 12 it is the second, with less attention than all but one."""
    _, frame = table(PAPER_TRAINED)
    rows = frame[frame["sweep"].str.contains("attention")].reset_index(drop=True)
    shapes = attention_shape(rows)
    assert shapes.groupby(rows["C"]).apply(sorted).map(tuple).unique().tolist() == [
        (-1, 0, 1, 2, 3)
    ]
    assert rows["G"][shapes == 0].between(1.9, 2.01).all()
    assert (rows["G"][shapes < 0] < 1.6).all()


@pytest.mark.slow
def test_curves_of_the_papers_sub_experiments_give_the_leverage(make_case, sheets):
    """Each architecture has a curve: over the eleven crossed budgets, or those of Tables 11, 12."""
    inputs = make_case(PAPER_TRAINED).inputs
    assert len(inputs.fit("curve_variants").parts) == 6 + 7 + 4 + 5
    # Architectures without the baseline, and budgets of each
    variants = {"F12b": (6, 11), "F13b": (7, 11), "F14b": (3, 6), "F14d": (4, 6)}
    for figure, (n, budgets) in variants.items():
        data = sheets(PAPER_TRAINED)[figure].data
        leverage = data[data["panel"] == "b"]
        assert leverage.groupby("series")["x"].nunique().tolist() == [budgets] * n
        assert (leverage["low"] <= leverage["high"]).all()
    F14b = sheets(PAPER_TRAINED)["F14b"].data
    assert (
        F14b.loc[F14b["panel"] == "b", "y"].between(0.7, 1.4).all()
    )  # the law has no dense layers


def test_residuals_are_of_the_fitted_points(make_case, sheets):
    n = make_case(DEMO).inputs.fit("joint").parts[0].n
    data = sheets(DEMO)["F17"].data
    assert (data["series"] == "residuals").sum() == n
    assert data.loc[data["series"] == "histogram", "y"].sum() == n
    points = make_case(DEMO).inputs.derived("points")
    shown = sheets(DEMO)["F5"].data
    of_validation = shown["series"].str.startswith("validation")
    assert of_validation.sum() == (points["EL"] >= 6).sum()
    beyond = shown["series"].str.endswith("extrapolated").sum()
    assert beyond == ((points["EL"] > 0) & (points["measured"] == 0)).sum()


def test_a_sub_experiment_without_runs_says_so(make_case, tmp_path):
    case = make_case(DEMO)
    frame = case.inputs.table
    rest = frame[~frame["sweep"].str.contains("granularity_weak|heads")]
    inputs = replace(case.inputs, frame=rest)
    for figure in ("F12a", "F16"):
        sheet = make(case.study, figure, inputs)
        assert "of this sub-experiment" in words(sheet)
        assert sheet.warnings
    assert len(set_table(case.study, "T14", inputs).frame) == 0
    assert draw(case.study, "T14", inputs, tmp_path / "T14.csv") == [NO_RUNS]
    assert (tmp_path / "T14.tex").read_text().count("toprule") == 1


def test_training_curves_come_from_the_runs_records(make_case, tmp_path):
    case = make_case(DEMO)
    results = Results(tmp_path)
    for run in case.inputs.sweep("validation").itertuples():
        folder = results.run(str(run.run_id))
        folder.mkdir(parents=True)
        tokens = np.arange(1, 1001) * run.D / 1000
        history = pd.DataFrame({"tokens": tokens, "loss": 9 - np.log(tokens / tokens[0])})
        history.to_parquet(folder / "history.parquet")
    data = make(case.study, "F6a", replace(case.inputs, results=results)).data
    assert set(data["series"]) == {
        "dense", "dense, validation", "mixture", "mixture, validation",
    }  # fmt: skip
    for series in ("dense", "mixture"):
        line = data[data["series"] == series]
        assert 20 < len(line) <= BINS
        assert (np.diff(line["y"]) < 0).all()


SCORED = {"near": "continuation", "far": "continuation", "brackets": "syntax"}


@pytest.fixture
def scored(make_case, tmp_path):
    """The inputs with scores of the validation pair at three steps; the mixture's are better."""
    case, results = make_case(DEMO), Results(tmp_path)
    for run in case.inputs.sweep("validation").itertuples():
        gain = 0.1 if run.S > 0 else 0.0
        rows = [
            score_row(step, task, group, 5 - step / 10 - gain, 0.3 + step / 100 + gain)
            for step in (1, 5, 20)
            for task, group in SCORED.items()
        ]
        write_scores(results, run.run_id, rows)
    path = tmp_path / "scores.parquet"
    inputs = replace(case.inputs, results=results)
    assert derive(case.study, "scores", inputs, path) == []
    return case.study, replace(inputs, derived_tables={**inputs.derived_tables, "scores": path})


def test_scores_over_training_are_those_of_each_kept_step(scored):
    study, inputs = scored
    sheet = make(study, "F6b", inputs)
    assert_legible(sheet)
    data = sheet.data
    mixture = data[(data["series"] == "mixture") & (data["panel"] == "b")]
    assert sorted(mixture["y"].unique()) == pytest.approx([2.9, 4.4, 4.8])
    assert sorted(mixture["x"].unique()) == [100, 500, 2000]
    assert (data.loc[data["series"] == "guessing", "y"] == 0.75).all()
    groups = make(study, "F15", inputs)
    assert len(groups.panels) == 4
    assert_legible(groups)


def test_tables_of_scores_are_those_after_the_last_step_with_the_mean_last(scored):
    study, inputs = scored
    by_group = set_table(study, "T2", inputs).frame
    assert list(by_group["group"]) == ["continuation", "syntax", "all"]
    assert list(by_group["items"]) == [100, 50, 150]
    assert by_group["dense: error"].tolist() == pytest.approx([0.5] * 3)
    assert by_group["MoE: error"].tolist() == pytest.approx([0.4] * 3)
    by_task = set_table(study, "T7", inputs).frame
    assert list(by_task["task"]) == ["far", "near", "brackets", "all"]
    assert by_task["MoE: bits/byte"].tolist() == pytest.approx([2.9] * 4)


def test_a_pair_without_scores_says_so(make_case, tmp_path):
    case = make_case(DEMO)
    assert "was scored" in words(make(case.study, "F6b", case.inputs))
    warned = draw(case.study, "T2", case.inputs, tmp_path / "T2.csv")
    assert warned == ["no completed run of the pair was scored"]


def test_tables_hold_each_configuration_once(make_case):
    case = make_case(DEMO)
    rows = {"T1": 2, "T8": 20, "T9": 15, "T10": 6, "T11": 7, "T12": 9, "T14": 3, "T15": 15}
    frames = {name: set_table(case.study, name, case.inputs).frame for name in rows}
    assert {name: len(frame) for name, frame in frames.items()} == rows
    assert frames["T12"]["attention's share"].between(0.3, 0.9).all()


def test_forms_without_points_enough_are_named(make_case):
    case = make_case(DEMO)
    T16, T17 = (set_table(case.study, name, case.inputs) for name in ("T16", "T17"))
    assert list(T16.frame["R2, published"]) == [0.9915, 0.9772]
    assert (T16.frame["R2, median"] > 0.9).all()
    saturating = T17.frame[T17.frame["parameters"] == 4]
    assert saturating["budgets fitted"].item() == 0
    assert any("3 points for 4 parameters" in note for note in T17.notes)


def test_coefficients_stand_beside_the_published_ones(make_case):
    case = make_case(DEMO)
    T6 = set_table(case.study, "T6", case.inputs).frame.set_index("coefficient")
    assert T6.loc["a", "published"] == 1.23
    assert T6.loc["best G", "published"] == pytest.approx(11.337, abs=1e-3)
