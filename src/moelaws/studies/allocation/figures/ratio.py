"""Tables of the loss over the ratio r (F1, F6), and of the lines and coefficients of F2."""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.figures import axes
from moelaws.studies.allocation.derived.r_star import cells_of
from moelaws.studies.allocation.laws.ratio import ratio

PANELS = 2  # at most this many inner sparsities are drawn
FIT = "ratio_adjusted"
POINTS, BEYOND = 60, 1.3  # of a line, and the factor by which it reaches beyond the budgets


def valleys(inputs: Inputs, outer: bool) -> Rows:
    """Yields losses over r of the least and the largest sparsity (``outer``), or two between them.

    Valleys of different budgets lie far apart in loss. So the ``height`` of a loss is above the
    ``least`` of its budget, and shifted up by a fixed step from one budget to the next. The rows of
    the kind ``optimum`` repeat the least ones.
    """
    cells = [cell for cell in cells_of(inputs.completed) if len(cell.r) > 1]
    known = sorted({cell.S for cell in cells})
    shown = {*known[:1], *known[-1:]} if outer else {*known[1:-1][-PANELS:]}
    step = 0.5 * float(np.median([float(np.ptp(cell.L)) for cell in cells] or [0.0])) or 1.0
    yield pd.DataFrame(columns=["S", "C", "r", "height", "kind"])
    for S in sorted(shown):
        for i, cell in enumerate(cell for cell in cells if cell.S == S):
            about = {"S": S, "C": cell.C, "least": cell.L.min(), "shift": i * step}
            rows = pd.DataFrame({**about, "r": cell.r, "height": cell.L - cell.L.min() + i * step})
            yield rows.assign(kind="valley")
            yield rows.iloc[[int(np.argmin(cell.L))]].assign(kind="optimum")


def published(inputs: Inputs) -> Rows:
    """Returns the paper's r* over compute at each sparsity of the table r_star."""
    table = inputs.derived("r_star")
    C = np.geomspace(table["C"].min() / BEYOND, table["C"].max() * BEYOND, POINTS)
    return (pd.DataFrame({"C": C, "S": S, "r": ratio(C, S)}) for S in table["S"].unique())


def coefficients(inputs: FittedInputs, coefficient: str) -> Rows:
    """Yields a coefficient of r* over ``x`` = 1 - S: of each fit, by the second stage, published.

    The ``kind`` says which, and the ``label`` shows the power law of a line.
    """
    parts = inputs.fit(FIT).parts
    own = pd.DataFrame([vars(part.params[coefficient]) for part in parts]).astype(float)
    own = own.rename(columns={"estimate": "y"}).assign(x=[1 - part.where["S"] for part in parts])
    x = np.geomspace(own["x"].min() / 1.2, own["x"].max() * 1.2, POINTS)
    line = inputs.derived("stages", selection="adjusted", coefficient=coefficient)
    yield own.assign(kind="fitted", label="own runs")
    for kind, before in (("estimate", ""), ("published", "published\n")):
        prefactor, exponent = line[kind].to_numpy(float)
        label = f"{before}{axes.power(prefactor)}$\\,(1-S)^{{{exponent:.2f}}}$"
        drawn = {"x": x, "y": prefactor * x**exponent, "kind": kind, "label": label}
        if np.isfinite([prefactor, exponent]).all():
            yield pd.DataFrame(drawn)
