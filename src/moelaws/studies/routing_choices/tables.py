"""The arms with their losses and loads."""

from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.studies.routing_choices.arms import NAMES, Arms, means

_ARMS = {
    "arm": "arm", "E": "experts", "k": "active", "C": "C", "D": "tokens", "lr": "rate",
    "N_active": "active parameters", "C_leverage": "C with the router", "seeds": "runs", "L": "L",
    "balance_cv": "variation of load", "balance_entropy": "entropy of load",
}  # fmt: skip


def arms(inputs: Inputs) -> Tabular:
    """Sets each arm with its loss and the load of its experts."""
    rows = means(Arms(inputs).runs)
    rows["arm"] = rows["arm"].map(NAMES)
    return Tabular(rows[list(_ARMS)].rename(columns=_ARMS))
