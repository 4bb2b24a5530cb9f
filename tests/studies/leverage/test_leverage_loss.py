"""Losses by efficiency leverage beside an assumed dense curve."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws
from moelaws.studies.leverage.laws import joint
from moelaws.studies.leverage.laws.curve import LAW as CURVE
from moelaws.studies.leverage.laws.curve import efficiency_leverage
from moelaws.studies.leverage.laws.loss import ASSUMED_DENSE

LAW = laws.get("leverage.loss")


@given(
    A=st.floats(0.004, 0.99), G=st.floats(1, 32), C=st.floats(1e18, 1e22), A_max=st.floats(1.5, 1e9)
)
def test_the_loss_is_the_dense_one_at_EL_times_the_compute(A, G, C, A_max):
    params = LAW.published | {"A_max": A_max}
    EL = joint.LAW.predict(joint.LAW.published | {"A_max": A_max}, {"A": A, "G": G, "C": C})
    dense = CURVE.predict(ASSUMED_DENSE, {"C": EL * C})
    assert LAW.predict(params, {"C": C, "S": 1 - A, "G": G}) == pytest.approx(dense, rel=1e-9)


def test_algorithm_1_reads_the_leverage_back_from_the_losses():
    """The mixture's loss at one compute, looked up on the dense curve (App K)."""
    C, A, G = 1e20, 0.03125, 8.0
    L = float(LAW.predict(LAW.published, {"C": C, "S": 1 - A, "G": G}))
    flat = {"alpha": L - 1.0, "beta": 0.0, "b": 1.0}  # any curve through that loss
    leverage = efficiency_leverage(ASSUMED_DENSE, flat, C)
    assert pytest.approx(4.485056704247889, rel=1e-9) == leverage.EL  # Table 6 at this point


def test_the_assumed_curve_is_no_published_one():
    assert any("assumed here, not published" in text for text in LAW.errata)
    assert "assumed" in LAW.title
    assert CURVE.published is None
    shared_params = {("beta" if n == "beta_G" else n): LAW.published[n] for n in LAW.names[3:]}
    assert shared_params == dict(joint.LAW.published)


def test_activation_and_granularity_sweeps_identify_all_but_A_max():
    C = np.repeat([2e18, 6e18, 2e19, 6e19, 2e20, 6e20], 14)
    S = np.tile([*(1 - 2 / 2.0 ** np.arange(1, 9)), *[1 - 1 / 32] * 6], 6)
    G = np.tile([*[2.0] * 8, 2, 4, 6, 8, 12, 16], 6)
    model = LAW.model({"C": C, "S": S, "G": G})
    J = model.jacobian(model.evaluate(LAW.vector(LAW.published)[None])[1])[0]
    size = np.linalg.norm(J, axis=1)
    assert size[-1] < 1e-12 * size[:-1].min()
    assert np.linalg.svd(J[:-1] / size[:-1, None], compute_uv=False).min() > 1e-5
