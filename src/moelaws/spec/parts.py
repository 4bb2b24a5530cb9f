"""What a part of a model is, and the plain ones: dense layers, and slices of the embedding.

A part is one class: its settings, its parameters and its FLOPs. A grid may set each of its fields
(``spec.grid``), and the module of ``moelaws.model`` takes the settings as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from moelaws.spec.base import Frozen, Size

if TYPE_CHECKING:
    from moelaws.spec.model import Model

# swiglu: three matrices, no biases (Shazeer, 2020). gelu: two matrices with biases, the
# generalization paper's experts d -> w -> d.
Mlp = Literal["swiglu", "gelu"]
MATRICES: dict[Mlp, int] = {"swiglu": 3, "gelu": 2}  # d_model x width each
SlicePositions = Literal["all", "chunks"]
Aggregation = Literal["projection", "concatenation"]


class Part(Frozen):
    """The settings of a part, and what all layers of a model that have it come to."""

    def parameters(self, model: Model) -> dict[str, int]:
        """Returns numbers of parameters by group, which ``accounting.parameters`` names."""
        raise NotImplementedError

    def flops(self, model: Model) -> dict[str, float]:
        """Returns forward FLOPs a token by term, which ``accounting.flops`` names."""
        raise NotImplementedError


def mlp_parameters(mlp: Mlp, d_model: int, width: int) -> int:
    """Returns the parameters of one MLP; width 0 is no MLP.

    SwiGLU has 3 d w; GELU has 2 d w + w + d (Table 3, generalization).
    """
    biases = width + d_model if mlp == "gelu" and width else 0
    return MATRICES[mlp] * d_model * width + biases


def mlp_flops(mlp: Mlp, d_model: int, width: int) -> int:
    """Returns the forward FLOPs a token of one MLP: 6 d w (SwiGLU) or 4 d w (GELU)."""
    return 2 * MATRICES[mlp] * d_model * width


class DenseFFN(Part):
    """A feed-forward layer of width ``d_ffn``: no router, no experts."""

    kind: Literal["dense"]
    d_ffn: Size
    mlp: Mlp = "swiglu"

    def parameters(self, model: Model) -> dict[str, int]:
        one = mlp_parameters(self.mlp, model.d_model, self.d_ffn)
        return {"dense_ffn": model.n_full_layers * one}

    def flops(self, model: Model) -> dict[str, float]:
        return {"dense_ffn": model.n_full_layers * mlp_flops(self.mlp, model.d_model, self.d_ffn)}


class Slices(Part):
    """Every ``every``-th block is split over the embedding (sectional, sec 2.2, 3.2 and Fig 4).

    Such a block has ``n_experts`` experts, each a transformer block of its own, attention and MLP,
    on its d_model / n_experts columns of the residual stream. The blocks between have the full
    width and see all positions: they are the paper's pre-expert blocks. What the experts add to
    their slices is brought back to the full width by a projection, or as it is.

    The paper can be read in two ways. In one every expert sees ``all`` positions of its slice. In
    the other expert e sees the e-th of n_experts equal ``chunks`` of the context alone, and what
    the others would see passes by.
    """

    n_experts: Size
    d_expert: Size  # hidden width of an expert's MLP
    n_heads: Size  # of an expert, which has as many key-value heads
    positions: SlicePositions = "all"
    aggregation: Aggregation = "projection"
    every: Size = 2

    def parameters(self, model: Model) -> dict[str, int]:
        """Counts attention, MLPs and projection of a block, and two gains a column.

        QK-norm adds those of queries and keys: one head of each expert.
        """
        d, E, layers = model.d_model, self.n_experts, model.n_sliced_layers
        width = d // E
        expert = 4 * width**2 + mlp_parameters(model.ffn.mlp, width, self.d_expert)
        counts = {
            "slices": layers * E * expert,
            "aggregation": layers * d * d * (self.aggregation == "projection"),
            "norms": layers * (2 * d + model.qk_norm * 2 * d // self.n_heads),
        }
        passed_by = E - 1 if self.positions == "chunks" else 0
        return {**counts, "inactive_experts": sum(counts.values()) * passed_by // E}

    def flops(self, model: Model) -> dict[str, float]:
        """Counts the products of a block in E slices of width s = d / E.

        Where each of the E experts sees all n positions: projections 8 s^2 E = 8 d^2 / E (queries,
        keys, values and output), scores 4 n d (with the weights times V), slice_ffn 6 s w E, and
        aggregation 2 d^2. Where an expert sees a chunk of n / E positions, a token passes one
        expert: all are E times less, and scores another E times, for there are E times fewer
        positions to meet.
        """
        E, width = self.n_experts, model.d_model // self.n_experts
        chunks = E if self.positions == "chunks" else 1
        experts = model.n_sliced_layers * (E // chunks)  # that a token passes
        joined = model.d_model if self.aggregation == "projection" else 0
        return {
            "slice_projections": experts * 8 * width**2,
            "slice_scores": experts * 4 * (model.context // chunks) * width,
            "slice_ffn": experts * mlp_flops(model.ffn.mlp, width, self.d_expert),
            "aggregation": experts * 2 * width * joined,
        }
