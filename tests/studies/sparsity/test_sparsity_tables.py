"""The sparsity paper's tables, from a simulated study whose fits are known."""

import pandas as pd
import pytest

from moelaws.figures.draw import draw, set_table
from moelaws.spec.project import load_study
from repository import REPOSITORY
from sparsity_case import PAPER

TABLES = tuple(table.name for table in load_study("sparsity", REPOSITORY).tables)


def frame(case, table):
    return set_table(case.study, table, case.inputs).frame


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_written_and_marked_where_simulated(table, make_case, tmp_path):
    out = tmp_path / f"{table}.csv"
    case = make_case(PAPER)
    draw(case.study, table, case.inputs, out)
    assert out.with_suffix(".md").read_text().startswith("SIMULATED DATA")
    written = pd.read_csv(out)
    assert len(written) == len(frame(case, table))
    assert written["data"].str.startswith("SIMULATED DATA").all()


def test_errors_of_three_laws_and_the_printed_ones(make_case):
    case = make_case(PAPER)
    table = frame(case, "T_goodness")
    own = table[table["Fit"] == "loss"].set_index("Runs")
    rows = case.inputs.table
    assert list(own["n"]) == [(rows["S"] < 0.98).sum(), (rows["S"] >= 0.98).sum()]
    assert own.loc["held out", "RMSE (nats)"] == pytest.approx(0.003 * rows["L"].mean(), rel=0.3)
    printed = table[table["Fit"].str.startswith("published")].set_index("Runs")
    assert list(printed["MSE"]) == [0.00056, 0.0058]
    blind = table[(table["Fit"] == "chinchilla") & (table["Runs"] == "held out")]
    assert blind["RMSE (nats)"].item() > 10 * own.loc["held out", "RMSE (nats)"]
