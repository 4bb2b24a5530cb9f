"""r* of each budget and sparsity: as measured, by rule B.3, by a parabola."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from allocation_case import Setting, simulate
from moelaws.analysis.inputs import Inputs
from moelaws.studies.allocation.derived.r_star import (
    AT_HIGH_END,
    AT_LOW_END,
    TOO_FEW,
    adjust,
    cells_of,
    derive,
    pooled_noise,
)


def chosen(r, L):
    """What the rule takes in a single draw."""
    return [int(i[0]) for i in adjust(r, [x[None] for x in L])]


def ratios(runs):
    return derive(Inputs(frame=runs))


@cache
def swept():
    return simulate(Setting(budgets=(1e20,), experts=(64,)))


def valley(r_star, C=1e20, noise=0.0, seed=0):
    """Seven ratios of one budget and sparsity, with a parabola in ln r."""
    rows = swept().assign(C=C)
    u = np.log(rows["r"] / r_star)
    return rows.assign(L=3 + 0.04 * u**2 + np.random.default_rng(seed).normal(0, noise, len(u)))


def test_an_r_that_falls_is_replaced_by_the_best_that_does_not_within_a_thousandth():
    """Allocation, B.3."""
    r = [np.array([0.4, 0.8, 1.2])] * 2
    rising = [np.array([3.0, 2.9, 3.1]), np.array([2.7000, 2.7009, 2.9])]
    assert chosen(r, rising) == [1, 1]
    costly = [np.array([3.0, 2.9, 3.1]), np.array([2.7000, 2.7011, 2.9])]
    assert chosen(r, costly) == [1, 0]
    # It compares with the adjusted r of the budget before
    L = [np.array([3.0, 3.0, 2.9]), np.array([2.8, 2.8, 2.8005]), np.array([2.7004, 2.7, 2.7003])]
    assert chosen([r[0]] * 3, L) == [2, 2, 2]


def test_without_noise_the_parabola_is_exact_and_the_raw_r_the_nearest_ratio():
    (row,) = ratios(valley(0.7)).to_dict("records")
    assert row["r_parabola"] == pytest.approx(0.7, rel=1e-6)
    assert row["r_raw"] == 0.65
    assert (row["raw_low"], row["raw_high"]) == (0.65, 0.65)
    assert (row["note"], row["parabola_note"]) == ("", "")
    assert row["S"] == pytest.approx(62 / 65)  # E = 64 + 1 of which 3 are active
    assert row["E"] == 65


@pytest.mark.parametrize(("r_star", "note"), [(0.05, AT_LOW_END), (9.0, AT_HIGH_END)])
def test_an_optimum_beyond_the_ratios_is_a_bound(r_star, note):
    frame = ratios(valley(r_star))
    assert frame["note"].item() == note
    assert frame["parabola_note"].item() != ""
    assert derive.warnings(frame) == [
        f"C=1e+20, S=0.9538: r* = {frame['r_raw'].item():.3g} is {note}"
    ]


def test_two_ratios_have_a_least_and_no_parabola():
    frame = ratios(valley(0.7).iloc[:2])
    assert frame["note"].item() == TOO_FEW
    assert frame[["r_parabola", "raw_low", "noise"]].isna().all(axis=None)
    assert frame["r_raw"].item() == 0.3


def test_seeds_are_averaged_before_the_least_is_taken():
    one, other = valley(0.7), valley(0.7)
    lucky = one["r"] == 0.2
    one.loc[lucky, "L"] -= 0.2  # a single seed far below, its twin far above
    other.loc[lucky, "L"] += 0.2
    assert ratios(pd.concat([one, other], ignore_index=True))["r_raw"].item() == 0.65


def test_noise_is_the_spread_about_the_parabolas():
    runs = pd.concat([valley(0.7, C, 0.01, seed) for seed, C in enumerate(np.geomspace(1, 9, 60))])
    assert pooled_noise(cells_of(runs)) == pytest.approx(0.01, rel=0.1)


def test_intervals_of_the_raw_r_hold_the_best_ratio_as_often_as_they_say():
    covered = 0
    for seed in range(100):
        row = ratios(valley(0.65, noise=0.006, seed=seed)).iloc[0]
        covered += row["raw_low"] <= 0.65 <= row["raw_high"]
    assert covered / 100 >= 0.85
