"""Grids under `hyperparameters: transfer`: each point takes over the rate of its pinned base."""

from dataclasses import replace

import pytest
from grid_runs import runs_of

from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.grid import TableOf
from moelaws.spec.hyperparameters import BestRates, Choice, Transferred, choice_of
from moelaws.spec.project import Project

BASE = {"d_model": 16, "n_layers": 2, "n_heads": 2, "n_kv": 2}
RECIPE = {"lr": 0.01, "lr_interval": (0.008, 0.012), "init_std": 0.1, "D": 51_200, "batch": 4,
          "context": 128, "vocab_size": 512}  # fmt: skip
PINS = parse(
    Transferred,
    {
        "bases": [
            {**RECIPE, "base": {**BASE, "n_experts": 8, "top_k": 2, "d_expert": 32}},
            {**RECIPE, "lr": 0.02, "base": {**BASE, "d_ffn": 64}},
        ],
        "corpora": [],
    },
    "config/hyperparameters/transfer/demo.yaml",
)
CHOICE = Choice("transfer", transferred=PINS)


def grid(**axes):
    """A grid whose rate and batch are chosen, with wider models of twice the base's experts."""
    return {
        "settings": {
            "context": 128, "vocab_size": 512, "n_layers": 4, "d_model": 64, "n_heads": 4,
            "n_experts": 16, "top_k": 4, "d_expert": 128, "D": 204_800,
        },
        "derive": {
            "lr": {"rule": "chosen"}, "batch": {"rule": "chosen"},
            "steps": {"rule": "tokens", "min_steps": 1},
        },
        "sweeps": [{"axes": {"seed": 0, **axes}}],
    }  # fmt: skip


def test_a_point_has_the_base_of_its_share_of_experts_and_a_rate_for_its_tokens():
    (run,) = runs_of(grid(), choice=CHOICE)
    model, config = run.config.model, run.config
    assert (model.parameterization, model.base) == ("completep", PINS.bases[0].base)
    assert (model.init_std, config.batch) == (0.1, 4)
    assert config.optimizer.lr == pytest.approx(0.01 * 4**-0.32, rel=1e-5)
    (dense,) = runs_of(grid(ffn="dense", d_ffn=256), choice=CHOICE)
    assert dense.config.model.base == PINS.bases[1].base
    assert dense.config.optimizer.lr == pytest.approx(0.02 * 4**-0.32, rel=1e-5)


def test_a_rate_that_is_set_or_has_a_search_of_its_own_stays_with_a_standard_model():
    (run,) = runs_of(grid(lr=0.003, batch=8), choice=CHOICE)
    assert run.config.model.parameterization == "standard"
    rates = TableOf(rule="table", by=("d_model",), rows=((64, 0.004),))
    searched = {"own": BestRates(lr=rates, runs=3, corpora=())}
    own = grid(batch=8)
    own["derive"]["lr"]["search"] = "own"
    (run,) = runs_of(own, choice=replace(CHOICE, source="auto", rates=searched))
    (same,) = runs_of(own, choice=replace(CHOICE, rates=searched))
    assert same.run_id == run.run_id


@pytest.mark.parametrize(("axes", "words"), [
    ({"top_k": 2}, "has no base by adamw with 2 of 16 experts active"),
    ({"optimizer": "muon"}, "has no base by muon with 4 of 16 experts active"),
    ({"context": 256}, "context is 256, and 128 for the base in config/hyperparameters/transfer"),
    ({"batch": 8}, "batch is 8, and 4 for the base"),
    ({"init_std": 0.02}, r"init_std is 0\.02, and 0\.1 for the base"),
    ({"parameterization": "standard"}, "parameterization is standard, and completep for the base"),
    ({"base_d_model": 32}, "base_d_model is 32, and 16 for the base"),
    ({"n_shared": 1}, r"base\.n_shared = None, and the model's n_shared = 1"),
    ({"ffn": "dense", "d_ffn": 256, "n_slices": 2, "slice_d_expert": 64}, "completep with slices"),
])  # fmt: skip
def test_another_recipe_than_the_bases_is_refused_in_one_line(axes, words):
    with pytest.raises(UserError, match=words) as caught:
        runs_of(grid(**axes), choice=CHOICE)
    assert "\n" not in str(caught.value)


def test_a_batch_by_another_rule_is_refused():
    with pytest.raises(UserError, match="this point takes no rate from one; set both, or neither"):
        runs_of(grid(lr=0.003), choice=CHOICE)
    other = grid()
    other["derive"]["batch"] = {"rule": "leverage"}
    with pytest.raises(UserError, match="batch is by the rule leverage, and 4 for the base"):
        runs_of(other, choice=CHOICE)


def test_without_a_pin_it_is_refused(tmp_path):
    choice = choice_of(Project(tier="demo", hyperparameters="transfer"), tmp_path)
    with pytest.raises(UserError, match=r"but there is no config/hyperparameters/transfer/demo\.y"):
        runs_of(grid(), choice=choice)
