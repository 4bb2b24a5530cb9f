"""Eq 5 and Table 5 of the leverage paper: learning rate, batch, model scale and data."""

import numpy as np
import pytest

from moelaws import laws

EQ_5 = laws.get("leverage.hyperparameters")
# Table 8: C, learning rate, sequences of 4096.
C = np.array([2e18, 6e18, 2e19, 6e19, 2e20, 6e20])
LR = np.array([1.52e-3, 1.31e-3, 1.11e-3, 9.5e-4, 8.1e-4, 7.0e-4])
SEQUENCES = np.array([98, 147, 228, 342, 531, 795])
POWER_LAWS = [
    "leverage.hyperparameters:lr",
    "leverage.hyperparameters:batch",
    "leverage.allocation:M",
    "leverage.allocation:D",
    "leverage.allocation:dense_M",
    "leverage.allocation:dense_D",
]


def test_table_8_does_not_follow_eq_5():
    law = EQ_5.evaluate({}, {"C": C, "context": 4096})
    rates = [0.8251113404656866, 0.8411861311090799, 0.8568246397119]
    rates += [0.867449924104155, 0.889106913228839, 0.908905744104519]
    batches = [1.239741738221454, 1.2461189389293823, 1.2463499313218553]
    batches += [1.252761124410954, 1.254294933949626, 1.258372707806961]
    assert law["lr"] * rates == pytest.approx(LR, rel=1e-4)
    assert law["B_sequences"] * batches == pytest.approx(SEQUENCES, rel=1e-4)


def test_the_law_lies_above_the_searched_rates_and_spans_the_searched_batches():
    ends = EQ_5.evaluate({}, {"C": [3e17, 3e20], "context": 4096})
    assert ends["lr"][0] == pytest.approx(2.46e-3, abs=5e-6)
    assert ends["lr"][0] > 2**-9
    assert ends["B_sequences"] == pytest.approx([39.6, 490.8], abs=0.05)


def test_table_5_at_1e20():
    moe = laws.get("leverage.allocation").evaluate({}, {"C": 1e20})
    assert moe["M"] == pytest.approx(2965983825.217396, rel=1e-5)
    assert moe["D"] == pytest.approx(33723811690.938118, rel=1e-5)
    assert moe["M"] * moe["D"] / 1e20 == pytest.approx(1.0002428, rel=1e-5)
    dense = laws.get("leverage.allocation:dense").evaluate({}, {"C": 1e20})
    assert dense["M"] == pytest.approx(4573422246.705477, rel=1e-5)
    assert dense["D"] == pytest.approx(21852609404.695564, rel=1e-5)
    assert dense["M"] * dense["D"] / 1e20 == pytest.approx(0.9994121, rel=1e-5)


def test_a_mixture_is_the_smaller_model_from_1_77e14_on():
    for budget, smaller in [(1.76e14, False), (1.78e14, True)]:
        moe = laws.get("leverage.allocation").evaluate({}, {"C": budget})
        dense = laws.get("leverage.allocation:dense").evaluate({}, {"C": budget})
        assert bool(moe["M"] < dense["M"]) is smaller


@pytest.mark.parametrize("ref", POWER_LAWS)
def test_each_power_law_is_a_line_in_logarithms_that_least_squares_find(ref):
    law = laws.get(ref)
    family = laws.get(law.id + (":dense" if "dense" in ref else ""))
    values = family.evaluate({}, {"C": C})[law.response.name]
    assert law.predict(law.published, {"C": C}) == pytest.approx(values, rel=1e-12)
    X = law.design({"C": C})
    theta, *_ = np.linalg.lstsq(X, law.on_scale(values), rcond=None)
    estimates = dict(zip(law.names, law.natural(theta), strict=True))
    assert estimates == pytest.approx(law.published, rel=1e-9)
