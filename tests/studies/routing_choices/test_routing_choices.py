"""The study of gates, balance, top-k and the optimizer: its grids, and what its rules say.

Tables are the grid's runs with losses that a test chooses.
"""

from functools import cache
from math import exp, log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from moelaws.accounting.cost import orthogonalizing_flops
from moelaws.accounting.flops import train_flops_per_token
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Verdict
from moelaws.claims.judge import judged
from moelaws.figures.draw import make
from moelaws.files.layout import Results
from moelaws.grids.expand import architectures, expand
from moelaws.spec.project import load_study
from moelaws.studies.routing_choices import tables
from moelaws.studies.routing_choices.arms import BASE, Arms
from moelaws.studies.routing_choices.derived import effects
from moelaws.tables.describe import describe
from planned_study import TEXT
from repository import REPOSITORY
from study_case import write_documents

STUDY = load_study("routing_choices", REPOSITORY)
SUPPORTED, REFUTED, OPEN = Verdict.SUPPORTED, Verdict.NOT_SUPPORTED, Verdict.CANNOT_TELL
BALANCE, SIGMOID, MUON, ORDER = (claim.name for claim in STUDY.claims)
BETA = 0.12  # of the tables' losses, which fall as C^-BETA
NOISE = 0.003  # of ln L of a run, beside what its block shares
TIERS = ("demo", "workstation")


@cache
def grid(tier):
    return expand(STUDY.grids[tier], TEXT, tier)


@cache
def described(tier):
    return pd.DataFrame([{**describe(run), "C": run.C} for run in grid(tier)])


def table(tier, *, noise=0.0, seed=0, flat=True, **effects):
    """The tier's runs; ``effects`` are of ln L, by the word in a sweep's name.

    Shuffled text teaches nothing after the first budget if it is ``flat``. Rates that were tried
    with the first seed alone are worse.
    """
    frame = described(tier)
    rng = np.random.default_rng(seed)
    shuffled = frame["shuffle"] == "tokens"
    y = 1.4 - BETA * np.log(frame["C"] / 1e11) + noise * rng.standard_normal(len(frame))
    seeds = frame.groupby(["optimizer", "C", "lr"])["seed"].transform("nunique")
    y[frame["sweep"].str.startswith("rates") & (seeds == 1)] += 0.1
    y[shuffled & flat] = 1.65 + (y + BETA * np.log(frame["C"] / 1e11) - 1.4)[shuffled]
    own = {
        "sigmoid": frame["gate"] == "sigmoid",
        "bias": frame["balance"] == "bias",
        "muon": frame["optimizer"] == "muon",
    }
    for name, effect in effects.items():
        y[own[name]] += effect
    blocks = frame.groupby(["C", "k", "seed"]).ngroup()  # what all runs of a block share
    y += (noise > 1e-3) * 0.01 * rng.standard_normal(blocks.max() + 1)[blocks]
    more = {
        "study": "routing_choices",
        "tier": tier,
        "status": "completed",
        "source": "trained",
        "n_seeds": 1,
        "L_seed_sd": np.nan,
    }
    return frame.assign(L=np.exp(y), balance_cv=0.2, balance_entropy=0.98, **more)


def verdict(claim, frame, root="nowhere"):
    (entry,) = (c for c in STUDY.claims if c.name == claim)
    return judged(STUDY, entry, Inputs(frame=frame, results=Results(Path(root))))


@pytest.mark.parametrize("tier", TIERS)
def test_all_arms_of_a_size_have_equal_flops_and_parameters_but_for_routers(tier):
    for _, rows in table(tier).groupby("d_model"):
        assert np.ptp(rows["C_sparsity"] / rows["D"]) == 0
        routers = rows["n_layers"] * rows["d_model"] * rows["E"]
        assert np.ptp(rows["N_total"] - routers) == 0
        assert np.ptp(rows["N_active"] - routers) == 0
        assert set(rows["S"]) == {0.75}
        shares = rows["C_leverage"] / rows["D"]
        assert shares.max() / shares.min() < 1.04
    assert table(tier).eval("abs(C_sparsity / C - 1)").max() < 0.01


@pytest.mark.parametrize("tier", TIERS)
def test_what_differs_is_measured_in_percent_and_as_a_ratio_of_flops(tier):
    frame = table(tier, noise=1e-9, sigmoid=0.02, bias=-0.01, muon=-0.03)
    assert verdict(SIGMOID, frame)["value"] == pytest.approx(2, abs=1e-5)
    assert verdict(BALANCE, frame)["value"] == pytest.approx(-1, abs=1e-5)
    # With ln L falling by BETA for each e-fold of C
    assert verdict(MUON, frame)["value"] == pytest.approx(exp(-0.03 / BETA), rel=1e-5)
    assert verdict(ORDER, frame)["value"] == pytest.approx(0, abs=1e-5)
    assert verdict(ORDER, table(tier, flat=False))["value"] == pytest.approx(1)


def test_optimizers_are_compared_at_the_best_rate_of_each_budget():
    """Rates that are 2 % worse change nothing, whichever of those tried they are."""
    frame = table("workstation", noise=1e-9, muon=-0.03)
    worse = {("adamw", 1e11, 0.016), ("adamw", 1e11, 0.004), ("muon", 1e12, 0.018)}
    rate = frame[["optimizer", "C", "lr"]].apply(tuple, axis=1)
    frame.loc[rate.isin(worse), "L"] *= 1.02
    arms = Arms(Inputs(frame=frame))
    assert arms.changes("muon")[0].to_numpy() == pytest.approx(-3, abs=1e-5)
    assert arms.effect("muon").value == pytest.approx(-3, abs=1e-5)
    assert verdict(MUON, frame)["value"] == pytest.approx(exp(-0.03 / BETA), rel=1e-5)


