"""Parameters by group, total and active. They are exactly the tensors of the built model."""

from dataclasses import dataclass

from moelaws.spec.model import Model


@dataclass(frozen=True)
class Parameters:
    """Numbers of parameters by group."""

    embedding: int
    unembedding: int  # 0 when tied
    attention: int
    router: int = 0
    routed_experts: int = 0
    shared_experts: int = 0
    dense_ffn: int = 0
    slices: int = 0  # attention and MLPs of the blocks that are split over the embedding
    aggregation: int = 0  # projections of their slices back to the full width
    norms: int = 0
    # Parameters of the routed experts or slices that a token does not pass.
    inactive_experts: int = 0

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
        return self.embedding + self.unembedding

    def groups(self) -> dict[str, int]:
        """Returns the parameters by group; their sum is the total."""
        return {name: n for name, n in vars(self).items() if name != "inactive_experts"}


def count_parameters(model: Model) -> Parameters:
    """Counts ``model``'s parameters; the biases of GELU MLPs count in the MLPs' group."""
    return Parameters(**model.parameters())
