"""The arms with their losses and loads, and the effects of choices."""

from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.studies.routing_choices.arms import NAMES, Arms, means

_ARMS = {
    "arm": "arm", "E": "experts", "k": "active", "C": "C", "D": "tokens", "lr": "rate",
    "N_active": "active parameters", "C_leverage": "C with the router", "seeds": "runs", "L": "L",
    "balance_cv": "variation of load", "balance_entropy": "entropy of load",
}  # fmt: skip
_EFFECTS = {
    "words": "choice", "tokens": "at equal tokens (%)", "tokens_low": "low", "tokens_high": "high",
    "tokens_se": "error by documents", "ratio": "time of a step", "time": "at equal time (%)",
    "time_low": "its low", "time_high": "its high",
}  # fmt: skip


def arms(inputs: Inputs) -> Tabular:
    """Sets each arm with its loss and the load of its experts."""
    rows = means(Arms(inputs).runs)
    rows["arm"] = rows["arm"].map(NAMES)
    return Tabular(rows[list(_ARMS)].rename(columns=_ARMS))


def effects(inputs: Inputs) -> Tabular:
    """Sets what each choice does to the loss, at equal tokens and at equal time."""
    return Tabular(inputs.derived("effects")[list(_EFFECTS)].rename(columns=_EFFECTS), digits=3)
