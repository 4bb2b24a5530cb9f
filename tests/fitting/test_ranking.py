"""The ranking of laws by their errors, and what chance leaves open of it."""

from dataclasses import replace

import numpy as np
import pytest

from moelaws.fitting.intervals import resampled
from moelaws.fitting.ranking import HeldOut, rank


def judged(observed, error, rng=None, draws=400, spread=0.0, rows=None):
    """A law whose predictions are off by ``error`` (n,), with draws around them."""
    predicted = observed + error
    rows = np.arange(len(observed)) if rows is None else rows
    if rng is None:
        return HeldOut(rows, observed, predicted, None)
    drawn = predicted + spread * rng.standard_normal((draws, 1))
    return HeldOut(rows, observed, predicted, drawn)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def test_the_law_of_less_error_is_first_beyond_chance(rng):
    observed, noise = rng.uniform(2, 3, 40), rng.standard_normal(40)
    found = rank(
        {
            "worse": [judged(observed, 0.05 * noise, rng)],
            "better": [judged(observed, 0.01 * noise, rng)],
        },
        0.9,
        0,
    )
    better, worse = found["better"], found["worse"]
    assert (better["rank"], worse["rank"]) == (1, 2)
    assert better["rank_interval"] == [1, 1]
    assert (better["first"], worse["first"]) == (1.0, 0.0)
    assert worse["rmse"] == pytest.approx(0.05 * np.sqrt((noise**2).mean()))
    assert better["rmse_excess"] == 0
    assert worse["rmse_excess_interval"][0] > 0
    assert worse["told_apart"] is True
    assert "told_apart" not in better
    assert better["r2"] == pytest.approx(
        1 - (0.01 * noise @ (0.01 * noise)) / (40 * observed.var())
    )


def test_laws_that_differ_by_chance_share_the_first_place(rng):
    observed = rng.uniform(2, 3, 30)
    laws = {name: [judged(observed, 0.02 * rng.standard_normal(30), rng)] for name in "ab"}
    found = rank(laws, 0.9, 0)
    for law in found.values():
        assert law["rank_interval"] == [1, 2]
        assert 0.02 < law["first"] < 0.98
    assert sum(law["first"] for law in found.values()) == pytest.approx(1.0)
    second = max(found.values(), key=lambda law: law["rank"])
    low, high = second["rmse_excess_interval"]
    assert low < 0 < high
    assert second["told_apart"] is False


def test_the_interval_of_an_error_covers_it_as_often_as_it_says(rng):
    """Normal errors of known spread: the resampled rows alone, no draws' spread."""
    inside = 0
    for seed in range(200):
        observed = np.zeros(60)
        law = judged(observed, 0.03 * rng.standard_normal(60), rng, draws=300)
        low, high = rank({"law": [law]}, 0.9, seed)["law"]["rmse_interval"]
        inside += low < 0.03 < high
    assert inside > 165  # of 180; three standard errors of 200 trials, and resampling's own


def test_the_rows_of_all_steps_count(rng):
    steps = [
        judged(np.full(n, 2.0), np.full(n, error), rng, rows=np.arange(n) + 100 * n)
        for n, error in ((10, 0.1), (30, 0.2))
    ]
    found = rank({"law": steps}, 0.9, 0)["law"]
    assert found["n"] == 40
    assert found["rmse"] == pytest.approx(np.sqrt((10 * 0.01 + 30 * 0.04) / 40))
    assert found["r2"] is None


def test_what_the_fit_leaves_open_counts_beside_the_rows(rng):
    """The best law by its estimates, whose refits differ by more than the laws do."""
    observed, noise = rng.uniform(2, 3, 40), rng.standard_normal(40)
    found = rank(
        {
            "open": [judged(observed, 0.01 * noise, rng, spread=0.05)],
            "held": [judged(observed, 0.03 * noise, rng)],
        },
        0.9,
        0,
    )
    assert found["open"]["rank"] == 1
    assert found["open"]["rank_interval"] == [1, 2]
    assert 0.1 < found["held"]["first"] < 0.9


