"""The leverage study's figures and tables from simulated runs at its own grids."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from leverage_case import DEMO, DEMO_LAW, POOR

from made_scores import score_row, write_scores
from moelaws.analysis.derive import derive
from moelaws.claims.judge import judge
from moelaws.figures.draw import make
from moelaws.files.layout import Results
from moelaws.studies.leverage.figures.losses import BINS
from moelaws.studies.leverage.laws import joint
from picture import assert_legible


@pytest.mark.slow
def test_few_noisy_runs_give_legible_figures_and_fail_no_claim(make_case):
    """F6a is left out, for it needs the records of runs."""
    case = make_case(POOR)
    for figure in case.study.figures:
        if figure.name != "F6a":
            assert_legible(case.sheet(figure.name))
    verdicts = judge(case.study, case.inputs)["claims"]
    assert {claim["name"] for claim in verdicts} == {claim.name for claim in case.study.claims}


def test_points_are_the_derived_tables_and_the_published_curve_is_table_6(make_case):
    points = make_case(DEMO).inputs.derived("points")
    data = make_case(DEMO).sheet("F4a").data
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
