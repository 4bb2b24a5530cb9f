"""Steps and batches of tiny and of large budgets: never fewer steps than a grid states."""

import pytest
from grid_runs import runs_of
from hypothesis import given
from hypothesis import strategies as st

from moelaws.accounting.flops import train_flops_per_token
from moelaws.spec.errors import UserError

MODEL = {
    "context": 64, "vocab_size": 512, "n_layers": 2, "d_model": 16, "n_heads": 2, "n_experts": 8,
    "top_k": 2, "d_expert": 16, "lr": 1e-2,
}  # fmt: skip
BUDGETS = [1e9, 1e12, 1e15]
RULES = {
    "leverage": {"rule": "leverage"},
    "power": {"rule": "power", "value": 8, "at": {"C": 1e9}, "exponent": {"C": 0.5}},
    "table": {"rule": "table", "by": ["C"], "rows": [[1e9, 1], [1e12, 16], [1e15, 256]]},
}  # fmt: skip


def run_of(settings, **derive):
    grid = {"settings": {**MODEL, **settings}, "derive": derive, "sweeps": [{}]}
    (run,) = runs_of(grid)
    return run.config


@given(
    C=st.floats(1e8, 1e20) | st.sampled_from(BUDGETS),
    rule=st.sampled_from(sorted(RULES)),
    group=st.none() | st.integers(1, 64),
    min_steps=st.integers(1, 2000),
)
def test_a_run_is_refused_or_has_its_least_steps_whole_groups_and_its_budget(
    C, rule, group, min_steps
):
    settings = {"C": C if rule != "table" else min(BUDGETS, key=lambda b: abs(b - C))}
    C = settings["C"]
    if group:
        settings["balance_group"] = group
    steps = {"rule": "compute", "convention": "leverage", "min_steps": min_steps}
    try:
        config = run_of(settings, batch=RULES[rule], steps=steps)
    except UserError as error:
        message = str(error)
        assert f"C is {C:g} with batch = " in message
        assert f"(by the rule {rule}); that is enough for " in message
        assert f"at least min_steps = {min_steps} are needed: raise C, or set a smaller" in message
        return
    assert config.steps >= min_steps
    assert config.balance_group == (group or config.batch)
    assert config.batch % config.balance_group == 0
    spent = train_flops_per_token(config.model, "leverage") * config.tokens
    assert abs(spent - C) <= spent / config.steps / 2 * (1 + 1e-9)


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": "given", "min_steps": 100},
        {"rule": "compute", "convention": "sparsity", "min_steps": 100},
    ],
)
def test_steps_that_are_set_are_held_to_the_least_number_too(rule):
    assert run_of({"steps": 100, "batch": 8}, steps=rule).steps == 100
    with pytest.raises(UserError) as caught:
        run_of({"steps": 99, "batch": 8}, steps=rule)
    assert str(caught.value).endswith(
        "steps is 99 with batch = 8 (set); at least min_steps = 100 are needed: raise steps, or "
        "lower min_steps under derive"
    )


@pytest.mark.parametrize(
    ("settings", "derive", "message"),
    [
        ({"batch": 8, "C": 1e12}, {"steps": {"rule": "given", "min_steps": 1}}, "steps is missing"),
        ({"steps": 9}, {"batch": {"rule": "leverage"}}, "C is missing"),
        ({"steps": 9, "batch": 6, "balance_group": 4}, {}, "balance_group = 4 must divide"),
    ],
)
def test_what_a_plan_lacks(settings, derive, message):
    with pytest.raises(UserError, match=message):
        run_of(settings, **derive)


def test_a_batch_that_is_set_is_not_derived():
    steps = {"rule": "compute", "convention": "sparsity", "min_steps": 1}
    config = run_of({"C": 1e12, "batch": 3}, batch={"rule": "leverage"}, steps=steps)
    assert config.batch == 3
    with pytest.raises(UserError, match=r"batch = 3 \(set\)"):
        run_of({"C": 1e6, "batch": 3}, batch={"rule": "leverage"}, steps=steps)
