"""The paper tables of the published runs: coefficients (T3), cut-offs and errors."""

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.studies.routing.routers import CUTOFF, ROUTERS


def coefficients(inputs: FittedInputs) -> Tabular:
    """Sets T3: the coefficients of Eq 1, printed, by the paper's objective and by ours."""
    sizes, tables = inputs.derived("sizes").set_index("quantity"), []
    for router in ROUTERS:
        rows = inputs.coefficients(router.fit).assign(router=router.name)
        holds = rows["published"].between(rows["low"], rows["high"])
        rows = rows.assign(holds=holds.map({True: "yes", False: "no"}))
        rows = rows.join(
            sizes[sizes["router"] == router.name][["low", "high"]].add_suffix("_sizes")
        )
        tables.append(rows.join(inputs.coefficients(router.huber).add_suffix("_huber")))
    level = f"{inputs.fit(ROUTERS[0].fit).level:.0%}"
    headings = {
        "router": "Router",
        "name": "Coefficient",
        "published": "Printed",
        "estimate": "Squared",
        "low": f"Low ({level})",
        "high": f"High ({level})",
        "holds": "Holds the printed",
        "low_sizes": "Low (over sizes)",
        "high_sizes": "High (over sizes)",
        "estimate_huber": "Huber",
        "low_huber": "Low (Huber)",
        "high_huber": "High (Huber)",
    }
    frame = pd.concat(tables)[[*headings]].rename(columns=headings)
    fits = [inputs.fit(router.fit).group({}) for router in ROUTERS]
    counts = ", ".join(f"{router.name} {p.n}" for router, p in zip(ROUTERS, fits, strict=True))
    notes = (
        f"Fitted runs, dense ones among them: {counts}. Squared: least squares of the log loss, "
        f"the paper's objective ({fits[0].intervals}). Huber: ours, a sum of Huber losses at "
        "delta = 0.001, intervals by bootstrap over runs.",
        _condition(inputs.derived("sizes")),
        "The paper prints coefficients to three decimals.",
    )
    return Tabular(frame, notes=notes)


def cutoffs(inputs: Inputs) -> Tabular:
    """Sets the base size at which routing stops helping, by each fit, printed and stated."""
    over_sizes = inputs.derived("sizes").set_index("quantity").loc[CUTOFF].set_index("router")
    ends = over_sizes[["low", "high"]].add_suffix("_sizes")
    table = inputs.derived("cutoffs").join(ends, on="router")
    # The refits that leave a size out are by the paper's objective.
    table.loc[table["objective"] != "squared", ["low_sizes", "high_sizes"]] = np.nan
    (level,) = table["level"].unique()
    sizes = {
        "Fitted": "log10_N",
        f"Low ({level:.0%})": "low",
        f"High ({level:.0%})": "high",
        "Low (over sizes)": "low_sizes",
        "High (over sizes)": "high_sizes",
        "By printed b and c": "printed",
        "Stated in the text": "stated",
    }
    names = {"squared": "squared (the paper's)", "huber": "Huber (ours)"}
    columns = {
        "Router": table["router"],
        "Objective": table["objective"].map(names),
        "Runs": table["n"],
        **{name: 10.0 ** table[column] for name, column in sizes.items()},
    }
    notes = (
        "Base parameters without embeddings, 10^(-b/c). The largest published model has 1.3e9: all "
        "of these are extrapolations, and they hold at 130e9 training tokens alone.",
        _condition(inputs.derived("sizes")),
    )
    return Tabular(pd.DataFrame(columns), digits=3, notes=notes)


def _condition(over_sizes: pd.DataFrame) -> str:
    """Returns the note on what the two kinds of intervals rest on."""
    return (
        "Low and High with a level take the runs' residuals as independent, which they are not: "
        "those of one base size err together. Low and High (over sizes) allow for that: they are "
        f"of a jackknife, which fits anew without each of the {over_sizes['sizes'].iloc[0]} base "
        "sizes in turn. Neither kind is the wider for all coefficients, and neither knows how Eq 1 "
        "errs beyond these sizes."
    )
