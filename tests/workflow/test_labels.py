"""The list of figures in Snakemake's report."""

import pytest

from moelaws.spec.project import load_study
from moelaws.workflow.labels import report_labels
from repository import REPOSITORY


@pytest.fixture(scope="module")
def study():
    return load_study("sparsity", REPOSITORY)


def test_rows_sorted_by_their_first_column_are_in_natural_order(study):
    names = [entry.name for entry in (*study.figures, *study.tables)]
    rows = sorted((list(report_labels(study, name).values()) for name in names), key=str)
    figures = [name for _, name, _ in rows]
    assert sorted(figures) == sorted(names)
    assert figures[:4] == ["F1a", "F1b", "F2a", "F2b"]
    assert figures.index("F9") < figures.index("F10") < figures.index("F11") < figures.index("T1")
