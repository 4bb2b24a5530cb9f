"""Amplification of the data exponent over experts: both forms against Table 5."""

import numpy as np
import pytest

from equation_text import said
from moelaws import laws
from moelaws.studies.generalization.laws.kappa import kappa

E = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
ALPHA_N = [0.1817, 0.1780, 0.1731, 0.1676, 0.1617, 0.1557]
ALPHA_D = [0.1965, 0.2065, 0.2192, 0.2338, 0.2494, 0.2652]
REFS = ["generalization.kappa", "generalization.kappa:log2"]


def test_kappa_of_table_5():
    expected = [1.27795294, 1.36661236, 1.48552005, 1.62878807, 1.79176240, 1.96847553]
    assert kappa(ALPHA_N, ALPHA_D) == pytest.approx(expected, rel=1e-6)
    table = laws.get("generalization.exponents:consistency").evaluate(
        {}, {"alpha_N": ALPHA_N, "alpha_D": ALPHA_D}
    )
    assert table["kappa"] == pytest.approx(kappa(ALPHA_N, ALPHA_D), rel=1e-14)


@pytest.mark.parametrize(
    ("ref", "expected", "R2"),
    [
        (REFS[0], [0.23137114980833354, 0.12632505466613067], 0.9966),
        (REFS[1], [1.2385663386058636, 0.13918088764943087], 0.9867),
    ],
)
def test_published_values_are_least_squares_on_table_5(ref, expected, R2):
    law = laws.get(ref)
    y = law.on_scale(kappa(ALPHA_N, ALPHA_D))
    slope, intercept = np.polyfit(np.log(E) if law.log_response else np.log2(E), y, 1)
    assert [intercept, slope] == pytest.approx(expected, rel=1e-5)
    assert law.vector(law.published) == pytest.approx(expected, rel=1e-6)
    residual = y - law.on_scale(law.predict(law.published, {"E": E}))
    assert 1 - residual.var() / y.var() == pytest.approx(R2, abs=5e-5)
    # The optimum of the squares: the gradient of the engine's own model is zero there.
    model = law.model(law.columns({"E": E}))
    _, state = model.evaluate(law.vector(law.published)[None])
    assert model.jacobian(state)[0] @ residual == pytest.approx([0, 0], abs=1e-6)


@pytest.mark.parametrize("ref", REFS)
def test_noise_free_data_on_table_5_s_experts_identify_both_parameters(ref):
    law = laws.get(ref)
    model = law.model(law.columns({"E": E}))
    prediction, state = model.evaluate(law.vector(law.published)[None])
    data = law.on_scale(said(law, {"E": E})["kappa"])
    assert prediction[0] == pytest.approx(data, abs=1e-14)
    assert np.linalg.matrix_rank(model.jacobian(state)[0]) == 2


def test_data_of_agreeing_slopes_has_no_amplification():
    assert kappa(0.25, 0.2) == pytest.approx(1.0, rel=1e-14)
