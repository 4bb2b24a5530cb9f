"""The search's figures and tables: every run shown, bounds marked, published laws beside."""

import numpy as np
import pandas as pd
import pytest

from hyperparameters_case import DEMO, STUDY, table, write_case
from picture import assert_legible


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    return write_case(tmp_path_factory.mktemp("case"), table("demo", DEMO))


@pytest.mark.parametrize("figure", [figure.name for figure in STUDY.figures])
def test_nothing_is_clipped_at_the_pages_edge(figure, case):
    assert_legible(case.sheet(figure))


def test_every_run_of_the_search_and_eq_5_are_in_f7(case):
    data = case.sheet("F7").data
    runs = pd.read_parquet(case.derived["near_optimal"])
    for panel, column in (("a", "batch_tokens"), ("b", "lr")):
        drawn = data[(data["panel"] == panel) & (data["series"] == "search")]
        assert sorted(drawn["y"]) == pytest.approx(sorted(runs[column]))
    line = data[(data["panel"] == "b") & data["series"].str.startswith("published")]
    assert np.allclose(line["y"], 1.1576 * line["x"] ** -0.1529)