@pytest.mark.parametrize("tier", TIERS)
def test_muons_own_products_are_those_that_the_estimate_of_time_counts(tier):
    arms = Arms(Inputs(frame=table(tier)))
    best = set(arms.best("muon")["run_id"])
    configs = [run.config for run in grid(tier) if run.run_id in best]
    shares = [
        orthogonalizing_flops(c.model)
        * c.steps
        / (train_flops_per_token(c.model, "sparsity") * c.tokens)
        for c in configs
    ]
    # The estimate takes all matrices to be as long and as wide as an expert's.
    assert arms.own_products() == pytest.approx(np.mean(shares), rel=5e-3)
    # A table that is older than a setting of models has no value of it.
    older = Arms(Inputs(frame=table(tier).assign(parameterization=np.nan)))
    assert older.own_products() == arms.own_products()
    assert "times with its own products" in verdict(MUON, table(tier, noise=NOISE))["measured"]


CASES = [
    ({"noise": 1e-4}, (SUPPORTED, SUPPORTED, OPEN, SUPPORTED)),
    ({"noise": 1e-4, "muon": -0.03}, (SUPPORTED, SUPPORTED, SUPPORTED, SUPPORTED)),
    ({"noise": 1e-4, "bias": 0.02, "sigmoid": 0.02, "muon": 0.03, "flat": False},
     (REFUTED, REFUTED, REFUTED, REFUTED)),
    ({"noise": 0.1, "seed": 2}, (OPEN, OPEN, OPEN, OPEN)),
]  # fmt: skip


@pytest.mark.parametrize(("effects", "expected"), CASES)
def test_a_verdict_follows_the_effect_and_the_noise(effects, expected):
    frame = table("demo", **effects)
    verdicts = [verdict(claim.name, frame)["verdict"] for claim in STUDY.claims]
    # At equal losses an interval of 90 % may lie on one side of no difference.
    left = [i for i, decision in enumerate(expected) if decision != OPEN or effects["noise"] > 0.01]
    assert [verdicts[i] for i in left] == [expected[i] for i in left]


@pytest.mark.parametrize("missing", ["muon", "sigmoid", "bias", "shuffled", BASE])
def test_a_missing_arm_leaves_its_claim_open(missing):
    frame = table("demo", noise=NOISE)
    frame = frame[~frame["sweep"].str.contains(missing)]
    claims = {"muon": MUON, "sigmoid": SIGMOID, "bias": BALANCE, "shuffled": ORDER, BASE: MUON}
    assert verdict(claims[missing], frame)["verdict"] == OPEN


def test_errors_of_one_block_do_not_count_as_several():
    """Sigmoids err alike with and without a balance loss, so these pairs are no repetitions."""
    frame = table("workstation", noise=NOISE)
    block = frame.groupby(["C", "k", "seed"]).ngroup()
    common = np.random.default_rng(1).normal(0, 0.01, block.max() + 1)[block]
    frame["L"] *= np.where(frame["gate"] == "sigmoid", np.exp(common), 1)
    effect = Arms(Inputs(frame=frame)).effect("sigmoid")
    assert effect.n == 6
    assert effect.high - effect.low > 0.6  # percent


def test_the_error_by_documents_widens_the_interval(tmp_path):
    frame = table("demo", noise=NOISE)
    before = verdict(SIGMOID, frame)
    write_documents(Results(tmp_path), frame, 40, 0)
    after = verdict(SIGMOID, frame, tmp_path)
    assert after["value"] == before["value"]
    documents = float(after["measured"].split()[-1])
    reach = (after["high"] - after["low"]) / 2
    assert reach**2 == pytest.approx(
        ((before["high"] - before["low"]) / 2) ** 2 + (1.645 * documents) ** 2, rel=0.05
    )


@pytest.fixture
def timed(tmp_path):
    """The demo, where a step of Muon takes 1.2 times as long as one of AdamW."""
    frame = table("demo", noise=1e-6, muon=-0.03)
    frame["tokens_per_second"] = 1.0
    by_id = frame.set_index("run_id")
    rows = []
    for run in architectures(grid("demo")):
        q = 1.2 if by_id.loc[run.run_id, "optimizer"] == "muon" else 1.0
        times = {f"time_ratio{end}": q for end in ("", "_low", "_high")}
        rows.append({"run_id": run.run_id, **times})
    speed = tmp_path / "speed.parquet"
    pd.DataFrame(rows).to_parquet(speed)
    return Inputs(frame=frame, speed_file=speed)


def test_at_equal_time_a_slower_step_costs_what_the_steps_left_out_would_have_gained(timed):
    rows = effects.derive(timed).set_index("choice")
    assert rows.loc["muon", "ratio"] == pytest.approx(1.2)
    assert rows.loc["muon", "time"] == pytest.approx(-3 + 100 * BETA * log(1.2), abs=1e-3)
    assert rows.loc["sigmoid", "time"] == pytest.approx(0, abs=1e-3)
    assert {"top4", "bias"} <= set(rows.index)
    assert np.isnan(rows.loc["top4", "tokens_low"])  # its seed is not that of the base


def test_figures_and_tables_show_every_arm(timed):
    inputs = Inputs(frame=timed.table)
    drawn = make(STUDY, "effects", inputs)
    assert len(drawn.data.query("panel == 'a'")) == 3
    assert len(drawn.data.query("panel == 'b'")) == 8
    series = set(make(STUDY, "compute", inputs).data["series"])
    assert {"AdamW, runs", "Muon, runs", "Muon, rates tried", "AdamW, shuffled text"} <= series
    assert len(tables.arms(inputs).frame) == 15  # both optimizers have their best rates beside
