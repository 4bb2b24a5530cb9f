"""Training FLOPs per token in the conventions of the papers.

A product of (a, b) with (b, c) takes 2 a b c FLOPs. Attention is counted in full, as all papers
do: each token attends to the whole context, though the mask hides half of it. Norms, rotations,
softmaxes, non-linearities, biases, gates and the embedding's look-up are not counted.

Each convention counts the products of ``forward_terms``, except for the terms that it leaves out
and those that it counts in its own way. All count the backward pass as twice the forward pass.
Formulas are written for SwiGLU; a GELU MLP is counted with its two matrices.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from moelaws.spec.grid import ConventionName
from moelaws.spec.model import Model, MoE

ATTENTION = (
    "queries", "keys_values", "scores", "values", "output", "slice_projections", "slice_scores",
    "aggregation",
)  # fmt: skip
FFN = ("router", "routed_experts", "shared_experts", "dense_ffn", "slice_ffn")
TERMS = (*ATTENTION, *FFN, "logits")
TRAINING = 3  # ratio of forward and backward pass to forward pass


def forward_terms(model: Model) -> dict[str, float]:
    """Returns the forward FLOPs per token of all layers' matrix products, by term."""
    return dict.fromkeys(TERMS, 0.0) | model.flops()


@dataclass(frozen=True)
class Convention:
    """What a paper counts, as deviations from the products that a forward pass computes."""

    left_out: tuple[str, ...] = ()  # terms that it does not count
    # Terms that it counts differently -> forward FLOPs per token of the whole model
    instead: Mapping[str, Callable[[Model], float]] = field(default_factory=dict)

    def forward(self, model: Model) -> dict[str, float]:
        """Returns forward FLOPs per token by term, as this convention counts them."""
        exact = forward_terms(model)
        return {
            term: self.instead[term](model) if term in self.instead else exact[term]
            for term in TERMS
            if term not in self.left_out
        }


def _router_with_shared(model: Model) -> float:
    """Counts router columns for shared experts too: the allocation paper's E includes them."""
    if not isinstance(model.ffn, MoE):
        return 0.0
    columns = model.ffn.n_experts + model.ffn.n_shared
    return forward_terms(model)["router"] * columns / model.ffn.n_experts


def _shared_without_gate(model: Model) -> float:
    if not isinstance(model.ffn, MoE):
        return 0.0
    width = model.ffn.n_shared * model.ffn.d_expert
    return 4.0 * model.n_moe_layers * model.d_model * width


CONVENTIONS: dict[ConventionName, Convention] = {
    # Eq 9, sparsity: n_kv = n_heads is assumed, the router dropped
    "sparsity": Convention(
        left_out=("router",),
        instead={"keys_values": lambda m: 4.0 * m.n_full_layers * m.d_model * m.d_attention},
    ),
    # App C, allocation, corrected: values 2 n^2 d a sequence
    "allocation": Convention(instead={"router": _router_with_shared}),
    # App C, allocation, as printed: values 2 n d^2 a sequence
    "allocation_printed": Convention(
        instead={
            "router": _router_with_shared,
            "values": lambda m: 2.0 * m.n_full_layers * m.d_model**2,
        },
    ),
    # M of App I, leverage, corrected, and the router, which its Table 12 seems to count:
    # non-embedding FLOPs, output projection, all matrices of shared experts
    "leverage": Convention(left_out=("logits",)),
    # M of App I, leverage, corrected, which counts no router; else as leverage
    "leverage_no_router": Convention(left_out=("logits", "router")),
    # Eq 10 to 12, leverage, as printed: no output projection, shared experts 4 d d_shared
    "leverage_printed": Convention(
        left_out=("output", "router"), instead={"shared_experts": _shared_without_gate}
    ),
    # 6 N_active (Kaplan et al., 2020): with the unembedding and the router, without the embedding,
    # whose look-up costs nothing
    "six_n": Convention(left_out=("scores", "values", "slice_scores")),
}


def train_flops_per_token(model: Model, convention: ConventionName) -> float:
    """Returns the training FLOPs (forward and backward) per token of ``model``."""
    return float(TRAINING * sum(CONVENTIONS[convention].forward(model).values()))


def attention_and_ffn(model: Model, convention: ConventionName) -> tuple[float, float]:
    """Returns the forward FLOPs per token (C_A, C_E) of App C, allocation; r = C_E / C_A.

    C_A is of all attention, C_E of all feed-forward layers, with routers if these are counted.
    """
    counted = CONVENTIONS[convention].forward(model)
    attention, ffn = (sum(counted.get(term, 0) for term in group) for group in (ATTENTION, FFN))
    return attention, ffn
