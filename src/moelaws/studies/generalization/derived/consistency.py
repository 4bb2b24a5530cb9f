"""How consistent a model and a data exponent are, and those that the paper's Table 5 has."""

from __future__ import annotations

from typing import Any

import numpy as np

from moelaws.laws.joint.loss import VARIANTS
from moelaws.studies.generalization.laws import exponents

OWN, PUBLISHED = "own", "published"

# Two exponents and what the law ``generalization.exponents:consistency`` computes of them.
QUANTITIES = (
    "alpha_N", "alpha_D", "alpha_C", "alpha_D_predicted", "alpha_C_predicted", "delta_D", "delta_C",
    "relative_delta_D", "relative_delta_C", "kappa",
)  # fmt: skip


def consistency(alpha_N: Any, alpha_D: Any) -> dict[str, Any]:
    """Returns each of ``QUANTITIES`` at two exponents, with their shape.

    The identities hold of exponents above 0 alone: where one is not, they are NaN.
    """
    a, b = (np.where(np.asarray(x, float) > 0, x, np.nan) for x in (alpha_N, alpha_D))
    law = exponents.VARIANTS["consistency"]
    return {"alpha_N": a, "alpha_D": b, **law.evaluate({}, {"alpha_N": a, "alpha_D": b})}


def published() -> dict[float, tuple[float, float]]:
    """Returns alpha_N and alpha_D of each number of experts E (generalization, Table 5).

    The paper reads them from the fits of Ludziejewski et al. 2025, Table 4.
    """
    fits = {float(name.removeprefix("E")): law.published for name, law in VARIANTS.items()}
    return {E: (-values["mu"], -values["nu"]) for E, values in fits.items() if values is not None}
