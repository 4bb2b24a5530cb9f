"""The allocation paper's r*(C, S) against numbers worked out apart from this code."""

import numpy as np
import pytest

from moelaws import laws
from moelaws.fitting.caveats import require_identifiable
from moelaws.spec.errors import UserError
from moelaws.studies.allocation.laws import ratio

LAW = laws.get("allocation.ratio")
PAPER = LAW.published
E17, E33, E65, E129 = (1 - 3 / E for E in (17, 33, 65, 129))  # one shared of three active


@pytest.mark.parametrize(
    ("C", "E", "expected"),
    [
        (1e20, 17, 1.2225248883546316),
        (1e20, 33, 1.0185791540197204),
        (1e20, 65, 0.9664551336205626),
        (1e20, 129, 1.0328051686636301),
        (1e21, 17, 1.7946807442963462),
        (1e21, 129, 1.3272638706815338),
    ],
)
def test_optimal_ratio(C, E, expected):
    S = (E - 3) / E
    assert LAW.predict(PAPER, {"C": C, "S": S}) == pytest.approx(expected, rel=1e-5)
    assert ratio.ratio(C, S) == pytest.approx(expected, rel=1e-5)
    assert ratio.alpha_r(S) * C ** ratio.beta_r(S) == pytest.approx(expected, rel=1e-5)


def test_ratio_of_the_densest_and_the_sparsest():
    # "Over 40 %" is true beyond the largest budget alone, and below 5.4e18 the order reverses.
    quotient = ratio.ratio(1e21, E17) / ratio.ratio(1e21, E129)
    assert quotient == pytest.approx(1.35216574785148, rel=1e-5)
    beyond = 1.8249680798045226e21
    assert ratio.ratio(beyond, E17) / ratio.ratio(beyond, E129) == pytest.approx(1.4, rel=1e-4)
    same = 5.403540202639673e18
    assert ratio.ratio(same, E17) == pytest.approx(ratio.ratio(same, E129), rel=1e-4)
    assert ratio.ratio(0.9 * same, E17) < ratio.ratio(0.9 * same, E129)


def test_compute_at_which_attention_and_experts_are_equal():
    budgets = np.array([2.996753541671535e19, 1.311561566848358e20, 7.435644762537982e19, 7.83e19])
    equal = ratio.ratio(budgets, [E17, E65, E129, 0.9])
    assert equal == pytest.approx(1, rel=1e-4)
    # "r* > 1 for S < 90 %" and "r* < 1 for S > 95 %" hold together at no budget (E0.7).
    assert budgets[3] > budgets[2]


def test_ratio_is_not_monotone_in_sparsity():
    S = np.linspace(0, 0.999, 100_001)
    assert S[ratio.ratio(1e20, S).argmin()] == pytest.approx(0.9513811993695364, abs=1e-5)


def sweep():
    S, C = np.meshgrid([E17, E33, E65, E129], np.geomspace(1e19, 1e21, 6))
    return {"S": S.ravel(), "C": C.ravel()}


def test_published_values_are_identified_by_the_sweep():
    columns = sweep()
    model = LAW.model(LAW.columns(columns))
    _, state = model.evaluate(LAW.vector(PAPER)[None])
    J = model.jacobian(state)[0]
    assert np.linalg.matrix_rank(J / np.linalg.norm(J, axis=1, keepdims=True)) == 4
    require_identifiable(LAW, columns)


def test_rows_of_one_sparsity_confound_all_coefficients():
    with pytest.raises(UserError, match=r"determine alpha0, alpha1, beta0 and beta1 .* S = 0.9"):
        require_identifiable(LAW, sweep() | {"S": np.full(24, 0.9)})
