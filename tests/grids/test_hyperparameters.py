"""Learning rate and batch: by law, by table, and as the project chooses among them."""

import math

import pytest
from grid_runs import runs_of
from hypothesis import given
from hypothesis import strategies as st

from moelaws.accounting.flops import train_flops_per_token
from moelaws.grids.hyperparameters import batch_size, learning_rate, settled
from moelaws.spec.base import parse
from moelaws.spec.errors import UserError
from moelaws.spec.grid import Chosen, Derivations, PublishedLaw, TableOf
from moelaws.spec.hyperparameters import BestRates, Choice, Pinned

LAW = PublishedLaw(rule="leverage")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"rule": "table", "by": ["d_model"], "rows": [[1, 2, 3]]}, "[1, 2, 3] must hold d_model"),
        ({"rule": "table", "by": ["d_model"], "rows": [[8, 1], [8, 2]]}, "two rows are for [8]"),
        ({"rule": "magic"}, "lr.rule is 'magic'; it must be power, leverage, step_law, table or"),
        ({"rule": "chosen", "by": ["C"]}, "give both or none"),
    ],
)
def test_mistakes_in_a_rule(data, message):
    with pytest.raises(UserError) as caught:
        parse(Derivations, {"lr": data}, "g.yaml")
    assert message in str(caught.value)


@given(C=st.floats(1e6, 1e26), context=st.integers(1, 2**20), group=st.integers(1, 512))
def test_a_batch_is_the_nearest_positive_multiple_of_the_balance_group(C, context, group):
    batch = batch_size({"C": C, "context": context, "balance_group": group}, LAW)
    sequences = math.exp(math.log(0.0694) + 0.3644 * math.log(C)) / context
    assert batch % group == 0
    assert batch >= group
    if batch > group:  # the smallest there is may be farther
        assert abs(batch - sequences) <= group / 2 + 1e-5 * sequences
    else:
        assert sequences <= 1.5 * group * (1 + 1e-5)


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


OF_ALL = PINNED.model_copy(
    update={
        "lr": PINNED.lr.model_copy(update={"coefficient": 8.0}),
        "provenance": PINNED.provenance.model_copy(update={"gates": "all"}),
    }
)


def test_each_kind_of_gates_follows_the_laws_that_were_searched_with_it():
    """Those of the other kind serve where there are no others, and that is said."""
    of_selected, of_all = 4 * 1e8**-0.25, 8 * 1e8**-0.25

    def rate(gates, *pinned):
        choice = Choice("auto", pinned)
        rule = settled("lr", BARE, choice, gates, "adamw")
        return learning_rate(POINT, rule), choice.borrowed(gates)

    assert rate("all", PINNED, OF_ALL) == (pytest.approx(of_all, rel=1e-5), "")
    assert rate("selected", PINNED, OF_ALL) == (pytest.approx(of_selected, rel=1e-5), "")
    assert rate("none", PINNED, OF_ALL) == (pytest.approx(of_selected, rel=1e-5), "")
    borrowed, said = rate("all", PINNED)
    assert borrowed == pytest.approx(of_selected, rel=1e-5)
    assert "whose search had gates over selected experts" in said


def test_a_pinned_law_is_followed_in_tokens():
    batch = settled("batch", BARE, Choice("pinned", (PINNED,)), "selected", "muon")
    assert batch_size({**POINT, "context": 25}, batch) == 4  # 100 tokens
    assert batch_size({**POINT, "context": 10, "balance_group": 4}, batch) == 12


@pytest.mark.parametrize(
    ("rule", "source", "pinned", "expected"),
    [
        (BARE, "auto", [PINNED], 4 * 1e8**-0.25),
        # What was searched here precedes what was printed.
        (TABLE, "auto", [PINNED], 4 * 1e8**-0.25),
        (TABLE, "auto", [], 0.02),
        (BARE, "auto", [], 1.1576 * 1e8**-0.1529),
        (TABLE, "tables", [PINNED], 0.02),
        (TABLE, "published", [PINNED], 1.1576 * 1e8**-0.1529),
    ],
)
def test_auto_is_the_first_there_is_of_pinned_table_and_published(rule, source, pinned, expected):
    followed = settled("lr", rule, Choice(source, tuple(pinned)), "selected", "adamw")
    assert learning_rate(POINT, followed) == pytest.approx(expected, rel=1e-5)


SETTINGS = {
    "context": 128, "vocab_size": 512, "n_layers": 2, "n_heads": 2, "d_model": 16, "n_experts": 8,
    "top_k": 2, "d_expert": 16,
}  # fmt: skip


def at_budget(*sweeps, **search):
    """A grid of sweeps, each given by its axes, whose rates are chosen for 1e10 FLOPs."""
    return {
        "settings": SETTINGS | {"batch": 4, "C": 1e10},
        "derive": {
            "lr": {"rule": "chosen", **search},
            "steps": {"rule": "compute", "convention": "leverage", "min_steps": 1},
        },
        "sweeps": [{"axes": axes} for axes in sweeps],
    }


