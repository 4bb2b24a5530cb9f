"""The leverage study's figures and tables from simulated runs at its own grids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from leverage_case import DEMO, DEMO_LAW, PAPER, POOR, Case, Setting, write_case
from moelaws.figures.draw import make, tabulate
from moelaws.figures.leverage import coefficients, tables, training
from moelaws.figures.sheet import Sheet
from moelaws.laws.leverage import joint
from moelaws.records.layout import Results
from moelaws.spec.project import load_study
from repository import REPOSITORY

MakeCase = Callable[[Setting], Case]
STUDY = load_study("leverage", REPOSITORY)
FIGURES = [figure.id for figure in STUDY.figures if figure.id != "F6a"]


@pytest.fixture(scope="module")
def make_case(tmp_path_factory: pytest.TempPathFactory) -> MakeCase:
    """A case of a setting, written once."""
    cases: dict[Setting, Case] = {}

    def made(setting: Setting) -> Case:
        if setting not in cases:
            cases[setting] = write_case(tmp_path_factory.mktemp("case"), setting)
        return cases[setting]

    return made


def _check_page(sheet: Sheet, simulated: bool) -> None:
    canvas = FigureCanvasAgg(sheet.figure)
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[..., :3]
    for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):
        assert (edge == 255).all()  # a clipped word leaves ink at the page's edge
    assert ("SIMULATED DATA" in _words(sheet)) == simulated


@pytest.mark.parametrize("figure", FIGURES)
def test_nothing_is_clipped(figure: str, make_case: MakeCase) -> None:
    case = make_case(DEMO)
    _check_page(make(case.study, figure, case.inputs), simulated=False)


@pytest.mark.slow
@pytest.mark.parametrize("setting", [PAPER, POOR], ids=["paper", "poor"])
def test_paper_scale_and_poor_runs_are_drawn_too(setting: Setting, make_case: MakeCase) -> None:
    case = make_case(setting)
    for figure in case.study.figures:
        if figure.id != "F6a":
            sheet = make(case.study, figure.id, case.inputs)
            _check_page(sheet, simulated=setting.source == "simulated")


def test_points_are_the_derived_tables_and_the_published_curve_is_table_6(
    make_case: MakeCase,
) -> None:
    case = make_case(DEMO)
    points = case.inputs.derived("points")
    data = make(case.study, "F4a", case.inputs).data
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


def test_leverage_of_the_simulated_law_is_found_where_dense_runs_are(make_case: MakeCase) -> None:
    """Without noise the curves' own form is all that differs: within 5 %, in the dense range."""
    case = make_case(replace(DEMO, noise=0.0))
    points = case.inputs.derived("points")
    points = points[(points["measured"] == 1) & (points["extrapolated"] == 0)]
    law = {n: DEMO_LAW["beta_G" if n == "beta" else n] for n in joint.LAW.names}
    columns = {"A": points["A_routed"], "G": points["G"], "C": points["C"]}
    true = joint.LAW.predict(law, columns)
    dense = joint.LAW.predict(law, {"A": 1.0, "G": 2.0, "C": points["C"]})
    np.testing.assert_allclose(points["EL"], true / dense, rtol=0.05)


def test_single_runs_are_read_against_their_own_baseline(make_case: MakeCase) -> None:
    singles = make_case(DEMO).inputs.derived("singles")
    base = singles[(singles["sweep"] == "dense_layers") & (singles["x"] == 0)]
    assert len(base) == 5
    assert base["EL"].between(0.85, 1.18).all()  # the runs that the curve was fitted to
    assert set(singles["sweep"]) == {"shared", "granularity_weak", "dense_layers", "attention"}
    known = singles[singles["EL_low"].notna()]
    assert len(known)
    assert (known["EL_low"] <= known["EL_high"]).all()


def test_residuals_are_of_the_fitted_points(make_case: MakeCase) -> None:
    case = make_case(DEMO)
    n = case.inputs.fit("joint").parts[0].n
    data = make(case.study, "F17", case.inputs).data
    assert (data["series"] == "residuals").sum() == n
    assert data.loc[data["series"] == "histogram", "y"].sum() == n
    sheet = make(case.study, "F5", case.inputs)
    assert "no point has EL >= 6: nothing validates the joint law" in sheet.warnings


def test_a_sub_experiment_without_runs_says_so(make_case: MakeCase, tmp_path) -> None:
    case = make_case(DEMO)
    frame = case.inputs.table
    rest = frame[~frame["sweep"].str.contains("granularity_weak|heads")]
    inputs = replace(case.inputs, frame=rest)
    for figure in ("F12a", "F16"):
        sheet = make(case.study, figure, inputs)
        assert "of this sub-experiment" in _words(sheet)
        assert sheet.warnings
    made = tables.TABLES["T14"](inputs)
    assert len(made.frame) == 0
    assert made.warnings == [tables.NO_RUNS]
    warnings = tabulate(case.study, "T14", inputs, tmp_path / "T14.csv")
    assert warnings == [tables.NO_RUNS]
    assert (tmp_path / "T14.tex").read_text().count("toprule") == 1


def test_training_curves_come_from_the_runs_records(make_case: MakeCase, tmp_path) -> None:
    case = make_case(DEMO)
    results = Results(tmp_path)
    for run in case.inputs.sweep("validation").itertuples():
        folder = results.run(str(run.run_id))
        folder.mkdir(parents=True)
        tokens = np.arange(1, 1001) * run.D / 1000
        history = pd.DataFrame({"tokens": tokens, "loss": 9 - np.log(tokens / tokens[0])})
        history.to_parquet(folder / "history.parquet")
    data = training.draw(replace(case.inputs, results=results)).data
    assert set(data["series"]) == {
        "dense", "dense, validation", "mixture", "mixture, validation",
    }  # fmt: skip
    for series in ("dense", "mixture"):
        line = data[data["series"] == series]
        assert 20 < len(line) <= training.BINS
        assert (np.diff(line["y"]) < 0).all()


def test_tables_hold_each_configuration_once(make_case: MakeCase) -> None:
    inputs = make_case(DEMO).inputs
    lines = {name: len(table(inputs).frame) for name, table in tables.TABLES.items()}
    assert lines == {
        "T1": 2, "T8": 20, "T9": 15, "T10": 6, "T11": 7, "T12": 9, "T14": 3, "T15": 15,
    }  # fmt: skip
    T12 = tables.TABLES["T12"](inputs).frame
    assert T12["attention's share"].between(0.3, 0.9).all()


def test_forms_without_points_enough_are_named(make_case: MakeCase) -> None:
    inputs = make_case(DEMO).inputs
    T16, T17 = coefficients.table_16(inputs), coefficients.table_17(inputs)
    assert list(T16.frame["R2, published"]) == [0.9915, 0.9772]
    assert (T16.frame["R2, median"] > 0.9).all()
    saturating = T17.frame[T17.frame["parameters"] == 4]
    assert saturating["budgets fitted"].item() == 0
    assert any("3 points for 4 parameters" in note for note in T17.notes)
    T6 = coefficients.table_6(inputs).frame.set_index("coefficient")
    assert T6.loc["a", "published"] == 1.23
    assert T6.loc["best G", "published"] == pytest.approx(11.337, abs=1e-3)


def _words(sheet: Sheet) -> str:
    return " ".join(text.get_text().replace("\n", " ") for text in sheet.figure.findobj(Text))
