"""Tables of the allocation paper from simulated runs stand beside what it prints."""

from __future__ import annotations

import pytest
from allocation_case import PAPER, STUDY, TRUE, Case

from moelaws.figures.draw import set_table


def test_coefficients_stand_beside_table_1(paper: Case) -> None:
    frame = set_table(STUDY, "T1", paper.inputs).frame
    eq_2 = frame[frame["Law"].str.startswith("Eq 2, R")].set_index("Coefficient")
    assert eq_2["Own runs"].to_dict() == pytest.approx(TRUE)
    assert eq_2["Published"].to_dict() == {
        "a": 15.12, "b": 18.62, "c": 39.55, "d": 0.0499, "tau": 13.7354, "alpha": 0.6288,
        "beta": 0.0453, "lambda": 0.4228, "gamma": 0.0431,
    }  # fmt: skip
    eq_1 = frame[frame["Law"].str.startswith("Eq 1")]
    assert len(eq_1) == 8


def test_hyperparameters_are_the_runs_and_the_papers(paper: Case) -> None:
    frame = set_table(STUDY, "T2", paper.inputs).frame
    own, printed = frame[frame["Runs"] == "own"], frame[frame["Runs"] == "paper"]
    assert own["Budget (FLOPs)"].to_list() == list(PAPER.budgets)
    assert set(own["Batch (sequences)"]) == {"64"}  # 8192 tokens of 128
    assert printed["Active parameters"].to_list() == ["20M", "30M", "55M", "100M", "200M"]


def test_starts_are_the_papers(paper: Case) -> None:
    table = set_table(STUDY, "T3", paper.inputs)
    assert table.frame["Number"].prod() == 104_976
    assert "104,976 starts" in table.notes[0]


def test_goodness_has_every_reading_and_both_baselines(paper: Case) -> None:
    frame = set_table(STUDY, "T4", paper.inputs).frame
    assert len(frame) == sum(fit.table == "runs" for fit in STUDY.fits) == 10
    runs = paper.inputs.derived("runs")
    assert set(frame["n held out"]) == {int(runs["sparsest"].sum())}
    best = frame.loc[frame["RMSE held out (nats)"].idxmin(), "Law"]
    assert best.startswith("Eq 2")
