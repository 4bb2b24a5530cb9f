"""The second stage of r*, and the tables of the fits."""

import numpy as np
import pandas as pd
import pytest
from allocation_case import PAPER, STUDY, TRUE

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.figures.draw import set_table
from moelaws.fitting.fit import fit
from moelaws.fitting.report import write_fit
from moelaws.spec.fit import Fit
from moelaws.studies.allocation.derived import fits
from moelaws.studies.allocation.laws.ratio import ratio

SPARSITIES = (14 / 17, 30 / 33, 62 / 65, 126 / 129)


def first_stage(tmp_path, table):
    """The fit ``ratio_raw``, a part a sparsity, of r* in ``table``."""
    law = laws.fittable("allocation.ratio:stage1")
    spec = Fit(name="ratio_raw", law=law.ref, mapping={"r_star": "r"}, split_by="S")
    report = fit(law, table.assign(source="simulated"), spec)
    write_fit(report, tmp_path / "ratio_raw.json")
    return FittedInputs(frame=None, fits={"ratio_raw": tmp_path / "ratio_raw.json"})


def published(budgets):
    frame = pd.DataFrame([{"C": C, "S": S} for C in budgets for S in SPARSITIES])
    return frame.assign(r=ratio(frame["C"], frame["S"]))


def test_two_stages_recover_the_published_coefficients(tmp_path):
    frame = fits.stages(first_stage(tmp_path, published([1e18, 1e19, 1e20, 1e21])))
    assert frame["estimate"].to_numpy() == pytest.approx([6.7e-5, -1.23, 0.24, 0.21], rel=1e-6)
    assert frame["published"].to_list() == [6.7e-5, -1.23, 0.24, 0.21]
    assert set(frame["selection"]) == {"raw"}
    assert fits.stages.warnings(frame) == []


def test_exponents_below_zero_are_left_out_and_named(tmp_path):
    table = published([1e19, 1e20, 1e21])
    falling = np.isclose(table["S"], SPARSITIES[0])
    table.loc[falling, "r"] = 1e3 * table.loc[falling, "C"] ** -0.1
    frame = fits.stages(first_stage(tmp_path, table))
    beta = frame[frame["coefficient"] == "beta_r"]
    assert beta["n"].to_list() == [3, 3]
    assert beta["estimate"].to_numpy() == pytest.approx([0.24, 0.21], rel=1e-6)
    assert "1 of 4 sparsities have beta_r <= 0" in fits.stages.warnings(frame)[0]


def test_a_single_exponent_above_zero_is_no_line(tmp_path):
    table = published([1e19, 1e20, 1e21])
    falling = ~np.isclose(table["S"], SPARSITIES[0])
    table.loc[falling, "r"] = 1e3 * table.loc[falling, "C"] ** -0.1
    frame = fits.stages(first_stage(tmp_path, table))
    beta = frame[frame["coefficient"] == "beta_r"]
    assert beta[["estimate", "low", "high"]].isna().all(axis=None)
    assert "1 rows are left to fit the 2 parameters" in beta["note"].iloc[0]


def test_runs_have_the_papers_sparsity_and_the_fitted_ratio(paper):
    frame = paper.inputs.derived("runs")
    assert sorted(set(frame["E"])) == [17, 33, 65, 129]
    assert sorted(set(frame["S"].round(4))) == [0.8235, 0.9091, 0.9538, 0.9767]
    assert frame["sparsest"].sum() == len(frame) / 4
    assert set(frame.loc[frame["sparsest"] == 1, "E"]) == {129}
    np.testing.assert_allclose(frame["r_star_published"], ratio(frame["C"], frame["S"]))
    report = paper.inputs.fit("ratio")
    again = laws.fittable(report.law).predict(
        report.group({}).estimates(), {"C": frame["C"], "S": frame["S"]}
    )
    np.testing.assert_allclose(frame["r_star"], again)
    assert frame["r_star"].between(0.1, 3).all()


def test_coefficients_stand_beside_table_1(paper):
    frame = set_table(STUDY, "T1", paper.inputs).frame
    eq_2 = frame[frame["Law"].str.startswith("Eq 2, R")].set_index("Coefficient")
    assert eq_2["Own runs"].to_dict() == pytest.approx(TRUE)
    assert eq_2["Published"].to_dict() == {
        "a": 15.12, "b": 18.62, "c": 39.55, "d": 0.0499, "tau": 13.7354, "alpha": 0.6288,
        "beta": 0.0453, "lambda": 0.4228, "gamma": 0.0431,
    }  # fmt: skip
    eq_1 = frame[frame["Law"].str.startswith("Eq 1")]
    assert len(eq_1) == 8


def test_hyperparameters_are_the_runs_and_the_papers(paper):
    frame = set_table(STUDY, "T2", paper.inputs).frame
    own, printed = frame[frame["Runs"] == "own"], frame[frame["Runs"] == "paper"]
    assert own["Budget (FLOPs)"].to_list() == list(PAPER.budgets)
    assert set(own["Batch (sequences)"]) == {"64"}  # 8192 tokens of 128
    assert printed["Active parameters"].to_list() == ["20M", "30M", "55M", "100M", "200M"]


def test_starts_are_the_papers(paper):
    table = set_table(STUDY, "T3", paper.inputs)
    assert table.frame["Number"].prod() == 104_976
    assert "104,976 starts" in table.notes[0]
