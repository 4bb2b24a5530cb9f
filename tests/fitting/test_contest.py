"""Contests of laws: on losses whose law is known, and what chance leaves open of a ranking."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from moelaws import laws
from moelaws.fitting.compare import HeldOut, rank
from moelaws.fitting.contest import contest
from moelaws.fitting.cores import using_cores
from moelaws.fitting.intervals import resampled
from moelaws.spec.errors import UserError
from moelaws.spec.fit import Contest


@pytest.fixture(scope="module")
def table():
    """Losses of Chinchilla's law with noise; every model saw the same tokens but one batch."""
    law = laws.get("chinchilla")
    rng = np.random.default_rng(0)
    N = np.repeat(np.geomspace(1e6, 1e9, 8), 4)
    D = np.full(len(N), 1e10)
    D[3] *= 1.004  # one run ended a few steps later
    L = law.predict(law.published, {"N": N, "D": D}) * np.exp(0.003 * rng.standard_normal(len(N)))
    return pd.DataFrame({"N": N, "D": D, "L": L})


def entry(*splits, **changed):
    given = {
        "name": "laws",
        "laws": ["clark.dense", "chinchilla", "sparsity.loss", "wang.loss"],
        "protocol": {"objective": "squared", "sample": 500},
        "bootstrap": 30,
        "splits": [{"name": f"s{i}", "use": "x", **split} for i, split in enumerate(splits)],
    }
    return Contest.model_validate(given | changed)


@pytest.fixture(scope="module")
def judged(table):
    return contest(entry({"largest": "N"}, {"rollout": "N"}, {"holdout": "N > 3e8"}), table)


def test_the_law_behind_the_losses_wins_in_its_reduced_form(judged):
    best, second = judged[0]["laws"]
    assert best["law"] == "chinchilla:reduced"
    assert best["equation"] == "L = A/N^alpha + E"
    assert best["parameters"] == 3
    assert best["rmse"] < 0.02
    assert second["law"] == "clark.dense"
    assert second["rmse_excess_interval"][0] > 0
    assert best["first"] == 1.0
    for split in judged:
        assert set(split["refused"]) == {"sparsity.loss", "wang.loss"}
        assert "no column 'S' for S of sparsity.loss" in split["refused"]["sparsity.loss"]


def test_no_law_passes_the_ceiling_of_its_columns_and_the_mean_of_equal_runs_reaches_it(table):
    """Of two kinds of runs that differ by a constant, a law of N alone explains the means."""
    kind = np.arange(len(table)) % 2
    table = table.assign(kind=kind, L=table["L"] + 0.1 * kind)
    (judged,) = contest(entry({"holdout": "N > 2e8"}, resample_by="N"), table)
    L = table.loc[table["N"] > 2e8].assign(mean=lambda x: x.groupby("N")["L"].transform("mean"))
    error, spread = (((L["L"] - means) ** 2).sum() for means in (L["mean"], L["L"].mean()))
    for law in judged["laws"]:
        assert law["r2"] < law["ceiling"] == pytest.approx(1 - error / spread)


def test_a_split_chooses_a_law_for_runs_that_it_has_not_seen(table):
    rollout = {"rollout": "N", "rows": "N < 3e8"}
    splits = {"holdout": "N >= 3e8", "chosen_by": "s0"}
    given = entry(rollout, splits, beforehand="clark.dense")
    scores = contest(given, table)
    assert scores[0]["laws"][0]["law"] == "chinchilla:reduced"
    with pytest.raises(UserError, match="s0 has rows that s1 judges"):
        contest(entry({"rollout": "N"}, splits), table)
    with pytest.raises(ValueError, match="chosen_by is 's9', no split before it"):
        entry({"rollout": "N"}, {"holdout": "N > 3e8", "chosen_by": "s9"})
    with pytest.raises(ValueError, match="which is none of its laws"):
        entry({"rollout": "N"}, beforehand="joint.loss")


def test_a_split_without_rows_on_both_sides_refuses_every_law(table):
    splits = {"holdout": "N > 1e12"}, {"rollout": "D", "rows": "D == 1e10"}
    none, alike = contest(entry(*splits, laws=["clark.dense", "chinchilla"]), table)
    assert set(none["refused"].values()) == {"holdout 'N > 1e12' selects none of the 32 rows"}
    assert set(alike["refused"].values()) == {"all of its 31 rows have one D"}
    assert none["laws"] == alike["laws"] == []


def test_a_roll_out_goes_down_as_far_as_the_laws_can_be_fitted(judged):
    steps = judged[1]["steps"]
    assert [step["judged"] for step in steps] == [4 * i for i in range(1, len(steps) + 1)]
    # Three parameters take three sizes.
    assert steps[-1]["fitted"] == 12
    assert {law["n"] for law in judged[1]["laws"]} == {sum(step["judged"] for step in steps)}


