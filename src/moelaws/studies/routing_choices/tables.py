"""The arms with their losses and loads."""

from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.spec.from_toml import table_beside
from moelaws.studies.routing_choices.arms import NAMES, Arms, means

HEADINGS = table_beside(__file__)  # of the columns


def arms(inputs: Inputs) -> Tabular:
    """Sets each arm with its loss and the load of its experts."""
    rows = means(Arms(inputs).runs)
    rows["arm"] = rows["arm"].map(NAMES)
    return Tabular(rows[[*HEADINGS]].rename(columns=HEADINGS))
