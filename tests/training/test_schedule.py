"""The shapes of the learning-rate schedules."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moelaws.spec.run import Schedule
from moelaws.training.schedule import rate

SCHEDULES = st.builds(
    Schedule,
    kind=st.sampled_from(["cosine", "wsd"]),
    warmup=st.floats(0, 1),
    decay=st.floats(0, 1),
    final=st.floats(0.01, 1),
)


@given(SCHEDULES, st.integers(1, 300))
def test_never_above_the_peak_never_zero_rising_then_falling(schedule, steps):
    rates = [rate(schedule, t, steps) for t in range(steps)]
    assert all(0 < r <= 1 + 1e-12 for r in rates)
    peak = rates.index(max(rates))
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(rates[: peak + 1]))
    assert all(a >= b - 1e-12 for a, b in zip(rates[peak:], rates[peak + 1 :], strict=False))


def test_cosine_halfway_and_end():
    schedule = Schedule(warmup=0.0, final=0.1)
    assert rate(schedule, 49, 100) == pytest.approx(0.55)
    assert rate(schedule, 99, 100) == pytest.approx(0.1)


def test_wsd_is_constant_then_falls_by_equal_ratios():
    """The leverage paper: exponential decay to a tenth."""
    schedule = Schedule(kind="wsd", warmup=0.1, decay=0.2, final=0.1)
    rates = [rate(schedule, t, 50) for t in range(50)]
    assert rates[5:40] == [1.0] * 35
    ratios = [b / a for a, b in itertools.pairwise(rates[39:])]
    assert ratios == pytest.approx([0.1**0.1] * 10)
    assert rates[-1] == pytest.approx(0.1)


def test_with_a_warm_up_in_steps_lengths_agree_until_the_shorter_one_decays():
    schedule = Schedule(kind="wsd", warmup_steps=7, decay=0.2)
    for steps in (8, 20, 50, 99):
        ours, theirs = ([rate(schedule, t, n) for t in range(n)] for n in (steps, 100))
        shared = steps - schedule.decaying(steps)
        assert ours[:shared] == theirs[:shared]
        assert ours[shared] < theirs[shared]
    assert [rate(schedule, t, 5) for t in range(5)] == [(t + 1) / 7 for t in range(5)]
