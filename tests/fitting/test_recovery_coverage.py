"""The 90 % intervals of fits hold the truth in 85 to 95 % of tables, binomial error aside."""

import copy
import functools

import pytest
from scipy.stats import binom

from repository import REPOSITORY


@pytest.fixture(scope="module")
def recovery():
    """The benchmark, whose designs and counts these are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY / "benchmarks")
        import recovery

        yield recovery


@pytest.fixture(scope="module")
def trials(recovery):
    """``trials(ref, seeds)``, each trial run once."""
    run = functools.cache(recovery.trial)
    return lambda ref, seeds: [copy.deepcopy(run(ref, seed)) for seed in range(seeds)]


def check(summary):
    """Coverages between 85 and 95 %, but for what so few tables leave to chance."""
    n = summary["seeds"]
    for kind in ("mean", "new"):
        chance = 3 * summary[kind]["se"]
        assert 0.85 - chance <= summary[kind]["coverage"] <= 0.95 + chance, (kind, summary[kind])
    least, most = binom.ppf(0.001, n, 0.85) / n, binom.ppf(0.999, n, 0.95) / n
    tested = {name: p for name, p in summary["parameters"].items() if p["identifiable"]}
    for name, p in tested.items():
        assert least <= p["coverage"] <= most, (name, p)
    return tested


CASES = [
    ("generalization.kappa:log2", 60, {"c0", "c1"}),  # six points: Student's t, exactly
    *(
        pytest.param(ref, seeds, names, marks=pytest.mark.slow)
        for ref, seeds, names in (
            ("generalization.kappa:log2", 400, {"c0", "c1"}),
            ("leverage.hyperparameters:lr", 200, {"coefficient", "exponent"}),
            ("leverage.joint", 60, {"a", "d", "gamma", "beta", "A_start"}),
            ("chinchilla", 100, {"A", "B", "E", "alpha", "beta"}),
            ("sparsity.loss", 15, {"b", "beta", "gamma"}),
        )
    ),
]


@pytest.mark.parametrize(("ref", "seeds", "identifiable"), CASES)
def test_intervals_hold_the_truth(recovery, trials, ref, seeds, identifiable):
    summary = recovery.summary(ref, trials(ref, seeds))
    assert summary["converged"] == 1.0
    assert set(check(summary)) >= identifiable
