"""Grids: what they expand to, what they refuse, and identities under rewriting."""

from functools import partial

import pytest
from grid_runs import runs_of
from hypothesis import given
from hypothesis import strategies as st

import nested
from moelaws.spec.errors import UserError
from moelaws.spec.model import DenseFFN, MoE

DATA = {
    "settings": {
        "context": 128, "vocab_size": 512, "n_layers": 2, "top_k": 2, "G": 1, "batch": 8,
    },
    "derive": {
        "n_experts": {"rule": "sparsity"},
        "d_expert": {"rule": "granularity"},
        "n_heads": {"rule": "head_width", "width": 16},
        "lr": {"rule": "power", "value": 6e-3, "at": {"d_model": 48},
               "exponent": {"d_model": -0.5}},
        "steps": {"rule": "compute", "convention": "sparsity", "min_steps": 20},
    },
    "sweeps": [{"axes": {"C": ["1e11", 2e11], "S": [0, 0.75], "d_model": [16, 32, 48]}}],
}  # fmt: skip


changed = partial(nested.changed, DATA)


def test_product_and_derivations():
    runs = runs_of(DATA)
    assert len(runs) == 2 * 2 * 3
    sparse = runs[3].config  # C = 1e11, S = .75, d_model = 16
    assert sparse.model.ffn.n_experts == 8  # E = k / (1 - S)
    assert sparse.model.ffn.d_expert == 32  # 2 d / G
    assert sparse.optimizer.lr == pytest.approx(6e-3 * 3**0.5, rel=1e-5)
    assert sparse.balance_group == sparse.batch


def test_gates_and_balance_are_axes_that_cost_nothing_and_whose_defaults_are_the_old_runs():
    axes = {"C": [1e11], "S": [0.75], "d_model": [32]}
    (old,) = runs_of(changed("sweeps.0.axes", axes))
    axes |= {"gate": ["softmax", "sigmoid"], "balance": ["loss", "bias", "none"]}
    runs = runs_of(changed("sweeps.0.axes", axes | {"capacity_factor": ["1.25"]}))
    crossed = runs_of(changed("sweeps.0.axes", axes))
    assert len({run.run_id for run in (*runs, *crossed)}) == 12
    assert crossed[0].run_id == old.run_id
    assert {run.config.steps for run in (*runs, *crossed)} == {old.config.steps}
    with pytest.raises(UserError, match="load_balance is set where balance is loss, and only"):
        runs_of(changed("sweeps.0.axes", axes | {"load_balance": [0.02]}))


def test_the_parameterization_is_an_axis_that_costs_nothing_and_a_base_stands_beside_it():
    axes = {"C": [1e11], "S": [0.75], "d_model": [32]}
    (old,) = runs_of(changed("sweeps.0.axes", axes))
    axes |= {"parameterization": ["standard", "mup", "completep"]}
    base = {
        "base_d_model": 16, "base_n_layers": 2, "base_n_heads": 1, "base_n_kv": 1,
        "base_n_experts": 8, "base_top_k": 2, "base_d_expert": 32,
    }  # fmt: skip
    data = changed("sweeps.0.axes", axes)
    data["settings"] |= base
    standard, *others = runs_of(data)
    assert standard.run_id == old.run_id
    assert len({run.run_id for run in (standard, *others)}) == 3
    assert {run.config.steps for run in others} == {old.config.steps}
    assert {run.config.model.base.d_model for run in others} == {16}
    data["settings"].pop("base_top_k")
    with pytest.raises(UserError, match=r"base\.top_k = None, and the model's top_k = 2"):
        runs_of(data)


@given(st.permutations([16, 32, 48]), st.permutations(["C", "S", "d_model"]))
def test_order_and_repetition_change_nothing(widths, names):
    axes = {"C": [1e11, 2e11], "S": [0, 0.75], "d_model": widths}
    again = {"axes": {name: axes[name] for name in names}}
    runs = runs_of(changed("sweeps", [again, DATA["sweeps"][0]]))
    assert {r.run_id for r in runs} == {r.run_id for r in runs_of(DATA)}
    assert len(runs) == 12  # the same run asked for twice stands once


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("sweeps.0.axes.S", [1], "S is 1; it must be less than 1"),
        ("sweeps.0.axes.S", [0.3], "E = k / (1 - S) = 2.857 is not whole"),
        ("derive.lr.at", {"seed": 1}, "must name the same settings"),
        ("sweeps.0.zip", [{"lr": []}], "zip #1.lr is []; it must be a list of 1 or more"),
        ("sweeps.0.axes.C", [1e6], "raise C, or set a smaller batch, or lower context"),
        ("sweeps.0.zip", [{"lr": [1, 2], "seed": [1]}], "zipped axes must be equally long"),
        ("settings.context", None, "context is missing"),
        ("derive.steps", None, "steps is missing"),
        ("sweeps", [], "sweeps is []"),
    ],
)
def test_impossible_points_are_refused_in_one_line(path, value, message):
    with pytest.raises(UserError) as caught:
        runs_of(changed(path, value))
    assert str(caught.value).startswith("g.yaml")
    assert message in str(caught.value)


def test_a_run_that_two_sweeps_ask_for_is_one_run_of_both():
    sweeps = [
        {"name": "wide", "axes": {"C": 1e11, "S": 0, "d_model": [32, 48]}},
        {"name": "sparse", "axes": {"C": 1e11, "S": [0, 0.75], "d_model": 32}},
        {"axes": {"C": 1e11, "S": 0, "d_model": [32, 16]}},
    ]
    runs = runs_of(changed("sweeps", sweeps))
    assert [run.sweeps for run in runs] == [("wide", "sparse"), ("wide",), ("sparse",), ()]
    unnamed = runs_of(changed("sweeps", [dict(sweep, name="") for sweep in sweeps]))
    assert [run.run_id for run in unnamed] == [run.run_id for run in runs]


def test_an_optimizer_is_an_axis_whose_default_changes_no_run():
    def first(**settings):
        data = changed("settings", {**DATA["settings"], **settings})
        run = runs_of(data)[0]
        return run.run_id, run.config.optimizer

    plain, _ = first()
    named, _ = first(optimizer="adamw")
    other, muon = first(optimizer="muon", momentum=0.9)
    assert plain == named != other
    assert (muon.kind, muon.momentum) == ("muon", 0.9)
    with pytest.raises(UserError, match="optimizer: unknown key momentum"):
        first(momentum=0.9)


def test_what_a_point_says_of_its_layers_reaches_the_model():
    settings = {
        "context": 64, "vocab_size": 512, "n_experts": 64, "top_k": 2, "n_layers": 2, "d_model": 32,
        "n_heads": 2, "mlp": "gelu", "d_ffn": 48, "lr": 1e-3, "batch": 2, "steps": 9,
    }  # fmt: skip
    layers = {"n_shared": 1, "d_expert": 8, "jitter": 0.01, "n_dense_layers": 1}
    routed, dense = (
        runs_of({"settings": settings | own, "sweeps": [{}]})[0].config.model.ffn
        for own in (layers, {"ffn": "dense"})
    )
    assert routed == MoE(kind="moe", n_experts=64, top_k=2, mlp="gelu", d_ffn=48, **layers)
    assert dense == DenseFFN(kind="dense", d_ffn=48, mlp="gelu")
