"""The errors of a leverage: by held-out documents that both architectures share, and by seeds."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from leverage_case import DEMO
from scipy.optimize import least_squares

from moelaws.analysis.inputs import Inputs
from moelaws.files.layout import Results
from moelaws.studies.leverage.derived import curves, points
from moelaws.studies.leverage.derived.curves import COMPUTE, DENSE, Curve, leverage_errors
from moelaws.studies.leverage.laws.curve import LAW, efficiency_leverage
from study_case import write_documents

C, M = np.array([1e10, 1e11, 1e12]), 150
TRUTH = {
    "dense": {"alpha": 60.0, "beta": -0.1, "b": 1.5},
    "moe": {"alpha": 58.0, "beta": -0.1, "b": 1.5},
}


def fitted(losses):
    """Parameters of the curve through three losses."""
    model = LAW.model({"C": C})
    done = least_squares(
        lambda theta: model.evaluate(theta[None])[0][0] - np.log(losses),
        LAW.vector(TRUTH["dense"]), xtol=1e-14, ftol=1e-14, gtol=1e-14,
    )  # fmt: skip
    return dict(zip(LAW.names, LAW.natural(done.x), strict=True))


def curve(kind, losses):
    ids = [f"{kind}{place}" for place in range(3)]
    rows = pd.DataFrame({"run_id": ids, COMPUTE: C, "L": losses})
    return Curve(fitted(losses), pd.DataFrame(), rows, 0.9)


def test_the_error_of_a_leverage_is_that_of_other_documents(tmp_path):
    losses = {kind: LAW.predict(params, {"C": C}) for kind, params in TRUTH.items()}
    ids = [f"{kind}{place}" for kind in TRUTH for place in range(3)]
    runs = pd.DataFrame({"run_id": ids, "L": np.concatenate([*losses.values()])})
    documents = write_documents(Results(tmp_path), runs, M, seed=0)
    frame = pd.DataFrame(
        {"run_id": ["dense0", "moe0"], "source": "trained", "status": "completed",
         "C": [1e10, 1e10], "L": [3.0, 3.02], "n_seeds": 2, "L_seed_sd": 0.01,
         "trunk": ["dense0", "moe0"]}
    )  # fmt: skip
    inputs = Inputs(frame=frame, results=Results(tmp_path))
    dense, moe = (curve(kind, losses[kind]) for kind in ("dense", "moe"))
    at = C[1:2]
    C_dense = efficiency_leverage(dense.params, moe.params, at).C_dense
    errors = leverage_errors(inputs, dense, moe.rows, moe.influence(at), C_dense)
    rng, drawn = np.random.default_rng(0), []
    for _ in range(200):
        sample = rng.integers(0, M, M)
        L = documents.nats[:, sample].sum(1) / documents.tokens[sample].sum()
        drawn.append(np.log(efficiency_leverage(fitted(L[:3]), fitted(L[3:]), at).EL[0]))
    assert errors["ln_EL_paired_se"][0] == pytest.approx(np.std(drawn), rel=0.2)
    # The loss of one mixture and of the dense curve beside it, over the slope of that curve.
    scale = 0.01 / abs(dense.slope(C_dense)[0])
    assert scale < errors["ln_EL_seed_se"][0] < 2 * scale
    nowhere = leverage_errors(inputs, dense, moe.rows, moe.influence(at), np.array([np.nan]))
    assert np.isnan([values[0] for values in nowhere.values()]).all()


@pytest.fixture(scope="module")
def paired(make_case, tmp_path_factory):
    """The demo's case with losses by document, which are those of its table."""
    case, root = make_case(DEMO), tmp_path_factory.mktemp("documents")
    losses = write_documents(Results(root), case.inputs.completed, 40, seed=7)
    return case, replace(case.inputs, results=Results(root)), losses


def error(losses, dense, C_dense, run_ids, moves):
    """The error of ln EL: of the loss looked up less the dense curve's, over the curve's slope."""
    at = np.array([C_dense])
    beside = pd.Series(dense.influence(at)[0], dense.rows["run_id"])
    weights = pd.Series(moves, run_ids).sub(beside, fill_value=0)
    weights = weights.reindex(losses.run_ids, fill_value=0) / dense.slope(at)[0]
    return float(losses.standard_error(weights))


def test_a_point_moves_with_the_runs_of_both_curves(paired):
    case, inputs, losses = paired
    own = inputs.declared_by(case.study.derived_table("points"))
    table = points.points(own)
    dense = curves.curve(own, DENSE)
    (moe, *_) = curves.curves(own, "curve_activation")
    E, k = (int(moe.rows[name].iloc[0]) for name in ("E", "k"))
    rows = table[(table["E"] == E) & (table["k"] == k) & table["EL"].notna()]
    rows = rows[rows["sweep"].str.contains("activation")]
    assert len(rows) > 1
    for row in rows.itertuples():
        moves = moe.influence(np.array([row.C]))[0]
        expected = error(losses, dense, row.C_dense, moe.rows["run_id"], moves)
        assert row.ln_EL_paired_se == pytest.approx(expected, rel=1e-6)
