"""The counted terms against the products that a built model really computes."""

import math
from collections import Counter
from functools import cache

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from architectures import ARCHITECTURES
from moelaws.accounting.cost import orthogonalizing_flops
from moelaws.accounting.flops import forward_terms
from moelaws.model.transformer import Transformer
from moelaws.spec.model import MoE
from moelaws.spec.run import Muon
from moelaws.training.optimizer import Optimizer

SEQUENCES = 2


def grouped_mm(x_shape, w_shape, *args, out_shape=None, **kwargs):
    """Each row of x (X, D) with its expert's matrix of w (E, D, M); in the backward pass also
    x^T (D, X) with dy (X, M), summed over each expert's rows."""
    return 2 * math.prod(x_shape) * w_shape[-1]


def attention(q_shape, k_shape, v_shape, *args, out_shape=None, **kwargs):
    return sdpa_flop_count(q_shape, k_shape, v_shape)


def attention_backward(dy_shape, *shapes, out_shape=None, **kwargs):
    # Four products for the forward pass' two. The kernel computes the scores again to save memory.
    return 2 * sdpa_flop_count(*shapes[:3])  # of queries, keys and values


# What torch has no formula for: grouped products and the CPU's attention kernel.
FORMULAS = {
    torch.ops.aten._grouped_mm: grouped_mm,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
}
# Each part of a model is in one of these.
ONE_OF_EACH_PART = (
    "slices of all positions", "chunks above dense layers", "grouped-query, QK-norm", "a capacity",
    "GELU, shared, first dense layer", "dense GELU",
)  # fmt: skip
each_part = pytest.mark.parametrize(
    "model", [ARCHITECTURES[name] for name in ONE_OF_EACH_PART], ids=ONE_OF_EACH_PART
)


@cache
def counted(model, backward=False):
    """FLOPs of a pass over SEQUENCES by FlopCounterMode: in all, and by module and operation."""
    built = Transformer(model, 0)
    tokens = torch.randint(model.vocab_size, (SEQUENCES, model.context + 1))
    counter = FlopCounterMode(display=False, custom_mapping=FORMULAS)
    # The loss head computes its gradients in the forward pass, unless none are asked for.
    with counter, torch.set_grad_enabled(backward):
        loss = built.losses(tokens).cross_entropy
        if backward:
            loss.backward()
    modules = Counter()
    for name, operations in counter.get_flop_counts().items():
        last = name.rsplit(".", 1)[-1]
        for operation, flops in operations.items():
            kernel = "scaled_dot_product" in str(operation)
            modules[f"{last} kernel" if kernel else last] += flops
    return counter.get_total_flops(), modules


@pytest.mark.parametrize("model", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_each_term_is_what_its_module_computes(model):
    total, modules = counted(model)
    tokens = SEQUENCES * model.context
    terms = {name: flops * tokens for name, flops in forward_terms(model).items()}
    assert total == pytest.approx(sum(terms.values()), rel=1e-12)
    projections = terms["queries"] + terms["keys_values"] + terms["output"]
    assert modules["attention"] == projections
    assert modules["attention kernel"] == terms["scores"] + terms["values"]
    assert modules["slice_attention"] == terms["slice_projections"]
    assert modules["slice_attention kernel"] == terms["slice_scores"]
    for name in ("router", "routed_experts", "shared_experts", "dense_ffn", "slice_ffn"):
        assert modules[name] == pytest.approx(terms[name], rel=1e-12), name


@each_part
def test_the_backward_pass_is_twice_the_forward_pass(model):
    forward, _ = counted(model)
    both, _ = counted(model, backward=True)
    ffn, sums = model.ffn, 0
    if isinstance(ffn, MoE) and ffn.mlp == "gelu":
        # The gradients of biases are sums over tokens, by products with four columns of ones.
        rows = SEQUENCES * model.context * ffn.top_k * model.n_moe_layers
        sums = 2 * 4 * rows * (ffn.d_expert + model.d_model)
    assert both == 3 * forward + sums


@each_part
def test_a_step_of_muon_is_about_what_it_computes(model):
    if model.slices:
        pytest.skip("their blocks are not estimated")
    built = Transformer(model, 0)
    optimizer = Optimizer(built.named_parameters(), Muon(kind="muon", lr=1e-2))
    for parameter in built.parameters():
        parameter.grad = torch.ones_like(parameter)
    with FlopCounterMode(display=False) as counter:
        optimizer.step(1e-2)
    assert orthogonalizing_flops(model) == pytest.approx(counter.get_total_flops(), rel=0.5)