def test_a_run_that_is_judged_twice_counts_as_one_run(rng):
    """In two rounds the same rows, with the same errors: no more is known than from one round."""
    observed, error = rng.uniform(2, 3, 30), 0.03 * rng.standard_normal(30)
    once = [judged(observed, error, rng)]
    apart = [*once, judged(observed, error, rng, rows=np.arange(30, 60))]
    ends = [
        np.ptp(rank({"law": steps}, 0.9, 0)["law"]["rmse_interval"])
        for steps in (once, once * 2, apart)
    ]
    assert ends[1] == pytest.approx(ends[0], rel=1e-12)
    assert ends[2] < 0.9 * ends[0]


def test_rows_that_err_together_are_drawn_together(rng):
    """Errors of a block are the same: 40 rows of 8 blocks tell no more than 8 rows."""
    error = 0.03 * rng.standard_normal(8)
    single = judged(np.zeros(8), error, rng)
    blocks = np.repeat(np.arange(8.0), 5).astype(object)
    drawn = np.zeros((400, 40)) + np.repeat(error, 5)
    together = HeldOut(np.arange(40), np.zeros(40), np.repeat(error, 5), drawn, blocks)
    ends = [
        rank({"law": [law]}, 0.9, 0)["law"]["rmse_interval"]
        for law in (single, together, replace(together, blocks=None))
    ]
    assert ends[1] == pytest.approx(ends[0], rel=1e-12)
    assert np.ptp(ends[2]) < 0.6 * np.ptp(ends[1])


def test_rows_of_one_block_are_drawn_one_by_one(rng):
    law = judged(np.zeros(20), 0.03 * rng.standard_normal(20), rng)
    same = replace(law, blocks=np.full(20, "a", dtype=object))
    assert rank({"law": [same]}, 0.9, 0) == rank({"law": [law]}, 0.9, 0)


def test_a_draw_that_overflows_is_the_worst(rng):
    observed = rng.uniform(2, 3, 20)
    drawn = np.tile(observed, (40, 1))
    drawn[:10] = np.inf
    wild = HeldOut(np.arange(20), observed, observed, drawn)
    found = rank({"wild": [wild], "tame": [judged(observed, 0.1, rng, draws=40)]}, 0.9, 0)
    assert found["wild"]["rmse_interval"] == [0.0, None]
    assert found["wild"]["rank_interval"] == [1, 2]
    assert found["wild"]["first"] == 0.75
    # A quarter of the best law's draws are infinitely worse than the rival: the laws are not told
    # apart, though the end below is infinite.
    low, high = found["tame"]["rmse_excess_interval"]
    assert low is None
    assert high == pytest.approx(0.1)
    assert found["tame"]["told_apart"] is False


def test_judged_rows_are_drawn_apart_from_the_rows_that_the_fits_drew(rng):
    """One stream for both would tie which rows a draw was fitted to to those it is judged on."""
    observed = np.zeros(30)
    drawn = resampled(30, None, 200, np.random.default_rng(0))  # as a bootstrap of seed 0 draws
    law = HeldOut(np.arange(30), observed, observed + 1, drawn)
    # Were they one stream, the mean square would be sum(w w^2) / 30 = 5, and it is 2.
    low, high = rank({"law": [law]}, 0.9, 0)["law"]["rmse_interval"]
    assert low < np.sqrt(2) < high < np.sqrt(4)


def test_a_law_without_draws_has_a_rank_and_no_interval(rng):
    observed = rng.uniform(2, 3, 20)
    found = rank({"bare": [judged(observed, 0.01)], "drawn": [judged(observed, 0.1, rng)]}, 0.9, 0)
    assert found["bare"]["rank"] == 1
    assert not {"rmse_interval", "rank_interval", "first"} & set(found["bare"])
    assert "rmse_excess_interval" not in found["drawn"]
    assert found["drawn"]["rank_interval"] == [1, 1]
