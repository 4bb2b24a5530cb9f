"""The overnight sweep: what it must hold to determine a law, and that its search fits it."""

from collections import Counter, defaultdict

import pytest
from grid_runs import TEXT

from moelaws import laws
from moelaws.grids.expand import expand
from moelaws.records.names import flops_of
from moelaws.spec.project import load_study
from repository import REPOSITORY

TRAINING_TOKENS = 20.9e6  # of the corpus environment, at this vocabulary (docs/corpora.md)


def runs_of(study):
    grid = load_study(study, REPOSITORY).grids["workstation"]
    return expand(grid, TEXT, f"{study}, grids.workstation")


@pytest.fixture(scope="module")
def sweep():
    return runs_of("sparsity")


def test_each_budget_has_more_runs_than_the_law_has_coefficients(sweep):
    coefficients = len(laws.fittable("sparsity.loss").names)
    runs = Counter(run.C for run in sweep if run.config.seed == 0)
    assert set(runs) == {1e12, 3e12, 1e13}
    assert all(n >= 3 * coefficients for n in runs.values())
    experts = {run.config.model.ffn.n_experts for run in sweep}
    assert experts == {2, 4, 8, 16, 32, 64}
    assert {run.config.model.ffn.top_k for run in sweep} == {2}


def test_each_budget_has_two_sizes_of_which_every_sparsity_has_two_seeds(sweep):
    seeds = Counter((r.C, r.config.model.ffn.n_experts, r.config.model.d_model) for r in sweep)
    twice = Counter((C, E) for (C, E, _), n in seeds.items() if n == 2)
    assert len(twice) == 18
    assert set(twice.values()) == {2}


def test_no_run_sees_a_token_of_the_environment_twice(sweep):
    assert max(run.config.tokens for run in sweep) < 0.5 * TRAINING_TOKENS


def test_the_search_is_at_budgets_sizes_and_settings_of_the_sweep(sweep):
    search = [run for run in runs_of("hyperparameters") if {"moe", "dense"} & set(run.sweeps)]
    shared = {run.C for run in search} & {run.C for run in sweep}
    assert len(shared) == 2
    for C in shared:
        widths = {run.config.model.d_model for run in sweep if run.C == C}
        assert {run.config.model.d_model for run in search if run.C == C} < widths
    for key in ("n_layers", "n_heads", "context", "vocab_size", "tied_embeddings", "qk_norm"):
        assert len({getattr(r.config.model, key) for r in (*search, *sweep)}) == 1
    same = ("beta2", "weight_decay", "clip")
    assert len({tuple(getattr(r.config.optimizer, k) for k in same) for r in search + sweep}) == 1
    assert sum(flops_of(run.config) for run in search) < 0.15 * sum(
        flops_of(run.config) for run in sweep
    )


def test_each_leverage_model_has_one_trunk_at_all_budgets():
    """So one budget more leaves the runs there are as they are, and trains what it adds alone."""
    trunks = defaultdict(list)
    for run in runs_of("leverage"):
        trunks[run.config.model.fingerprint(), run.config.seed].append(run.config.trunk)
        assert run.config.tokens < 0.5 * TRAINING_TOKENS
    assert all(len(set(own)) == 1 and own[0] for own in trunks.values())
    assert {len(own) for own in trunks.values()} == {1, 2, 3}  # budgets of a width
