"""Fits find what is there: simulated truth by any objective, within their intervals."""

import pytest
from fitting_case import fitted, fitted_group
from scipy.stats import binom

from moelaws import laws
from repository import REPOSITORY


def test_recovers_the_sparsity_law_without_noise(simulated):
    law = laws.fittable("sparsity.loss")
    group = fitted_group(law, simulated(noise=0.0), bootstrap=2, protocol={"sample": 30})
    assert group.converged
    assert group.objective < 1e-18
    assert group.estimates() == pytest.approx(dict(law.published), rel=1e-4)
    # Compute is that of active parameters: 1 - S of all.
    assert group.calibration.powers == {"N": 1.0, "D": 1.0, "S": 1.0}


@pytest.mark.parametrize("objective", ["huber", "squared", "absolute"])
def test_every_objective_finds_the_dense_law(dense, objective):
    law = laws.fittable("chinchilla")
    protocol = {"objective": objective, "sample": 60}
    group = fitted_group(law, dense(noise=1e-4), bootstrap=20, protocol=protocol)
    assert group.converged
    assert group.estimates() == pytest.approx(dict(law.published), rel=0.02)
    assert group.diagnostics.objective == objective
    assert group.diagnostics.starts.reached >= 10


def test_the_surfaces_degrees_are_chosen_in_common(simulated):
    law = laws.fittable("sparsity.isoflop")
    report = fitted(law, simulated(noise=0.001), split_by="C", select=True)
    assert [group.where["C"] for group in report.parts] == [3e19, 1.7e20, 1e21]
    ranked = [entry["name"] for entry in report.selection["ranked"]]
    assert report.law == f"sparsity.isoflop:{ranked[0]}"
    chosen = laws.fittable(report.law)
    assert all(set(group.params) == set(chosen.names) for group in report.parts)
    assert report.selection["candidates"] == 125


CASES = [
    ("generalization.kappa:log2", 60, {"c0", "c1"}),  # six points: Student's t, exactly
    *(
        pytest.param(ref, seeds, names, marks=pytest.mark.slow)
        for ref, seeds, names in (
            ("leverage.joint", 60, {"a", "d", "gamma", "beta", "A_start"}),
            ("chinchilla", 100, {"A", "B", "E", "alpha", "beta"}),
            ("sparsity.loss", 15, {"b", "beta", "gamma"}),
        )
    ),
]


@pytest.mark.parametrize(("ref", "seeds", "identifiable"), CASES)
def test_intervals_hold_the_truth(monkeypatch, ref, seeds, identifiable):
    """Coverages between 85 and 95 %, but for what so few tables leave to chance."""
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    import recovery  # the benchmark, whose designs and counts these are

    summary = recovery.summary(ref, [recovery.trial(ref, seed) for seed in range(seeds)])
    assert summary["converged"] == 1.0
    for kind in ("mean", "new"):
        chance = 3 * summary[kind]["se"]
        assert 0.85 - chance <= summary[kind]["coverage"] <= 0.95 + chance, (kind, summary[kind])
    tested = {name: p for name, p in summary["parameters"].items() if p["identifiable"]}
    assert set(tested) >= identifiable
    lowest, highest = binom.ppf(0.001, seeds, 0.85) / seeds, binom.ppf(0.999, seeds, 0.95) / seeds
    for name, p in tested.items():
        assert lowest <= p["coverage"] <= highest, (name, p)
