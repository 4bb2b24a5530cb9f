"""Learning rate and batch over parameters and tokens (Step Law, Li et al. 2025, 2503.04715)."""

import numpy as np

from moelaws.laws.base import Array, Columns, Formula
from moelaws.laws.leverage.hyperparameters import CONTEXT, OUTPUTS
from moelaws.laws.vocabulary import variable

# The coefficient, and the exponents of N (parameters) and D (tokens); the batch is in tokens.
LR = {"coefficient": 1.79, "N": -0.713, "D": 0.307}
BATCH = {"coefficient": 0.58, "D": 0.571}
BEYOND = (
    "Step Law sets learning rates or batches beyond the searches behind it, which had 0.2e9 to "
    "2.2e9 parameters and 2e9 to 100e9 tokens; a search of your own is safer "
    "(docs/hyperparameters.md)"
)


def is_searched(N: float, D: float) -> bool:
    """Returns whether the searches behind the law had models of ``N`` parameters on ``D`` tokens.

    ``BEYOND`` says it in words.
    """
    return 0.2e9 <= N <= 2.2e9 and 2e9 <= D <= 100e9


def _values(columns: Columns) -> dict[str, Array]:
    N, D = columns["N"], columns["D"]
    B = BATCH["coefficient"] * D ** BATCH["D"]
    lr = LR["coefficient"] * N ** LR["N"] * D ** LR["D"]
    return {"lr": lr, "B": B, "B_sequences": np.asarray(B / columns["context"])}


LAW = Formula(
    id="step_law",
    title="Learning rate and batch over parameters and tokens",
    source="Li et al. 2025 (Step Law), Eq 1",
    equation="lr = 1.79*N^-0.713*D^0.307, B = 0.58*D^0.571, B_sequences = B/context",
    latex=r"\eta = 1.79\, N^{-0.713} D^{0.307},\quad B = 0.58\, D^{0.571}",
    variables=(
        variable("N", "parameters without embeddings, all experts among them"),
        variable("D"),
        CONTEXT,
    ),
    outputs=OUTPUTS,
    function=_values,
    constants={f"{x}_{name}": law[name] for x, law in (("lr", LR), ("B", BATCH)) for name in law},
    errata=(
        "R: N of a mixture counts all experts. On the authors' runs of four mixtures (16 pairs of "
        "mixture and tokens) the law so read ends .004 nats above the best run of the search, and "
        ".025 with active parameters alone (benchmarks/step_law.py).",
    ),
)
