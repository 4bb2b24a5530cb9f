"""What the claims on trends say of tables in which the effect is not there.

The tables have the runs of the tier workstation and the noise of its seeds, 0.019 nats. Their
losses follow laws that are not those of the nulls that the rules compute.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.analysis.fitted import FittedInputs
from moelaws.claims.base import Verdict, verdict
from moelaws.fitting.fit import fit
from moelaws.fitting.quantiles import least_squares
from moelaws.fitting.report import write_fit
from moelaws.spec.project import load_study
from moelaws.spec.references import resolve
from moelaws.studies.sparsity.derived.surface import Surface
from moelaws.studies.sparsity.derived.trends import beside_nulls, derive
from repository import REPOSITORY

RUNS = pd.read_parquet(REPOSITORY / "docs/evidence/sparsity.parquet")
NOISE = 0.019  # nats, between seeds
STUDY = load_study("sparsity", REPOSITORY).at_tier("workstation")
TRENDS = [claim for claim in STUDY.claims if claim.derived == ("trends",)]
ARITHMETIC = {
    "total_size_rises_with_sparsity", "sparsity_rises_with_size", "sparsity_falls_with_budget",
}  # fmt: skip
FLOPS = (RUNS["C_sparsity"] / RUNS["D"]).to_numpy(float)  # a token


def chinchilla():
    """Losses by the least-squares fit of a law of FLOPs per token and tokens to the runs."""
    size, data = FLOPS / 6e5, RUNS["D"].to_numpy(float) / 3e6
    return 1.769 + 0.5455 * size**-0.712 + 0.6117 * data**-0.497


def one_best_size():
    """Losses by parabolas with the runs' curvature and one vertex at all budgets."""
    level = RUNS["C"].map({1e12: 3.1, 3e12: 2.7, 1e13: 2.4}).to_numpy(float)
    return level + 0.2 * np.log(FLOPS / 9.5e5) ** 2


def published():
    """Losses by the published Eq 6 of 6,000 times the sizes and tokens."""
    law, large = laws.get("sparsity.loss"), 6e3
    columns = {"N": large * RUNS["N_total"], "D": large * RUNS["D"], "S": RUNS["S"]}
    return law.predict(law.published, columns)


def fitted(L, size, seed):
    law = laws.get("sparsity.isoflop")
    for C, rows in RUNS.assign(L=L).groupby("C"):
        X = law.design({"N": rows[size].to_numpy(float), "S": rows["S"].to_numpy(float)})
        scale = np.linalg.norm(X, axis=0)
        known = least_squares(X / scale, rows["L"].to_numpy(), draws=300, seed=seed)
        drawn = pd.DataFrame(known / scale, columns=list(law.names))
        yield Surface(law, C, size, drawn.iloc[0].to_dict(), drawn[1:], 0.9, rows)
        seed += 1


def slopes(L, seed=0):
    """The table ``trends`` of the workstation's runs with losses ``L``."""
    total, active = (list(fitted(L, size, seed)) for size in ("N_total", "N_active"))
    return derive.frame(beside_nulls(total, active, 0.9))


def verdicts(table):
    inputs = SimpleNamespace(derived=lambda name: table)
    for claim in TRENDS:
        yield claim.name, decided(claim, inputs)


def decided(claim, inputs):
    evidence = resolve(STUDY.home, claim.code)(inputs, **claim.arguments)
    return verdict(evidence.intervals, claim.expect.above, claim.expect.below)


def supported(law, tables):
    """How many of the ``tables`` support each claim."""
    count = dict.fromkeys((claim.name for claim in TRENDS), 0)
    for seed in range(tables):
        noise = np.random.default_rng(seed).normal(0, NOISE, len(RUNS))
        for name, decision in verdicts(slopes(law() + noise, 10 * seed)):
            count[name] += decision == Verdict.SUPPORTED
    return count


def test_the_nulls_slopes_are_those_of_a_law_without_sparsity():
    """Total size, best sparsity over size and over budget move by arithmetic alone."""
    mean = slopes(chinchilla()).query("at == 'mean'").set_index("trend")
    for trend, slope in (("N_over_S", 0.87), ("S_over_N", 1.17), ("S_over_C", -0.55)):
        assert mean.loc[trend, "slope"] == pytest.approx(slope, abs=0.04)
        assert mean.loc[trend, "null"] == pytest.approx(mean.loc[trend, "slope"], abs=0.02)


def test_what_the_real_runs_show_beyond_their_null():
    mean = slopes(RUNS["L"].to_numpy(float)).query("at == 'mean'").set_index("trend")
    for trend, slope, null in (("N_over_S", 0.69, 0.88), ("N_active_over_S", -0.14, 0.014)):
        assert mean.loc[trend, "slope"] == pytest.approx(slope, abs=0.01)
        assert mean.loc[trend, "null"] == pytest.approx(null, abs=0.01)
    assert mean.loc["N_over_S", "beyond_high"] < 0  # the best total size rises by less than that


@pytest.mark.slow
def test_where_sparsity_does_nothing_no_claim_on_it_is_supported():
    count = supported(chinchilla, 100)
    for name in set(count) - {"active_size_rises_with_budget"}:  # which needs no sparsity
        assert count[name] <= 10, count


@pytest.mark.slow
def test_where_one_size_is_best_at_all_budgets_it_seldom_rises():
    assert supported(one_best_size, 100)["active_size_rises_with_budget"] <= 10


@pytest.mark.slow
def test_the_published_law_is_told_from_its_null():
    count = supported(published, 100)
    assert count["loss_falls_with_sparsity"] >= 80
    assert all(count[name] <= 10 for name in ARITHMETIC)  # weaker than the null's


def more_by_chinchilla(L, folder):
    """The verdict on Eq 6, both laws fitted from a few starts to the runs with losses ``L``."""
    frame, fits = RUNS.assign(L=L), {}
    for name in ("loss", "chinchilla"):
        entry = STUDY.fit(name)
        spec = entry.model_copy(update={"bootstrap": 1, "protocol": {"sample": 10}})
        fits[name] = folder / f"{name}.json"
        write_fit(fit(laws.fittable(spec.law), frame, spec), fits[name])
    claim = STUDY.entry("claims", "eq_6_predicts_the_sparsest")
    return decided(claim, FittedInputs(frame=frame, fits=fits))


@pytest.mark.slow
def test_eq_6_predicts_no_better_where_sparsity_does_nothing(tmp_path):
    count = 0
    for seed in range(10):
        noise = np.random.default_rng(seed).normal(0, NOISE, len(RUNS))
        count += more_by_chinchilla(chinchilla() + noise, tmp_path) == Verdict.SUPPORTED
    assert count <= 1
