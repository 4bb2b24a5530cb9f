"""Parts of a model: what they are, and two of them, dense layers and slices of the embedding.

A part is one class with its settings, its parameters and its FLOPs. A grid may set each of its
fields (``spec.grid``), and the part's module in ``moelaws.model`` takes the settings as they are.
"""

from typing import TYPE_CHECKING, Literal

from moelaws.spec.base import Frozen, Size

if TYPE_CHECKING:
    from moelaws.spec.model import Model

# swiglu: three matrices, no biases (Shazeer, 2020). gelu: two matrices with biases, the
# generalization paper's experts d -> w -> d.
Mlp = Literal["swiglu", "gelu"]
MATRICES = {"swiglu": 3, "gelu": 2}  # of d_model x width each
SlicePositions = Literal["all", "chunks"]
Aggregation = Literal["projection", "concatenation"]


class Part(Frozen):
    """The settings of a part, and the counts over all layers of a model that have it."""

    def parameters(self, model: "Model") -> dict[str, int]:
        """Returns the numbers of parameters by group, as ``accounting.parameters`` names these."""
        raise NotImplementedError

    def flops(self, model: "Model") -> dict[str, float]:
        """Returns the forward FLOPs per token by term, as ``accounting.flops`` names these."""
        raise NotImplementedError


def mlp_parameters(mlp: Mlp, d_model: int, width: int) -> int:
    """Returns the parameters of one MLP; width 0 is no MLP.

    SwiGLU has 3 d w of them, GELU 2 d w + w + d (Table 3, generalization).
    """
    biases = width + d_model if mlp == "gelu" and width else 0
    return MATRICES[mlp] * d_model * width + biases


def mlp_flops(mlp: Mlp, d_model: int, width: int) -> int:
    """Returns the forward FLOPs per token of one MLP: 6 d w (SwiGLU) or 4 d w (GELU)."""
    return 2 * MATRICES[mlp] * d_model * width


class DenseFFN(Part):
    """A feed-forward layer of width ``d_ffn``: no router, no experts."""

    kind: Literal["dense"]
    d_ffn: Size
    mlp: Mlp = "swiglu"

    def parameters(self, model: "Model") -> dict[str, int]:
        one = mlp_parameters(self.mlp, model.d_model, self.d_ffn)
        return {"dense_ffn": model.n_full_layers * one}

    def flops(self, model: "Model") -> dict[str, float]:
        return {"dense_ffn": model.n_full_layers * mlp_flops(self.mlp, model.d_model, self.d_ffn)}


class Slices(Part):
    """Every ``every``-th block is split over the embedding (sectional, sec 2.2, 3.2 and Fig 4).

    Such a block has ``n_experts`` experts. Each is a transformer block of its own (attention and
    MLP) on its d_model / n_experts columns of the residual stream. The blocks between have the full
    width and see all positions; they are the paper's pre-expert blocks. What the experts add to
    their slices returns to the full width by a projection or by concatenation.

    The paper can be read in two ways. In one, every expert sees ``all`` positions of its slice. In
    the other, expert e sees only the e-th of n_experts equal ``chunks`` of the context, and the
    other positions of its slice pass unchanged.
    """

    n_experts: Size
    d_expert: Size  # hidden width of an expert's MLP
    n_heads: Size  # heads of each expert, which has as many key-value heads
    positions: SlicePositions = "all"
    aggregation: Aggregation = "projection"
    every: Size = 2

    def parameters(self, model: "Model") -> dict[str, int]:
        """Counts a block's attention, MLPs and projection, and two gains for each column.

        QK-norm adds the gains of one query head and one key head for each expert.
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

    def flops(self, model: "Model") -> dict[str, float]:
        """Counts the products of a block in E slices of width s = d / E.

        Where each of the E experts sees all n positions, a block has 8 s^2 E = 8 d^2 / E for the
        projections (queries, keys, values and output), 4 n d for scores (with the weights times V),
        6 s w E for slice_ffn and 2 d^2 for aggregation. Where an expert sees a chunk of n / E
        positions, a token passes one expert: all terms are E times smaller, and the scores E times
        smaller again, because a chunk has E times fewer positions.
        """
        E, width = self.n_experts, model.d_model // self.n_experts
        chunks = E if self.positions == "chunks" else 1
        experts = model.n_sliced_layers * (E // chunks)  # passed by a token
        joined = model.d_model if self.aggregation == "projection" else 0
        return {
            "slice_projections": experts * 8 * width**2,
            "slice_scores": experts * 4 * (model.context // chunks) * width,
            "slice_ffn": experts * mlp_flops(model.ffn.mlp, width, self.d_expert),
            "aggregation": experts * 2 * width * joined,
        }
