"""The sparsity paper's tables, from a simulated study whose fits are known."""

import numpy as np
import pandas as pd
import pytest

from moelaws.figures.draw import set_table, tabulate
from moelaws.spec.project import load_study
from repository import REPOSITORY
from sparsity_case import DEMO, PAPER

TABLES = tuple(table.name for table in load_study("sparsity", REPOSITORY).tables)


def frame(case, table):
    return set_table(case.study, table, case.inputs).frame


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_written_and_marked_where_simulated(table, make_case, tmp_path):
    out = tmp_path / f"{table}.csv"
    case = make_case(PAPER)
    tabulate(case.study, table, case.inputs, out)
    assert out.with_suffix(".md").read_text().startswith("SIMULATED DATA")
    written = pd.read_csv(out)
    assert len(written) == len(frame(case, table))
    assert written["data"].str.startswith("SIMULATED DATA").all()


def test_searched_values_are_those_of_the_runs(make_case):
    table = frame(make_case(DEMO), "T1").set_index("Hyperparameter")
    assert table.loc["sparsity S", "These runs"] == "0, 0.5, 0.75, 0.9375"
    assert table.loc["experts E", "These runs"] == "2, 4, 8, 32"
    assert table.loc["total parameters N", "These runs"].endswith("values)")


def test_starts_of_the_paper_are_437_400(make_case):
    case = make_case(PAPER)
    starts = set_table(case.study, "T2", case.inputs)
    assert "437,400 starts" in starts.notes[0]
    counts = [len(text.split(", ")) for text in starts.frame["This fit"]]
    assert np.prod(counts) == 437_400


def test_coefficients_stand_beside_the_published_ones(make_case):
    table = frame(make_case(PAPER), "T3").set_index("Coefficient")
    # The case's coefficients are the published ones, at the paper's scale.
    np.testing.assert_allclose(table["Estimate"], table["Published"])
    assert table.loc["beta", "Published"] == 0.3954


def test_errors_of_three_laws_and_the_printed_ones(make_case):
    case = make_case(PAPER)
    table = frame(case, "T_goodness")
    own = table[table["Law"].str.startswith("Eq 6")].set_index("Runs")
    rows = case.inputs.table
    assert list(own["n"]) == [(rows["S"] < 0.98).sum(), (rows["S"] >= 0.98).sum()]
    assert own.loc["held out", "RMSE"] == pytest.approx(0.003 * rows["L"].mean(), rel=0.3)
    printed = table[table["Law"].str.startswith("published")].set_index("Runs")
    assert list(printed["MSE"]) == [0.00056, 0.0058]
    blind = table[(table["Law"].str.startswith("Chinchilla")) & (table["Runs"] == "held out")]
    assert blind["RMSE"].item() > 10 * own.loc["held out", "RMSE"]


def test_surfaces_predict_unseen_runs_as_well_as_the_paper_says(make_case):
    table = frame(make_case(PAPER), "T_surfaces")
    assert len(table) == 10  # two sizes, five budgets
    assert table["MSE, held out"].between(3e-5, 3e-4).all()  # the paper: 1e-4
    assert (table["Pearson r, held out"] > 0.98).all()
