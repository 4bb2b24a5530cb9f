"""The leverage study's figures and tables from simulated runs at its own grids."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from leverage_case import DEMO, DEMO_LAW, PAPER, PAPER_TRAINED, POOR, table

from made_scores import score_row, write_scores
from moelaws.analysis.derive import derive
from moelaws.figures.draw import make
from moelaws.files.layout import Results
from moelaws.studies.leverage.derived.series import attention_shape
from moelaws.studies.leverage.figures.losses import BINS
from moelaws.studies.leverage.laws import joint
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
        pytest.param(DEMO, id="demo", marks=pytest.mark.slow),
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
    assert len(at_G2) == 16  # four activation ratios, four budgets
    np.testing.assert_allclose(np.sort(shown["y"]), np.sort(at_G2["EL"]))
    assert (shown.loc[shown["x"] == 1, ["y", "low", "high"]] == 1).all(axis=None)
    published = data[data["series"] == "published"]
    EL = joint.LAW.predict(
        joint.LAW.published, {"A": published["x"].to_numpy(), "G": 2.0, "C": 1e18}
    )
    np.testing.assert_allclose(published["y"], EL)


@pytest.mark.slow
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
    assert len(base) == 4
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
