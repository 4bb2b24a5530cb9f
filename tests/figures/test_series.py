"""Declared figures: what every entry names is there, and what a series says is what is drawn."""

import json

import numpy as np
import pandas as pd
import pytest

from moelaws.analysis.derive import DerivedTable
from moelaws.analysis.inputs import Inputs
from moelaws.figures.draw import make
from moelaws.figures.series import draw
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.project import load_study, study_names
from moelaws.spec.readers import Figure, Series
from moelaws.spec.references import resolve
from moelaws.spec.study import Study
from picture import assert_legible, words
from repository import REPOSITORY

STUDIES = {name: load_study(name, REPOSITORY) for name in study_names(REPOSITORY)}
DERIVED = [
    pytest.param(study, figure.name, series, id=f"{study.study}-{figure.name}-{i}")
    for study in STUDIES.values()
    for figure in study.figures
    for i, series in enumerate(figure.series)
    if series.table in figure.derived and not series.code
]
ENDS = "at the high end of the measured range"


@pytest.mark.parametrize(("study", "figure", "series"), DERIVED)
def test_derived_tables_have_the_columns_of_their_series(study, figure, series: Series):
    table = resolve(study.home, study.derived_table(series.table).code)
    assert isinstance(table, DerivedTable)
    known = {*table.names, *(["predicted", "held"] if series.predicted else [])}
    known |= {"low", "high"} if series.curve else set()
    names = {series.x, series.y, series.z, series.over, series.by, series.note}
    assert names.union(series.ends, series.error) - {""} <= known


def drawn(rows: pd.DataFrame, *panels: dict, **more: object):
    """The sheet of a figure of these panels over the completed ``rows``."""
    entry = {"name": "F", "caption": "A picture.", "panels": panels, **more}
    frame = rows.assign(status="completed")
    return draw(Inputs(frame=frame), parse(Figure, entry, "study.yaml"), "moelaws")


RUNS = pd.DataFrame(
    {"C": [1e18, 1e18, 1e19, 1e19], "S": [0.0, 0.5, 0.0, 0.5], "L": [3.0, 2.5, 2.0, 1.5],
     "low": 1.0, "high": [4.0, np.inf, 4.0, 4.0], "note": ["", "", "", ENDS]}
)  # fmt: skip
LINES = {
    "x": "S", "y": "L", "ends": ["low", "high"], "by": "C", "name": "C={C:g}", "label": "{C:power}",
    "line": "join", "note": "note",
}  # fmt: skip


def test_a_group_has_one_name_and_colour_and_a_bound_is_hollow_and_explained():
    sheet = drawn(RUNS, {"x": "sparsity", "y": "loss", "series": [LINES]}, legend="budget")
    assert_legible(sheet)
    assert sheet.data["series"].tolist() == ["C=1e+18"] * 2 + ["C=1e+19", f"C=1e+19 ({ENDS})"]
    np.testing.assert_array_equal(sheet.data[["x", "y"]], RUNS[["S", "L"]])
    np.testing.assert_array_equal(sheet.data["high"], RUNS["high"])
    assert "above the largest size measured" in words(sheet)
    marks = [line for line in sheet.panels[0].ax.lines if line.get_marker() == "^"]
    assert all(line.get_markerfacecolor() == "white" for line in marks)


def test_each_value_has_panels_of_its_own_and_what_is_missing_is_named():
    rows = RUNS.assign(best=[3.0, 2.5, np.nan, 1.5], note=["", "", "too few sizes", ""])
    panel = {"x": "sparsity", "y": "loss", "title": "{C:power}", "series": [LINES | {"y": "best"}]}
    sheet = drawn(rows, panel, each="C")
    assert sheet.data["panel"].tolist() == ["a", "a", "b"]
    assert sheet.warnings == ["C=1e+19, S=0: no best: too few sizes"]
    other = {**panel, "title": "{C:power}, other", "series": [LINES | {"rows": "C < 5e18"}]}
    sheet = drawn(rows, panel, other, each="C", empty="no run")
    assert "$10^{19}$, other" in words(sheet)
    assert "no run" in sheet.warnings


def test_the_error_of_a_series_is_the_first_that_all_rows_have():
    rows = RUNS.assign(L_paired_se=[0.1, 0.1, 0.1, np.nan], L_se=0.4)
    series = {"x": "S", "y": "L", "error": ["L_paired_se", "L_se"]}
    for runs, half in ((rows, 0.4), (rows.assign(L_paired_se=0.1), 0.1)):
        data = drawn(runs, {"series": [series]}).data
        np.testing.assert_allclose(data["high"] - data["y"], half)


def test_a_mean_joins_runs_and_text_stands_beside_marks():
    series = {"x": "S", "y": "L", "line": "mean", "name": "mean", "beside": "{C:power}"}
    sheet = drawn(RUNS, {"series": [series]})
    assert sheet.data[["x", "y"]].to_numpy().tolist() == [[0.0, 2.5], [0.5, 2.0]]
    assert "$10^{18}$" in words(sheet)


def test_a_square_grid_is_a_filled_map_and_marks_have_its_colours():
    series = {"x": "S", "y": "C", "z": "L", "name": "map", "line": "curve"}
    marks = {**series, "rows": "S > 0", "name": "runs", "line": "none"}
    sheet = drawn(RUNS, {"z": "loss", "series": [series, marks]})
    assert sheet.data[["series", "z"]].to_numpy().tolist() == [
        ["map", 3.0], ["map", 2.5], ["map", 2.0], ["map", 1.5], ["runs", 2.5], ["runs", 1.5],
    ]  # fmt: skip
    assert "loss" in words(sheet)
    filled, *_, dots = sheet.panels[0].ax.collections
    assert filled.norm is dots.norm


def test_without_a_completed_run_the_figure_says_so():
    sheet = drawn(RUNS.head(0), {"series": [LINES]}, empty="nothing is done")
    assert sheet.warnings == ["nothing is done"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": "M"}, "F: runs: the table has no column 'M'; there are C, S, L"),
        ({"name": "{M}"}, "F: runs: '{M}' names M, which is no column; there are C, S"),
        ({"rows": "M > 1"}, "F: runs: rows expression 'M > 1': no column 'M'"),
        ({"table": "optima"}, "study.yaml: panels: derived must name the table 'optima'"),
        ({"curve": "loss"}, "study.yaml: panels: fits must name the fit 'loss'"),
        ({"look": "pink"}, "look is 'pink'; it must be marks, small, open"),
    ],
)
def test_mistakes_are_refused_in_one_line(change, message):
    with pytest.raises(UserError) as refused:
        drawn(RUNS, {"series": [json.loads(json.dumps(LINES | change))]})
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_what_no_series_can_draw_is_a_function(tmp_path, monkeypatch):
    package = tmp_path / "drawn_study"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "figures.py").write_text(
        "from moelaws.figures.sheet import Sheet\n\n\ndef draw(inputs, x):\n"
        "    sheet = Sheet(3, 2)\n    sheet.panels[0].points('own', [x], [2])\n    return sheet\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    entry = {"name": "F", "caption": "Own.", "code": "figures:draw", "with": {"x": 1}}
    study = {"study": "own", "title": "Own", "package": "drawn_study", "figures": [entry]}
    inputs = Inputs(frame=RUNS.assign(status="completed", source="trained"))
    sheet = make(parse(Study, study, "study.yaml"), "F", inputs)
    assert sheet.data[["series", "x", "y"]].to_numpy().tolist() == [["own", 1.0, 2.0]]
