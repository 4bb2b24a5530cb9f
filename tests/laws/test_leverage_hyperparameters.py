"""Optima of laws: Eq 5 and Table 5 of the leverage paper, and those that several laws give."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws import laws

EQ_5 = laws.get("leverage.hyperparameters")
# Table 8: C, learning rate, sequences of 4096.
C = np.array([2e18, 6e18, 2e19, 6e19, 2e20, 6e20])
LR = np.array([1.52e-3, 1.31e-3, 1.11e-3, 9.5e-4, 8.1e-4, 7.0e-4])
SEQUENCES = np.array([98, 147, 228, 342, 531, 795])


def test_table_8_does_not_follow_eq_5():
    law = EQ_5.evaluate({}, {"C": C, "context": 4096})
    rates = [0.8251113404656866, 0.8411861311090799, 0.8568246397119]
    rates += [0.867449924104155, 0.889106913228839, 0.908905744104519]
    batches = [1.239741738221454, 1.2461189389293823, 1.2463499313218553]
    batches += [1.252761124410954, 1.254294933949626, 1.258372707806961]
    assert law["lr"] * rates == pytest.approx(LR, rel=1e-4)
    assert law["B_sequences"] * batches == pytest.approx(SEQUENCES, rel=1e-4)


HOLISTIC, MARIN, LEVERAGE = map(laws.get, ("holistic", "marin", "leverage.allocation"))
DENSE = laws.get("leverage.allocation:dense")


def test_table_5_at_1e20():
    for law, M, D in (
        (LEVERAGE, 2965983825.217396, 33723811690.938118),
        (DENSE, 4573422246.705477, 21852609404.695564),
    ):
        assert law.evaluate({}, {"C": 1e20}) == pytest.approx({"M": M, "D": D}, rel=1e-5)


def test_a_mixture_is_the_smaller_model_from_1_77e14_on():
    moe, dense = (law.evaluate({}, {"C": [1.76e14, 1.78e14]})["M"] for law in (LEVERAGE, DENSE))
    assert (moe < dense).tolist() == [False, True]


COMPUTES = st.floats(17, 25).map(lambda x: 10.0**x)
# marin's README: the best runs of the budgets, as Paloma's loss and bits a byte of English C4
BEST = {
    1e18: (3.5273, 1.0658),
    3e18: (3.3398, 1.0122),
    1e19: (3.1494, 0.9541),
    3e19: (3.0066, 0.9123),
    1e20: (2.8509, 0.8665),
    3e20: (2.7222, 0.8289),
}


@given(COMPUTES)
def test_scale_times_data_is_the_compute(C):
    best = HOLISTIC.evaluate({}, {"C": C})
    assert best["M"] * best["D"] / C == pytest.approx(1.0003, abs=5e-5)
    best = laws.get("deepseek:allocation").evaluate({}, {"C": C})
    assert best["M"] * best["D"] / C == pytest.approx(1.0001, abs=5e-5)
    best = MARIN.evaluate({}, {"C": C})
    assert 6 * best["N_active"] * best["D"] / C == pytest.approx(1.0464 * C**-0.001, rel=1e-6)
    assert 0.98 < 6 * best["N_active"] * best["D"] / C < 1.01


def test_three_laws_of_mixtures_agree_on_tokens_where_compute_is_in_flop():
    """Within 15 % from 1e19 to 1e21. Read in 1e18 FLOP, holistic would be six times the others."""
    C = np.geomspace(1e19, 1e21, 5)
    D = np.array([law.evaluate({}, {"C": C})["D"] for law in (HOLISTIC, MARIN, LEVERAGE)])
    assert (D.max(axis=0) / D.min(axis=0) < 1.2).all()
    read = 1e9 * HOLISTIC.evaluate({}, {"C": 1e20 / 1e18})["D"]
    assert read == pytest.approx(1.87e11, rel=1e-2)
    assert read / HOLISTIC.evaluate({}, {"C": 1e20})["D"] == pytest.approx(6.1, abs=0.05)


@pytest.mark.parametrize(("ref", "i", "within"), [("marin:loss", 0, 0.03), ("marin:bpb", 1, 0.006)])
def test_marins_curves_pass_its_best_runs(ref, i, within):
    law, C = laws.get(ref), np.array(list(BEST))
    measured = np.array([values[i] for values in BEST.values()])
    assert law.predict(law.published, {"C": C}) == pytest.approx(measured, abs=within)
    projected = law.predict(law.published, {"C": [1e21, 1e23]})
    assert projected == pytest.approx([(2.606, 2.252), (0.7923, 0.6854)][i], abs=1e-3)


def test_marins_dense_models_need_four_times_the_compute():
    moe, dense = laws.get("marin:ladder"), laws.get("marin:dense")
    for C in (1e19, 1e20, 1e21):
        L = moe.predict(moe.published, {"C": C})
        C_dense = np.geomspace(C, 10 * C, 10_001)
        same = np.abs(dense.predict(dense.published, {"C": C_dense}) - L).argmin()
        assert C_dense[same] / C == pytest.approx(4.15, abs=0.1)


def test_marins_rate_counts_the_batch_in_sequences():
    law = laws.get("marin:lr")
    at = {"D": 1e10, "d_model": 1024, "B_sequences": 64}
    assert law.predict(law.published, at) == pytest.approx(1.57e-3, rel=5e-3)
    # As tokens the same batch would ask for a rate beyond the recipe's own cap.
    assert law.predict(law.published, at | {"B_sequences": 64 * 4096}) > 0.05


def test_the_joint_rate_falls_with_size_and_experts():
    law = laws.get("joint.hyperparameters")
    rate = law.predict(law.published, {"N_active": [[1e8], [1e9]], "E": [1, 8, 32]})
    assert rate[:, 0] == pytest.approx([1.458e-3, 2.258e-4], rel=1e-3)
    assert rate[:, 2] / rate[:, 0] == pytest.approx(0.42, abs=1e-3)
    assert ((rate > 5e-5) & (rate < 1e-2)).all()


@pytest.mark.parametrize(
    ("N", "lr", "B"), [(6.9e9, 4.2e-4, 2304 * 4096), (67.4e9, 3.2e-4, 4608 * 4096)]
)
def test_deepseeks_models_have_the_rate_and_batch_of_their_law(N, lr, B):
    """Its 7B and 67B were trained on 2e12 tokens, as the paper's table of models says."""
    values = laws.get("deepseek").evaluate({}, {"C": 6 * N * 2e12})
    assert values["lr"] == pytest.approx(lr, rel=0.02)
    assert values["B"] == pytest.approx(B, rel=0.05)
