"""The least loss of a search of rates and batches is found by a few of its runs."""

import numpy as np
import pytest

from moelaws.analysis.choice.search import search

RATES, BATCHES = np.meshgrid(np.geomspace(1e-4, 1e-1, 13), 2.0 ** np.arange(3, 12))
SETTINGS = np.column_stack([RATES.ravel(), BATCHES.ravel()])
PLACES = np.stack(np.meshgrid(np.linspace(-1, 1, 13), np.linspace(-1, 1, 9)), -1).reshape(-1, 2)


def losses(best, seed=0, noise=0.001):
    """A valley of rate and batch about ``best``; rates far above it diverge."""
    u, v = (np.log(SETTINGS) - np.log(best)).T
    L = 3 + 0.05 * (u - 0.4 * v) ** 2 + 0.02 * v**2
    return np.where(u > 3, np.nan, L) + np.random.default_rng(seed).normal(0, noise, len(u))


def found(L, most, workers=1, groups=None, budget=np.inf):
    """The losses known, after rounds of ``workers`` runs each, with at most ``most`` runs."""
    groups = np.zeros(len(L)) if groups is None else groups
    places = np.tile(PLACES, (len(L) // len(PLACES), 1))
    known, free = np.full(len(L), np.nan), np.ones(len(L), bool)
    while plan := search(places, groups, known, free, np.ones(len(L)), budget, 0.003)[:workers]:
        for one in plan[: most - int(np.sum(~free))]:
            free[one.run], known[one.run] = False, L[one.run]
        if np.sum(~free) >= most:
            break
    return known, free


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("best", [(3e-3, 64), (3e-4, 20), (2e-2, 1000)])
def test_a_tenth_of_a_grid_comes_near_its_least_loss(best, workers):
    off = []
    for seed in range(5):
        L = losses(best, seed)
        known, free = found(L, round(0.12 * len(L)), workers)
        assert np.sum(~free) <= round(0.12 * len(L))
        off.append(np.nanmin(known) - np.nanmin(L))
    assert np.mean(off) < 0.01


def test_it_ends_where_nothing_is_left_to_gain_and_where_all_losses_are_one():
    known, free = found(losses((3e-3, 64)), len(SETTINGS))
    assert np.sum(~free) < len(SETTINGS) / 3
    assert np.nanmin(known) < 3.01
    flat = np.full(len(SETTINGS), 3.0)
    assert np.sum(~found(flat, len(SETTINGS))[1]) < 10


def test_each_search_has_its_first_runs_before_any_has_more_and_the_budget_is_kept():
    L = np.concatenate([losses((3e-3, 64)), losses((1e-3, 32))])
    groups = np.repeat([0, 1], len(SETTINGS))
    places = np.tile(PLACES, (2, 1))
    nothing, ones = np.full(len(L), np.nan), np.ones(len(L))
    plan = search(places, groups, nothing, ones > 0, ones, np.inf, 0.003)
    assert sorted(groups[[one.run for one in plan]]) == [0, 0, 0, 1, 1, 1]
    assert len(search(places, groups, nothing, ones > 0, ones, 4.5, 0.003)) == 4
    known, free = found(L, 20, groups=groups)
    for group in (0, 1):
        assert np.nanmin(known[groups == group]) < 3.05
        assert 5 <= np.sum(~free[groups == group]) <= 15


def test_where_all_known_runs_failed_it_goes_to_the_lowest_rate():
    L = losses((1e-4, 64))
    failed = np.argsort(-SETTINGS[:, 0])[:3]
    free = np.ones(len(L), bool)
    free[failed] = False
    (one, *_) = search(PLACES, np.zeros(len(L)), np.nan * L, free, np.ones(len(L)), 1.0, 0.003)
    assert SETTINGS[one.run, 0] == SETTINGS[:, 0].min()
