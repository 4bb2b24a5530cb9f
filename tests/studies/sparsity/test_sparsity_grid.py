"""The paper's own grid, staged: its counts, its hold-out, one run of each model, and the search."""

from dataclasses import replace

import pandas as pd
import pytest

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.pinning import best_rates
from moelaws.grids.expand import expand
from moelaws.grids.text import CorpusChoice
from moelaws.spec.base import parse
from moelaws.spec.corpus import Text
from moelaws.spec.errors import UserError
from moelaws.spec.hyperparameters import Choice
from moelaws.spec.project import load_study
from moelaws.spec.rows import select
from moelaws.spec.study import Study
from moelaws.studies.sparsity.laws.loss import implied_rows
from moelaws.studies.sparsity.tables import PUBLISHED_ERRORS
from moelaws.tables.describe import describe
from moelaws.workflow.check import check_study
from repository import REPOSITORY

STUDY = load_study("sparsity", REPOSITORY)
SEARCH = load_study("sparsity_search", REPOSITORY)
TEXT = CorpusChoice(source=Text(digest="0" * 64), validation=0.05)


def expanded(study, choice=None, tier="paper"):
    runs = expand(study.grids[tier], TEXT, tier, 0, choice or Choice())
    return pd.DataFrame([{**describe(run), "C": run.C, "run": run} for run in runs])


@pytest.fixture(scope="module")
def grid():
    return expanded(STUDY)


@pytest.fixture(scope="module")
def search():
    return expanded(SEARCH)


def test_the_paper_tier_has_the_numbers_of_runs_that_the_papers_errors_imply(grid):
    """196 fitted and 18 held-out rows, by Huber's sum and the MSE of Appendix F (E2.3)."""
    fitted, held = (
        float(implied_rows(PUBLISHED_ERRORS[rows]["huber_sum"], PUBLISHED_ERRORS[rows]["mse"]))
        for rows in ("fitted", "held out")
    )
    assert (round(fitted), round(held)) == (196, 18)
    own = grid["S"].round(9) == 0.98
    assert (~own).sum() == pytest.approx(fitted, rel=0.02)
    assert own.sum() == round(held)


def test_its_budgets_and_sparsities_are_table_1s_and_each_model_has_one_run(grid):
    assert sorted(grid["C"].unique()) == [3e19, 6e19, 1e20, 3e20, 1e21]
    assert sorted(grid["S"].round(9).unique()) == [0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98]
    assert not grid.duplicated(["C", "S", "N_total"]).any()
    assert not grid.duplicated(["C", "S", "n_layers", "d_model"]).any()
    sizes = grid.groupby(["C", "S"]).size()
    assert sizes.min() >= 3  # a parabola over size needs as many
    assert set(grid["batch_tokens"]) == {1024 * 2048}


def test_it_holds_out_98_percent_alone_and_smaller_tiers_their_own(grid):
    columns = {name: grid[name].to_numpy() for name in ("C", "S")}
    for name in ("loss", "chinchilla", "wang"):
        fit = STUDY.at_tier("paper").fit(name)
        held = select(columns, fit.holdout)
        assert set(grid["S"][held].round(9)) == {0.98}
        assert held.sum() == 18
        for tier in ("demo", "workstation", "gpu", "node"):
            own = STUDY.at_tier(tier).fit(name)
            assert (own.holdout, own.tiers) == ("S >= 0.93", {})
    check_study(STUDY)


@pytest.mark.parametrize(
    ("tiers", "said"),
    [
        ({"papers": {"holdout": "S > 0.9"}}, "tiers.papers"),
        ({"demo": {"holdouts": "S > 0.9"}}, "tiers.demo: unknown key holdouts"),
        ({"demo": {"bootstrap": 0}}, "tiers.demo: bootstrap"),
    ],
)
def test_what_a_fit_cannot_have_at_a_tier_is_refused(tiers, said):
    fit = {"name": "loss", "law": "sparsity.loss", "mapping": {}, "tiers": tiers}
    with pytest.raises(UserError, match=said):
        check_study(parse(Study, {"study": "mine", "title": "Mine", "fits": [fit]}, "mine.yaml"))


def trained(search, best):
    """The search's table as trained, the loss least at the rate ``best`` of each row."""
    off = (search["lr"] / [best(row) for row in search.itertuples()]).map(lambda x: abs(x - 1))
    return search.drop(columns="run").assign(L=3 + off, status="completed", source="trained")


