"""The second stage of r*, and the tables of the fits."""

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
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


@pytest.mark.parametrize("falling", [1, 3])
def test_exponents_below_zero_are_left_out_and_named(tmp_path, falling):
    table = published([1e19, 1e20, 1e21])
    lost = table["S"].isin(sorted(set(table["S"]))[:falling])
    table.loc[lost, "r"] = 1e3 * table.loc[lost, "C"] ** -0.1
    frame = fits.stages(first_stage(tmp_path, table))
    assert f"{falling} of 4 sparsities have beta_r <= 0" in fits.stages.warnings(frame)[0]
    beta = frame[frame["coefficient"] == "beta_r"]
    assert beta["n"].to_list() == [4 - falling] * 2
    if falling == 1:
        assert beta["estimate"].to_numpy() == pytest.approx([0.24, 0.21], rel=1e-6)
    else:  # a single exponent is no line
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
