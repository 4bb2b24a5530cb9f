"""The search's figures and tables: every run shown, bounds marked, published laws beside."""

import numpy as np
import pandas as pd
import pytest

from hyperparameters_case import DEMO, STUDY, published, table, write_case
from picture import assert_legible

CASES = {"demo": DEMO, "paper": published(1e19, batch=1.8, noise=1e-3)}


@pytest.fixture(scope="module", params=["demo", pytest.param("paper", marks=pytest.mark.slow)])
def case(request, tmp_path_factory):
    source = "trained" if request.param == "demo" else "simulated"
    frame = table(request.param, CASES[request.param], source=source)
    return write_case(tmp_path_factory.mktemp(request.param), frame)


@pytest.mark.parametrize("figure", [figure.name for figure in STUDY.figures])
def test_nothing_is_clipped_at_the_pages_edge(figure, case):
    assert_legible(case.sheet(figure))


@pytest.mark.parametrize("figure", ["F2a", "F7", "F2b", "F9"])
def test_points_and_lines_lie_within_the_axes(figure, case):
    """Bands may leave them: intervals over three budgets span decades."""
    sheet = case.sheet(figure)
    for panel in sheet.panels:
        shown = sheet.data[sheet.data["panel"] == panel.name]
        low, high = panel.ax.get_ylim()
        assert shown["y"].dropna().between(low, high).all()
        assert panel.ax.get_ylabel()


def test_every_run_of_the_search_and_eq_5_are_in_f7(case):
    data = case.sheet("F7").data
    runs = pd.read_parquet(case.derived["near_optimal"])
    for panel, column in (("a", "batch_tokens"), ("b", "lr")):
        drawn = data[(data["panel"] == panel) & (data["series"] == "search")]
        assert sorted(drawn["y"]) == pytest.approx(sorted(runs[column]))
    line = data[(data["panel"] == "b") & data["series"].str.startswith("published")]
    assert np.allclose(line["y"], 1.1576 * line["x"] ** -0.1529)


def test_the_map_has_a_cell_a_run_and_the_best_is_of_the_first_step(case):
    data = case.sheet("F8").data
    cells = data[data["series"].str.startswith("runs")]
    runs = pd.read_parquet(case.derived["near_optimal"])
    top = runs[runs["C"] == runs["C"].max()]
    assert len(cells) == len(top)
    assert cells["panel"].nunique() == top["A"].nunique()
    best = data[data["series"] == "best run"].merge(cells, on=["panel", "x", "y"])
    assert best["series_y"].tolist() == ["runs, 0 % or more"] * top["A"].nunique()
