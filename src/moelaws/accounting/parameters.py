"""Parameters by group, total and active: exactly the tensors of the model that is built."""

from __future__ import annotations

from dataclasses import dataclass

from moelaws.spec.model import Model, MoE


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters by group. ``inactive_experts`` is the part of the routed experts
    that a token does not pass."""

    embedding: int
    unembedding: int  # 0 when tied
    attention: int
    router: int
    routed_experts: int
    shared_experts: int
    dense_ffn: int
    norms: int
    inactive_experts: int

    @property
    def total(self) -> int:
        """N_total, embeddings included."""
        return sum(self.groups().values())

    @property
    def active(self) -> int:
        """N_active, embeddings included: without the experts that a token does not pass."""
        return self.total - self.inactive_experts

    @property
    def embeddings(self) -> int:
        """Input and output embeddings."""
        return self.embedding + self.unembedding

    def groups(self) -> dict[str, int]:
        """Parameters by group; their sum is the total."""
        return {name: n for name, n in vars(self).items() if name != "inactive_experts"}


def count_parameters(model: Model) -> Parameters:
    """Parameters of ``model``, bias-free throughout."""
    d, layers = model.d_model, model.n_layers
    d_kv = d * model.n_kv // model.n_heads
    head = d // model.n_heads
    vocabulary = model.vocab_size * d
    router = routed = shared = dense = inactive = 0
    if isinstance(model.ffn, MoE):
        expert = 3 * d * model.ffn.d_expert
        router = layers * d * model.ffn.n_experts
        routed = layers * expert * model.ffn.n_experts
        shared = layers * expert * model.ffn.n_shared
        inactive = layers * expert * (model.ffn.n_experts - model.ffn.top_k)
    else:
        dense = layers * 3 * d * model.ffn.d_ffn
    return Parameters(
        embedding=vocabulary,
        unembedding=0 if model.tied_embeddings else vocabulary,
        attention=layers * (2 * d * d + 2 * d * d_kv),
        router=router,
        routed_experts=routed,
        shared_experts=shared,
        dense_ffn=dense,
        norms=layers * (2 * d + (2 * head if model.qk_norm else 0)) + d,
        inactive_experts=inactive,
    )
