"""How evenly experts are used, by the tokens that each of them got (sectional, sec 5.2.3).

Shapes: L layers or other groups, E experts.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def metrics(counts_LE: NDArray[np.int64], capacity_factor: float) -> dict[str, NDArray[Any]]:
    """Returns measure -> its value in each layer, (L,).

    With n_i assignments of expert i, p = n / sum n and capacity = factor * sum n / E:

    - cv: population coefficient of variation of tokens per expert
    - entropy: H(p) / ln E, 1 when uniform
    - kl: KL(p || uniform) = ln E - H(p), nats
    - overflow: sum max(0, n_i - capacity) / sum n
    - unused: 1 - sum min(n_i, capacity) / (E capacity)
    - never_used: experts without one token
    """
    E = counts_LE.shape[1]
    total_L1 = counts_LE.sum(1, keepdims=True)
    p_LE = counts_LE / total_L1
    entropy_L = -np.sum(p_LE * np.log(np.where(p_LE > 0, p_LE, 1.0)), axis=1)
    capacity_L1 = capacity_factor * total_L1 / E
    uniform = math.log(E)  # entropy of the uniform load
    return {
        "cv": p_LE.std(1) * E,
        "entropy": entropy_L / uniform if E > 1 else np.ones_like(entropy_L),
        "kl": uniform - entropy_L,
        "overflow": np.maximum(counts_LE - capacity_L1, 0).sum(1) / total_L1[:, 0],
        "unused": 1 - np.minimum(counts_LE, capacity_L1).sum(1) / (E * capacity_L1[:, 0]),
        "never_used": (counts_LE == 0).sum(1),
    }
