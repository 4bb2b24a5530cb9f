"""The two forms of the cost model, and the shapes at which figures and tables show it."""

from typing import Any

from moelaws.laws.base import Array
from moelaws.studies.sectional.laws import cost

PRINTED, CORRECTED = "as printed", "corrected"

# (L, d0): the example of the text, a shorter and a longer sequence, a narrower and a wider model.
SHAPES = ((512, 512), (4096, 512), (4096, 4096), (4096, 16384), (32768, 4096))
EXAMPLE = {"L": 4096.0, "d0": 4096.0, "alpha": 1e8}
EXPERTS = 8  # of the worked example


def evaluate(form: str, **columns: Any) -> dict[str, Array]:
    """Every result of the cost model in a ``form`` at ``columns``, which broadcast."""
    law = cost.VARIANTS["printed"] if form == PRINTED else cost.LAW
    return law.evaluate({}, columns)