def test_rows_are_chosen_by_the_tables_columns_and_not_by_what_a_law_calls_so(table):
    """A law that maps N to another column still predicts the rows that the others do."""
    renamed = table.assign(M=3 * table["N"])
    mappings = {"chinchilla": {"N": "M"}}
    for split in ({"holdout": "N > 3e8"}, {"largest": "N"}):
        (judged,) = contest(entry(split, mappings=mappings), renamed)
        columns = {law["law"]: law["columns"]["N"] for law in judged["laws"]}
        assert columns == {"chinchilla:reduced": "M", "clark.dense": "N"}
        assert {law["n"] for law in judged["laws"]} == {judged["steps"][0]["judged"]}


def test_on_two_cores_short_fits_go_a_law_a_core_and_say_the_same(table):
    short = {"protocol": {"objective": "squared", "sample": 20}, "bootstrap": 5}
    laws = {"laws": ["clark.dense", "clark.routing", "chinchilla", "wang.loss"]}
    of_laws, stages, scores = entry({"largest": "N"}, {"rollout": "N"}, **short, **laws), [], []
    for count in (1, 2):
        with using_cores(count):
            scores.append(contest(of_laws, table, progress=lambda *stage: stages.append(stage)))
    assert scores[0] == scores[1]
    assert scores[0][0]["refused"]
    assert ("s0: laws", 2, 2) in stages


def ranked(**laws):
    """The scores of laws, each with its predictions in one round."""
    return rank({name: [law] for name, law in laws.items()}, 0.9, 0)


def predicted(observed, error, rng, spread=0.0, rows=None):
    """A law whose predictions are off by ``error`` (n,), with draws around them."""
    value = observed + error
    rows = np.arange(len(observed)) if rows is None else rows
    drawn = value + spread * rng.standard_normal((400, 1))
    return HeldOut(rows, observed, value, drawn)


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def test_the_law_of_less_error_is_first_beyond_chance(rng):
    observed, noise = rng.uniform(2, 3, 40), rng.standard_normal(40)
    worse, better = (predicted(observed, factor * noise, rng) for factor in (0.05, 0.01))
    worse, better = ranked(worse=worse, better=better).values()
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


def test_what_the_fit_leaves_open_counts_beside_the_rows(rng):
    """The best law by its estimates, whose refits differ by more than the laws do."""
    observed, noise = rng.uniform(2, 3, 40), rng.standard_normal(40)
    wide = predicted(observed, 0.01 * noise, rng, spread=0.05)
    scores = ranked(wide=wide, narrow=predicted(observed, 0.03 * noise, rng))
    assert scores["wide"]["rank"] == 1
    assert scores["wide"]["rank_interval"] == [1, 2]
    assert 0.1 < scores["narrow"]["first"] < 0.9


def test_a_run_that_is_judged_twice_counts_as_one_run(rng):
    """In two rounds the same rows, with the same errors: no more is known than from one round."""
    observed, error = rng.uniform(2, 3, 30), 0.03 * rng.standard_normal(30)
    once = [predicted(observed, error, rng)]
    apart = [*once, predicted(observed, error, rng, rows=np.arange(30, 60))]
    ends = [
        np.ptp(rank({"law": steps}, 0.9, 0)["law"]["rmse_interval"])
        for steps in (once, once * 2, apart)
    ]
    assert ends[1] == pytest.approx(ends[0], rel=1e-12)
    assert ends[2] < 0.9 * ends[0]


def test_rows_of_a_block_say_no_more_than_one_of_them(rng):
    """Errors of a block are the same: 40 rows of 8 blocks tell no more than 8 rows."""
    error = 0.03 * rng.standard_normal(8)
    single = predicted(np.zeros(8), error, rng)
    blocks = np.repeat(np.arange(8.0), 5).astype(object)
    drawn = np.zeros((400, 40)) + np.repeat(error, 5)
    together = HeldOut(np.arange(40), np.zeros(40), np.repeat(error, 5), drawn, blocks)
    laws = single, together, replace(together, blocks=None)
    ends = [ranked(law=law)["law"]["rmse_interval"] for law in laws]
    assert ends[1] == pytest.approx(ends[0], rel=1e-12)
    assert np.ptp(ends[2]) < 0.6 * np.ptp(ends[1])


def test_judged_rows_are_drawn_apart_from_the_rows_that_the_fits_drew(rng):
    """One stream for both would tie which rows a draw was fitted to to those it is judged on."""
    observed = np.zeros(30)
    drawn = resampled(30, None, 200, np.random.default_rng(0))  # as a bootstrap of seed 0 draws
    law = HeldOut(np.arange(30), observed, observed + 1, drawn)
    # Were they one stream, the mean square would be sum(w w^2) / 30 = 5, and it is 2.
    low, high = ranked(law=law)["law"]["rmse_interval"]
    assert low < np.sqrt(2) < high < np.sqrt(4)
