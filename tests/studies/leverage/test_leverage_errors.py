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


def test_a_point_moves_with_the_runs_of_both_curves(make_case, tmp_path):
    case = make_case(DEMO)
    write_documents(Results(tmp_path), case.inputs.completed, 40, seed=7)
    measured = replace(case.inputs, results=Results(tmp_path))
    inputs = measured.declared_by(case.study.derived_table("points"))
    moe, *_ = curves.curves(inputs, "curve_activation")
    table = points.points(inputs)
    own = (table[["E", "k"]] == moe.rows[["E", "k"]].iloc[0]).all(axis=1)
    rows = table[own & table["EL"].notna() & table["sweep"].str.contains("activation")]
    C, C_dense = rows["C"].to_numpy(float), rows["C_dense"].to_numpy(float)
    dense = curves.curve(inputs, DENSE)
    errors = leverage_errors(inputs, dense, moe.rows, moe.influence(C), C_dense)
    assert len(rows) > 1
    assert np.isfinite(errors["ln_EL_paired_se"]).all()
    np.testing.assert_allclose(rows["ln_EL_paired_se"], errors["ln_EL_paired_se"], rtol=1e-6)
