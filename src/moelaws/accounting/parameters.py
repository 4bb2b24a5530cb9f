"""Parameters by group, total and active: exactly the tensors of the model that is built."""

from __future__ import annotations

from dataclasses import dataclass

from moelaws.spec.model import Mlp, Model, MoE

MATRICES: dict[Mlp, int] = {"swiglu": 3, "gelu": 2}  # d_model x width each


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters by group. ``inactive_experts`` is the part of the routed experts,
    or of all that the slices have, that a token does not pass."""

    embedding: int
    unembedding: int  # 0 when tied
    attention: int
    router: int
    routed_experts: int
    shared_experts: int
    dense_ffn: int
    slices: int  # attention and MLPs of the blocks that are split over the embedding
    aggregation: int  # what brings their slices back to the full width
    norms: int
    inactive_experts: int

    @property
    def total(self) -> int:
        """Returns N_total, embeddings included."""
        return sum(self.groups().values())

    @property
    def active(self) -> int:
        """Returns N_active, embeddings included: without the experts that a token does not pass."""
        return self.total - self.inactive_experts

    @property
    def embeddings(self) -> int:
        """Returns the input and output embeddings."""
        return self.embedding + self.unembedding

    def groups(self) -> dict[str, int]:
        """Returns the parameters by group; their sum is the total."""
        return {name: n for name, n in vars(self).items() if name != "inactive_experts"}


def count_parameters(model: Model) -> Parameters:
    """Counts ``model``'s parameters. Only GELU MLPs have biases, which count in their group."""
    d, layers, moe_layers = model.d_model, model.n_full_layers, model.n_moe_layers
    head = model.width_of_head
    vocabulary = model.vocab_size * d
    ffn = model.ffn
    router = routed = shared = inactive = 0
    if isinstance(ffn, MoE):
        expert = mlp_parameters(ffn.mlp, d, ffn.d_expert)
        if ffn.route_by != "position":  # a router of chunks has what the first one sees beside it
            router = moe_layers * d * (ffn.n_experts + (ffn.route_by == "chunk"))
        routed = moe_layers * expert * ffn.n_experts
        inactive = moe_layers * expert * (ffn.n_experts - ffn.top_k)
        # Side by side they are one MLP, with one bias at its output.
        shared = moe_layers * mlp_parameters(ffn.mlp, d, ffn.n_shared * ffn.d_expert)
    dense = 0
    if ffn.d_ffn is not None:
        dense = (layers - moe_layers) * mlp_parameters(ffn.mlp, d, ffn.d_ffn)
    gains = 2 * d  # of a block: before the attention and before the MLP
    norms = layers * (gains + model.qk_norm * 2 * head) + d
    slices = aggregation = 0
    if split := model.slices:
        E, width = split.n_experts, d // split.n_experts
        expert = 4 * width**2 + mlp_parameters(ffn.mlp, width, split.d_expert)
        slices = model.n_sliced_layers * E * expert
        aggregation = model.n_sliced_layers * d * d * (split.aggregation == "projection")
        # Queries and keys: one head of each of the E experts.
        gains = model.n_sliced_layers * (gains + model.qk_norm * 2 * d // split.n_heads)
        norms += gains
        if split.positions == "chunks":
            inactive = (slices + aggregation + gains) * (E - 1) // E
    return Parameters(
        embedding=vocabulary,
        unembedding=0 if model.tied_embeddings else vocabulary,
        attention=layers * 2 * d * head * (model.n_heads + model.n_kv),
        router=router,
        routed_experts=routed,
        shared_experts=shared,
        dense_ffn=dense,
        slices=slices,
        aggregation=aggregation,
        norms=norms,
        inactive_experts=inactive,
    )


def mlp_parameters(mlp: Mlp, d_model: int, width: int) -> int:
    """Returns the parameters of one MLP; width 0 is no MLP.

    SwiGLU has 3 d w; GELU has 2 d w + w + d (Table 3, generalization).
    """
    if width == 0:
        return 0
    biases = width + d_model if mlp == "gelu" else 0
    return MATRICES[mlp] * d_model * width + biases
