"""The copy test: under exact rules a model whose units are copied trains to the same losses.

It computes what the original does if each copied input has half of its weight. With any one factor
of the rules left out it no longer does after a few steps.
"""

import re

import pytest
import torch

from moelaws.model import parameterization, transformer
from moelaws.model.parameterization import factors, multipliers
from moelaws.model.transformer import Transformer
from moelaws.training import optimizer as optimization
from scaled import ADAMW, BASE, MUON, scaled, trained

# What is copied -> its sizes
COPIED = {
    "columns": ("d",),
    "heads": ("a",),
    "hidden units": ("dense_ffn", "moe.routed_experts", "moe.shared_experts"),
    "experts": ("E",),
}
EVERYTHING = tuple(size for sizes in COPIED.values() for size in sizes)


def copied(model, sizes):
    """The model with twice the units of these sizes; a head keeps its width."""
    ffn, changes = model.ffn, {"head_width": model.width_of_head}
    if "d" in sizes:
        changes["d_model"] = 2 * model.d_model
    if "a" in sizes:
        changes |= {"n_heads": 2 * model.n_heads, "n_kv": 2 * model.n_kv}
    own = {}
    if "dense_ffn" in sizes and ffn.d_ffn:
        own["d_ffn"] = 2 * ffn.d_ffn
    if ffn.kind == "moe" and "moe.routed_experts" in sizes:
        own["d_expert"] = 2 * ffn.d_expert
    if ffn.kind == "moe" and "E" in sizes:
        own |= {"n_experts": 2 * ffn.n_experts, "top_k": 2 * ffn.top_k}
    base = model.model_copy(update={"head_width": model.width_of_head})
    return scaled(model, base=base, ffn=own, **changes)


def copy_of(model, name, weight, sizes):
    """The weight of the model whose units are copied."""
    fan_in, fan_out = parameterization._FANS[re.sub(r"^layers\.\d+\.", "layers.", name)]
    stacked = "routed_experts" in name
    if not fan_in:
        axes = {-1: fan_out}
    else:
        axes = {-2: fan_in, -1: fan_out} if stacked else {-1: fan_in, -2: fan_out}
    # The fused matrices have several parts along their outputs, which are copied one by one.
    parts = 1
    if name.endswith("w_gate_up"):
        parts = 2
    for axis, size in axes.items():
        if size not in sizes:
            continue
        if name.endswith("w_qkv") and size == "a":
            each = [n * model.width_of_head for n in (model.n_heads, model.n_kv, model.n_kv)]
            pieces = weight.split(each, axis)
        else:
            pieces = weight.chunk(parts if size == fan_out else 1, axis)
        weight = torch.cat([piece for piece in pieces for _ in range(2)], axis)
        if size == fan_in:
            weight = weight / 2
    if stacked and "E" in sizes:
        weight = torch.cat((weight, weight))
    return weight


def start(model):
    return {name: weight.detach() for name, weight in Transformer(model, 0).named_parameters()}


def farthest(model, sizes, settings):
    """How far the losses and the weights of the copied model are from the copies, at most."""
    larger, first = copied(model, sizes), start(model)
    losses, weights = trained(model, first, settings)
    copies = {name: copy_of(model, name, weight, sizes) for name, weight in first.items()}
    theirs, ends = trained(larger, copies, settings)
    apart = [abs(a - b) for a, b in zip(losses, theirs, strict=True)]
    moved = [
        (copy_of(model, name, weight, sizes) - ends[name]).abs().max().item()
        for name, weight in weights.items()
    ]
    return max(apart), max(moved)


@pytest.mark.parametrize(
    ("of", "settings"), [*((of, ADAMW) for of in (*COPIED, "all")), ("all", MUON)]
)
@pytest.mark.parametrize("name", BASE)
def test_a_model_whose_units_are_copied_trains_alike(name, of, settings):
    losses, weights = farthest(BASE[name], COPIED.get(of, EVERYTHING), settings)
    assert losses < 1e-4
    assert weights < 1e-4


def by_rule(name):
    """Pattern -> (a parameter of the copied model, its factors)."""
    larger = copied(BASE[name], EVERYTHING)
    found = {}
    for parameter, weight in Transformer(larger, 0).named_parameters():
        pattern = re.sub(r"\.\d+\.", ".*.", parameter)
        found.setdefault(pattern, factors(larger, parameter, weight.shape))
    return found


def once(fields):
    """(a field, a pattern) -> the first model in which that factor is not 1."""
    found = {}
    for name in BASE:
        for pattern, own in by_rule(name).items():
            for field in fields:
                if getattr(own, field) != 1:
                    found.setdefault((field, pattern), name)
    return found


LEFT_OUT = [(*factor, name, ADAMW) for factor, name in once(["rate", "eps"]).items()]
MATRICES = {factor: name for factor, name in once(["muon"]).items() if ".w_" in factor[1]}
LEFT_OUT += [(*factor, name, MUON) for factor, name in MATRICES.items()]


@pytest.mark.parametrize(("field", "pattern", "name", "settings"), LEFT_OUT)
def test_without_any_one_factor_it_trains_otherwise(monkeypatch, field, pattern, name, settings):
    """By Muon without the rate of each of its matrices."""

    def without(model, parameter, shape=()):
        own = factors(model, parameter, shape)
        is_it = re.sub(r"\.\d+\.", ".*.", parameter) == pattern
        return own._replace(**{field: 1.0}) if is_it else own

    monkeypatch.setattr(optimization, "factors", without)
    assert farthest(BASE[name], EVERYTHING, settings)[1] > 2e-4


@pytest.mark.parametrize("field", ["logits", "routed"])
def test_without_a_multiplier_the_copy_is_another_function(monkeypatch, field):
    monkeypatch.setattr(
        transformer, "multipliers", lambda model: multipliers(model)._replace(**{field: 1.0})
    )
    assert farthest(BASE["shared and dense"], EVERYTHING, ADAMW)[0] > 1e-3
