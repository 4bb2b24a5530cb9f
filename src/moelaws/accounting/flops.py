"""Training FLOPs per token in the conventions of the papers.

All papers count full, non-causal attention, leave out norms and non-linearities, and take the
backward pass as twice the forward pass. Per token and layer, forward, with rho = n_kv / n_heads
and n = context: queries 2d^2, keys and values 4 d^2 rho, scores 2nd, values 2nd, output 2d^2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from moelaws.accounting.parameters import count_parameters
from moelaws.spec.model import Model, MoE

Convention = Literal[
    "sparsity", "allocation", "allocation_printed", "leverage", "leverage_printed", "six_n"
]


def sparsity(model: Model) -> float:
    """Eq 9, sparsity: multi-head attention, unembedding counted, router left out."""
    d, n = model.d_model, model.context
    per_layer = 4 * d * d + 2 * n * d + 3 * d * _active_width(model)
    return 6.0 * (model.n_layers * per_layer + model.vocab_size * d)


def allocation(model: Model) -> float:
    """App C, allocation, corrected (values 2 n^2 d a sequence), router and logits counted."""
    attention, experts = allocation_parts(model)
    return 3.0 * (model.n_layers * (attention + experts) + 2 * model.d_model * model.vocab_size)


def allocation_printed(model: Model) -> float:
    """App C, allocation, as printed: the values' product counted as 2 n d^2 a sequence."""
    attention, experts = allocation_parts(model, printed=True)
    return 3.0 * (model.n_layers * (attention + experts) + 2 * model.d_model * model.vocab_size)


def allocation_parts(model: Model, printed: bool = False) -> tuple[float, float]:
    """(C_A, C_E): forward FLOPs of attention and of experts a token and layer; r = C_E / C_A."""
    d, n = model.d_model, model.context
    values = 2 * d * d if printed else 2 * n * d
    attention = 4 * d * d + 4 * d * d * _rho(model) + 2 * n * d + values
    return attention, 2 * d * _router_columns(model) + 6 * d * _active_width(model)


def leverage(model: Model) -> float:
    """M of App I, leverage, corrected: output projection, shared experts in full, routed columns
    of the router; logits left out."""
    d, n = model.d_model, model.context
    router = 2 * d * model.ffn.n_experts if isinstance(model.ffn, MoE) else 0
    per_layer = (
        2 * d * d * (2 + 2 * _rho(model)) + 4 * n * d + 6 * d * _active_width(model) + router
    )
    return 3.0 * model.n_layers * per_layer


def leverage_printed(model: Model) -> float:
    """Eq 10 to 12, leverage, as printed: no output projection, no router, shared experts at
    4 d d_shared; logits counted."""
    d, n, ffn = model.d_model, model.context, model.ffn
    if isinstance(ffn, MoE):
        width = ffn.d_expert * (6 * ffn.top_k + 4 * ffn.n_shared)
    else:
        width = 6 * ffn.d_ffn
    per_layer = 2 * d * d * (1 + 2 * _rho(model)) + 4 * n * d + d * width
    return 3.0 * (model.n_layers * per_layer + 2 * d * model.vocab_size)


def six_n(model: Model) -> float:
    """6 N_active, with the output embedding and without the input's, whose look-up costs none."""
    return 6.0 * matmul_parameters(model)


def matmul_parameters(model: Model) -> int:
    """Active parameters that multiply a token: the input embedding and the norms do not."""
    parameters = count_parameters(model)
    unembedding = model.vocab_size * model.d_model
    return parameters.active - parameters.embeddings - parameters.norms + unembedding


CONVENTIONS: dict[str, Callable[[Model], float]] = {
    "sparsity": sparsity,
    "allocation": allocation,
    "allocation_printed": allocation_printed,
    "leverage": leverage,
    "leverage_printed": leverage_printed,
    "six_n": six_n,
}


def train_flops_per_token(model: Model, convention: Convention) -> float:
    """Training FLOPs (forward and backward) per token of ``model``."""
    return CONVENTIONS[convention](model)


def _rho(model: Model) -> float:
    return model.n_kv / model.n_heads


def _active_width(model: Model) -> int:
    """Hidden width that a token passes: active and shared experts side by side."""
    if isinstance(model.ffn, MoE):
        return model.ffn.d_expert * (model.ffn.top_k + model.ffn.n_shared)
    return model.ffn.d_ffn


def _router_columns(model: Model) -> int:
    # The allocation paper's E includes the shared expert.
    return model.ffn.n_experts + model.ffn.n_shared if isinstance(model.ffn, MoE) else 0
