"""Learning rates and batches that the project chooses: pinned, published or the papers' tables."""

import math

import pytest
from grid_runs import runs_of

from moelaws.accounting.flops import train_flops_per_token
from moelaws.grids.hyperparameters import batch_size, learning_rate, settled
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.grid import Chosen, Derivations
from moelaws.spec.hyperparameters import Choice, Pinned

PINNED = parse(
    Pinned,
    {
        "lr": {"coefficient": 4.0, "coefficient_interval": [3, 5],
               "exponent": -0.25, "exponent_interval": [-0.3, -0.2]},
        "batch_tokens": {"coefficient": 0.01, "coefficient_interval": [0.001, 0.1],
                         "exponent": 0.5, "exponent_interval": [0.4, 0.6]},
        "provenance": {
            "study": "hyperparameters", "tier": "demo", "level": 0.9, "tolerance": 0.0025,
            "lr": {"name": "lr", "runs": 9, "digest": "a"},
            "batch_tokens": {"name": "batch", "runs": 9, "digest": "b"},
            "searched": 36, "C": ["1e10", "1e11"], "corpora": [], "versions": {},
        },
    },
    "demo.yaml",
)  # fmt: skip
BARE = Chosen(rule="chosen")
TABLE = parse(Derivations, {"lr": {"rule": "chosen", "by": ["C"], "rows": [[1e8, 0.02]]}}, "g").lr
POINT = {"C": 1e8, "context": 128}


def rate(rule, source, pinned=PINNED):
    return learning_rate(POINT, settled("lr", rule, Choice(source, pinned)))


def test_a_pinned_law_is_followed_in_tokens():
    assert rate(BARE, "pinned") == pytest.approx(4 * 1e8**-0.25)
    batch = settled("batch", BARE, Choice("pinned", PINNED))
    assert batch_size({**POINT, "context": 25}, batch) == 4  # 100 tokens
    assert batch_size({**POINT, "context": 10, "balance_group": 4}, batch) == 12


@pytest.mark.parametrize(
    ("rule", "pinned", "expected"),
    [
        (BARE, PINNED, 4 * 1e8**-0.25),
        (TABLE, PINNED, 4 * 1e8**-0.25),  # what was searched here goes before what was printed
        (TABLE, None, 0.02),
        (BARE, None, 1.1576 * 1e8**-0.1529),
    ],
)
def test_auto_is_the_first_there_is_of_pinned_table_and_published(rule, pinned, expected):
    assert rate(rule, "auto", pinned) == pytest.approx(expected, rel=1e-5)


def test_each_source_can_be_asked_for():
    assert rate(TABLE, "tables") == 0.02
    assert rate(TABLE, "published") == pytest.approx(1.1576 * 1e8**-0.1529, rel=1e-5)


@pytest.mark.parametrize(
    ("rule", "source", "message"),
    [
        (BARE, "tables", "derive.lr has none"),
        (TABLE, "pinned", r"there is no config/hyperparameters"),
    ],
)
def test_a_source_that_is_not_there(rule, source, message):
    with pytest.raises(UserError, match=message):
        rate(rule, source, None)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"by": ["C"]}, "give both or none"),
        ({"by": ["C"], "rows": [[1, 2, 3]]}, "must hold C and then the value"),
        ({"by": ["seed"], "rows": [[1, 2]]}, "'seed' is no positive setting"),
    ],
)
def test_half_a_table(data, message):
    with pytest.raises(UserError, match=message):
        parse(Derivations, {"lr": {"rule": "chosen", **data}}, "g.yaml")


def test_another_pinned_law_makes_other_runs_and_a_rule_of_its_own_does_not():
    grid = {
        "settings": {
            "context": 128, "vocab_size": 512, "n_layers": 2, "n_heads": 2, "d_model": 16,
            "n_experts": 8, "top_k": 2, "d_expert": 16, "batch": 4, "C": 1e10,
        },
        "derive": {
            "lr": {"rule": "chosen"},
            "steps": {"rule": "compute", "convention": "leverage", "min_steps": 1},
        },
        "sweeps": [{"axes": {"seed": [0, 1]}}, {"axes": {"lr": 0.01}}],
    }  # fmt: skip
    auto = runs_of(grid)
    pinned = runs_of(grid, choice=Choice("auto", PINNED))
    assert [a.run_id == b.run_id for a, b in zip(auto, pinned, strict=True)] == [False, False, True]
    assert pinned[0].config.optimizer.lr == pytest.approx(4 * 1e10**-0.25, rel=1e-5)


def test_a_point_of_tokens_follows_the_law_at_what_its_tokens_cost():
    grid = {
        "settings": {
            "context": 128, "vocab_size": 512, "n_layers": 2, "n_heads": 2, "d_model": 16,
            "n_experts": 8, "top_k": 2, "d_expert": 16, "D": 409_600,
        },
        "derive": {
            "lr": {"rule": "chosen"}, "batch": {"rule": "chosen"},
            "steps": {"rule": "tokens", "laws_at": {"convention": "leverage"}, "min_steps": 1},
        },
        "sweeps": [{"axes": {"seed": 0}}],
    }  # fmt: skip
    choice = Choice("pinned", PINNED)
    (run,) = runs_of(grid, choice=choice)
    cost = train_flops_per_token(run.config.model, "leverage") * 409_600
    assert run.config.optimizer.lr == pytest.approx(4 * cost**-0.25, rel=1e-5)
    assert run.config.batch == math.floor(0.01 * cost**0.5 / 128 + 0.5)
    assert run.C is None  # no budget that the grid named
    assert run.config.tokens == pytest.approx(409_600, rel=0.01)
    grid["derive"]["steps"]["laws_at"]["D"] = 100 * 409_600
    (other,) = runs_of(grid, choice=choice)
    assert other.config.optimizer.lr == pytest.approx(4 * (100 * cost) ** -0.25, rel=1e-5)
    assert other.config.tokens == pytest.approx(409_600, rel=0.1)
    del grid["derive"]["steps"]["laws_at"]
    with pytest.raises(UserError, match="C is missing"):
        runs_of(grid, choice=choice)
