"""A fit as tests ask for it: what they do not name is what an entry leaves out."""

import numpy as np

from moelaws.fitting.fit import fit
from moelaws.fitting.objective import Objective
from moelaws.spec.fit import Fit


def entry(law, **fields):
    return Fit(**{"name": "f", "law": law.ref, "mapping": {}} | fields)


def fitted(law, table, **fields):
    """Returns the report of ``law`` fitted to ``table``."""
    return fit(law, table, entry(law, **fields))


def fitted_group(law, table, **fields):
    """Returns the report's one part."""
    (group,) = fitted(law, table, **fields).parts
    return group


def objective_of(law, table):
    """Returns the sum of Huber losses of ``law`` over ``table``."""
    columns = {v.name: table[v.name].to_numpy() for v in law.variables}
    return Objective(law.model(columns), np.log(table[law.response.name].to_numpy()), 1e-3)