def larger_is_slower(row):
    return 3e-3 if row.d_model < 1000 else 2e-3 if row.C < 1e21 else 1e-3


def test_the_search_tries_three_rates_at_each_size_and_budget_and_the_rest_of_table_1(grid, search):
    rates = search[search["sweep"] == "rates"]
    tried = rates.groupby(["C", "n_layers", "d_model"])["lr"].agg(sorted)
    assert set(map(tuple, tried)) == {(1e-3, 2e-3, 3e-3)}
    assert set(tried.index) == set(grid.groupby(["C", "n_layers", "d_model"]).groups)
    others = search[search["sweep"] == "settings"]
    assert len(others) == 2 * 2 * 3  # granularity, load balance, warm-up
    assert set(others["load_balance"]) == {0.02, 0.05}
    assert set(others["warmup"]) == {0.02, 0.05, 0.1}
    assert set(others["G"]) == {0.5, 1}


def test_the_grid_takes_the_pinned_rates_and_the_search_has_trained_its_own_runs(grid, search):
    frame = trained(search, larger_is_slower)
    rates = best_rates(Inputs(frame=frame), ["C", "d_model"])
    pinned = expanded(STUDY, Choice(rates={"sparsity_search": rates}))
    assert len(pinned) == len(grid)
    assert (pinned["lr"] == [larger_is_slower(row) for row in pinned.itertuples()]).all()
    # One run in three of the search is the grid's own at its sparsity: it trains once.
    common = set(pinned["run_id"]) & set(search["run_id"])
    assert len(common) == (pinned["S"] == 0.75).sum() == 33
    # In a table that holds search and grid, the surfaces see one run of each model.
    assert set(expanded(STUDY, Choice("published", rates={"sparsity_search": rates}))["lr"]) == set(
        grid["lr"]
    )


def test_at_the_workstation_each_sparsity_of_the_grid_is_searched_at_its_settings():
    search, grid = (expanded(study, tier="workstation") for study in (SEARCH, STUDY))
    pairs = [set(zip(frame["C"], frame["S"], strict=True)) for frame in (search, grid)]
    assert pairs[0] == pairs[1]
    settings = ["n_layers", "n_heads", "k", "G", "context", "batch_tokens", "vocab_size"]
    pd.testing.assert_frame_equal(
        *(frame.groupby("C")[settings].agg(["min", "max"]) for frame in (search, grid))
    )


def test_a_rate_that_diverged_at_a_sparsity_is_not_best(search):
    frame = trained(search, larger_is_slower)
    sparser = frame.assign(S=0.95, L=frame["L"] + 0.1)
    sparser.loc[(sparser["lr"] == 3e-3) & (sparser["d_model"] == 384), "status"] = "diverged"
    rates = best_rates(Inputs(frame=pd.concat([frame, sparser])), ["C", "d_model"])
    chosen = {(C, d): lr for C, d, lr in rates.lr.rows}
    assert chosen[3e19, 384] == 2e-3
    assert chosen[3e19, 512] == 3e-3


def test_runs_of_one_recipe_differ_in_what_follows_from_sparsity_alone(grid):
    """Contrasts pair by recipe: load balance and warm-up are settings like any other."""
    for _, runs in grid.groupby(["C", "d_model"]):
        assert runs["recipe"].nunique() == 1
    assert grid.groupby(["n_layers", "d_model", "lr"])["recipe"].nunique().max() == 1
    run = grid["run"].iloc[0]
    config = run.config
    others = [
        config.model_copy(update={"schedule": config.schedule.model_copy(update={"warmup": 0.1})}),
        config.model_copy(update={"optimizer": config.optimizer.model_copy(update={"beta2": 0.9})}),
        config.model_copy(update={"model": config.model.model_copy(update={
            "ffn": config.model.ffn.model_copy(update={"load_balance": 0.05})})}),
    ]  # fmt: skip
    recipes = {describe(replace(run, config=other))["recipe"] for other in (config, *others)}
    assert len(recipes) == 4
    again = config.model_copy(update={"seed": 7, "steps": config.steps + 1})
    assert describe(replace(run, config=again))["recipe"] == describe(run)["recipe"]
