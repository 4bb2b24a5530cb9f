"""Points and single runs of leverage pass on how they move with each loss."""

from dataclasses import replace

import numpy as np
import pytest
from leverage_case import DEMO

from moelaws.files.layout import Results
from moelaws.studies.leverage.derived import points
from moelaws.studies.leverage.derived.curves import COMPUTE, DENSE, curve, curves
from study_case import write_documents


@pytest.fixture(scope="module")
def paired(make_case, tmp_path_factory):
    """The demo's case with losses by document, which are those of its table."""
    case, root = make_case(DEMO), tmp_path_factory.mktemp("documents")
    losses = write_documents(Results(root), case.inputs.completed, 40, seed=7)
    return case, replace(case.inputs, results=Results(root)), losses


def error(losses, dense, C_dense, run_ids, moves):
    """The error of ln EL: of the loss looked up less the dense curve's, over the curve's slope."""
    weights = dict.fromkeys(losses.run_ids, 0.0)
    for run_id, move in zip(run_ids, moves, strict=True):
        weights[run_id] += move
    for run_id, move in zip(
        dense.rows["run_id"], dense.influence(np.array([C_dense]))[0], strict=True
    ):
        weights[run_id] -= move
    slope = dense.slope(np.array([C_dense]))[0]
    return float(losses.standard_error(np.array([*weights.values()]) / slope))


def test_a_point_moves_with_the_runs_of_both_curves(paired):
    case, inputs, losses = paired
    own = inputs.declared_by(case.study.derived_table("points"))
    table = points.points(own)
    dense = curve(own, DENSE)
    (moe, *_) = curves(own, "curve_activation")
    E, k = (int(moe.rows[name].iloc[0]) for name in ("E", "k"))
    rows = table[(table["E"] == E) & (table["k"] == k) & table["EL"].notna()]
    rows = rows[rows["sweep"].str.contains("activation")]
    assert len(rows) > 1
    for row in rows.itertuples():
        moves = moe.influence(np.array([row.C]))[0]
        expected = error(losses, dense, row.C_dense, moe.rows["run_id"], moves)
        assert row.ln_EL_paired_se == pytest.approx(expected, rel=1e-6)


def test_a_single_run_moves_with_its_own_loss_and_the_baselines_curve(paired):
    case, inputs, losses = paired
    own = inputs.declared_by(case.study.derived_table("singles"))
    table = points.singles(own)
    runs = inputs.completed.set_index("run_id")
    rows = table[table["EL"].notna()].groupby("sweep").head(2)
    assert rows["sweep"].nunique() > 1
    for row in rows.itertuples():
        baseline = curve(own, row.baseline)
        C_dense = row.EL * runs.loc[row.run_id, COMPUTE]
        expected = error(losses, baseline, C_dense, [row.run_id], [1.0])
        assert row.ln_EL_paired_se == pytest.approx(expected, rel=1e-6)