def test_another_pinned_law_makes_other_runs_and_a_rule_of_its_own_does_not():
    grid = at_budget({"seed": [0, 1]}, {"lr": 0.01})
    auto = runs_of(grid)
    pinned = runs_of(grid, choice=Choice("auto", (PINNED,)))
    assert [a.run_id == b.run_id for a, b in zip(auto, pinned, strict=True)] == [False, False, True]
    assert pinned[0].config.optimizer.lr == pytest.approx(4 * 1e10**-0.25, rel=1e-5)


def test_an_optimizer_never_follows_the_rates_of_another():
    """Muon's best rates are two to four times those of AdamW, so no law of one serves both."""
    grid = at_budget({"optimizer": ["adamw", "muon"]}, search="of_muon")
    of_muon = BestRates(
        lr=TableOf(rule="table", by=("C",), rows=((1e10, 0.03),)), runs=3, corpora=(),
        optimizer="muon",
    )  # fmt: skip
    searched = {"rates": {"of_muon": of_muon}}
    for choice, point in (
        # The search that the grid names is not pinned yet.
        (Choice("pinned", (PINNED,)), "muon}: lr: {rule: chosen} follows rates for adamw here;"),
        (Choice(**searched), "adamw}: lr: {rule: chosen} follows rates for muon"),
    ):
        with pytest.raises(UserError) as caught:
            runs_of(grid, choice=choice)
        assert f"point {{optimizer: {point}" in str(caught.value)
    grid["sweeps"] = [{"axes": {"optimizer": "muon"}}]
    (run,) = runs_of(grid, choice=Choice(**searched))
    assert run.config.optimizer.lr == 0.03
    grid["sweeps"] = [{"axes": {"optimizer": ["adamw", "muon"], "lr": 0.02}}]
    assert len(runs_of(grid, choice=Choice("pinned", (PINNED,)))) == 2


def test_a_point_of_tokens_follows_the_law_at_what_its_tokens_cost():
    grid = {
        "settings": SETTINGS | {"D": 409_600},
        "derive": {
            "lr": {"rule": "chosen"}, "batch": {"rule": "chosen"},
            "steps": {"rule": "tokens", "laws_at": {"convention": "leverage"}, "min_steps": 1},
        },
        "sweeps": [{"axes": {"seed": 0}}],
    }  # fmt: skip
    choice = Choice("pinned", (PINNED,))
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


STEP = PublishedLaw(rule="step_law")


def test_step_law_of_7e9_parameters_and_1_4e12_tokens():
    """The example of the authors' tool: a rate of 9.2e-4, and 2441 sequences of 2048 tokens."""
    point = {"N": 7e9, "D": 1.4e12, "context": 2048}
    rate = math.exp(math.log(1.79) - 0.713 * math.log(7e9) + 0.307 * math.log(1.4e12))
    assert learning_rate(point, STEP) == pytest.approx(rate, rel=1e-5) == 9.1656e-4
    assert batch_size(point, STEP) == 2441


@pytest.mark.parametrize(
    ("size", "steps"),
    [
        ({"C": 1e10}, {"rule": "compute", "convention": "leverage"}),
        ({"D": 409_600}, {"rule": "tokens"}),
        ({"D": 409_600}, {"rule": "tokens", "laws_at": {"convention": "leverage", "D": 1e6}}),
    ],
)
def test_step_law_counts_all_experts_and_the_tokens_of_the_budget(size, steps):
    grid = {
        "settings": SETTINGS | size,
        "derive": {
            "lr": {"rule": "chosen"}, "batch": {"rule": "chosen"}, "steps": steps | {"min_steps": 1}
        },
        "sweeps": [{"axes": {"seed": 0}}],
    }  # fmt: skip
    (run,) = runs_of(grid, choice=Choice("step_law", (PINNED,)))
    model = run.config.model
    tokens = steps.get("laws_at", {}).get("D") or size.get("D")
    tokens = tokens or 1e10 / train_flops_per_token(model, "leverage")
    blocks = 2 * (4 * 16**2 + 8 * 3 * 16 * 16 + 8 * 16 + 2 * 16) + 16  # with 8 experts and norms
    rate = 1.79 * blocks**-0.713 * tokens**0.307
    assert run.config.optimizer.lr == pytest.approx(rate, rel=1e-4)
    assert run.config.batch == max(1, math.floor(0.58 * tokens**0.571 / 128 + 0.5))


def test_rates_of_standard_models_are_refused_for_others():
    chosen = Chosen(rule="chosen")
    known = chosen, Choice("auto"), "selected", "adamw", "mup"
    with pytest.raises(UserError, match="chosen} with parameterization: mup; its laws are of"):
        settled("lr", *known)
    assert settled("batch", *known) == LAW
