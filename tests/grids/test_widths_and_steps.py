"""Widths and steps that a grid derives, and what its text must be able to give."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from grid_runs import runs_of
from hypothesis import given
from hypothesis import strategies as st

from moelaws.accounting.flops import CONVENTIONS, train_flops_per_token
from moelaws.corpus.sources import resolve
from moelaws.grids.model import TOLERANCE
from moelaws.grids.sweep import too_long_for
from moelaws.spec.corpus import Dataset
from moelaws.spec.errors import UserError
from planned_study import small

SETTINGS = {
    "context": 128, "vocab_size": 512, "n_layers": 4, "d_model": 64, "n_heads": 2, "batch": 4,
    "lr": 1e-2, "steps": 10,
}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "dense": {"ffn": "dense"},
    "top-1": {"n_experts": 8, "top_k": 1, "normalize_top_k": False},
    "top-2": {"n_experts": 8, "top_k": 2},
    "by layer": {"n_experts": 8, "top_k": 2, "n_dense_layers": 2},
    "chunks": {"n_experts": 8, "top_k": 2, "route_by": "chunk", "chunk": 16},
    "slices": {"ffn": "dense", "n_slices": 4},
    "slices of chunks": {"ffn": "dense", "n_slices": 8, "slice_positions": "chunks"},
}


def run(budget: float | None, kind: str, **settings: Any):
    point = {**SETTINGS, **KINDS[kind], "flops_per_token": budget, **settings}
    rules = {"hidden_width": {"rule": "flops", "convention": "leverage"}}
    (run,) = runs_of({"settings": point, "derive": rules, "sweeps": [{"axes": {"seed": 0}}]})
    return run.config


def cost(config) -> float:
    return train_flops_per_token(config.model, "leverage")


@given(budget=st.floats(1.2e6, 5e6), kind=st.sampled_from(list(KINDS)))
def test_every_kind_meets_the_budget_and_no_other_width_is_nearer(budget, kind):
    config = run(budget, kind)
    miss = abs(cost(config) - budget)
    assert miss <= TOLERANCE * budget
    ffn = config.model.ffn
    name, width = ("d_ffn", ffn.d_ffn) if ffn.kind == "dense" else ("d_expert", ffn.d_expert)
    for other in (width - 1, width + 1):
        assert abs(cost(run(budget, kind, **{name: other})) - budget) >= miss or "slices" in kind


def test_widths_in_steps_of_16_for_slices_too():
    rules = {"hidden_width": {"rule": "flops", "convention": "leverage", "multiple": 16}}
    for kind, own in KINDS.items():
        point = {**SETTINGS, **own, "d_model": 256, "flops_per_token": 5e7}
        (run,) = runs_of({"settings": point, "derive": rules, "sweeps": [{"axes": {"seed": 0}}]})
        model = run.config.model
        widths = [getattr(model.ffn, name, None) for name in ("d_ffn", "d_expert")]
        widths += [model.slices.d_expert] if model.slices else []
        assert not any(width % 16 for width in widths if width), kind
        assert cost(run.config) == pytest.approx(5e7, rel=TOLERANCE)


def test_what_follows_from_the_width():
    """Slices share the width of the full blocks; dense layers cost what active experts cost."""
    model = run(2e6, "slices").model
    assert model.slices.d_expert == round(model.ffn.d_ffn / 4)
    ffn = run(2e6, "by layer").model.ffn
    assert ffn.d_ffn == 2 * ffn.d_expert
    assert run(2e6, "dense", d_ffn=100).model.ffn.d_ffn == 100  # a width that is set stays
    assert run(2e6, "slices", slice_heads=1).model.slices.n_heads == 1


def test_a_budget_that_no_width_meets_is_refused():
    with pytest.raises(UserError, match=r"flops_per_token is 1000, and the nearest that d_ffn"):
        run(1000, "dense")
    with pytest.raises(UserError, match="flops_per_token is missing"):
        run(None, "dense")


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
    convention=st.sampled_from(sorted(CONVENTIONS)),
)
def test_a_run_is_refused_or_has_its_least_steps_whole_groups_and_its_budget(
    C, rule, group, min_steps, convention
):
    settings = {"C": C if rule != "table" else min(BUDGETS, key=lambda b: abs(b - C))}
    C = settings["C"]
    if group:
        settings["balance_group"] = group
    steps = {"rule": "compute", "convention": convention, "min_steps": min_steps}
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
    spent = train_flops_per_token(config.model, convention) * config.tokens
    assert abs(spent - C) <= spent / config.steps / 2 * (1 + 1e-9)


@pytest.mark.parametrize("rule", [{"rule": "given"}, {"rule": "compute", "convention": "sparsity"}])
def test_steps_that_are_set_are_held_to_the_least_number_too(rule):
    steps = {**rule, "min_steps": 100}
    assert run_of({"steps": 100, "batch": 8}, steps=steps).steps == 100
    with pytest.raises(UserError, match=r"steps is 99 .*; at least min_steps = 100 are needed"):
        run_of({"steps": 99, "batch": 8}, steps=steps)


@pytest.mark.parametrize("size", [None, 10**18, 6 * 10**5])
def test_a_data_set_is_refused_where_its_bytes_cannot_do(size):
    setting = Dataset(dataset="owner/stories", commit="0" * 40, bytes=size)
    sweep = replace(small()[1], texts={"": resolve(setting, Path())})
    said = "more than 5.7e+05 bytes of training text can give with max_epochs = 1"
    assert (said in too_long_for(sweep)) == (size == 6 * 10**5)
