"""What figures of published runs draw that read no fit: isoFLOP curves, optima, a ladder, rates."""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, records
from moelaws.analysis.inputs import Inputs, at
from moelaws.studies.public.derived import budgets, near

# Law of the table of rates -> its name
LAWS = {
    "step_law": "Step Law",
    "leverage": "leverage",
    "marin": "marin",
    "joint": "joint",
    "deepseek": "DeepSeek",
}
NAMES = {"dense": "dense models", "moe": "mixtures"}
SHOWN = 8  # the most budgets of a group
POINTS = 60  # of a curve


def isoflop(inputs: Inputs, groups: list[str]) -> Rows:
    """Yields the runs of each group's budgets, with their parabolas and optima.

    The ``kind`` of a row says which of them it is. Runs of a budget with too few sizes for a
    parabola are of the kind ``few``.
    """
    optima, runs = inputs.derived("optima"), inputs.derived("runs")
    for group in groups:
        every = [rows for rows in budgets(runs[runs["group"] == group]) if len(rows) > 2]
        for rows in every[:: -(-len(every) // SHOWN or 1)]:  # of many budgets every so many
            C = float(rows["C"].mean())
            best = at(optima[optima["group"] == group], "C", C)
            kinds = {"run" if len(best) else "few": rows}
            for N_star in best[best["inside"]]["N_star"].astype(float):
                fitted = near(rows)
                parabola = np.polyfit(np.log(fitted["N"]), np.log(fitted["loss"]), 2)
                N = np.geomspace(fitted["N"].min(), fitted["N"].max(), POINTS)
                for kind, x in (("parabola", N), ("optimum", np.array([N_star]))):
                    loss = np.exp(np.polyval(parabola, np.log(x)))
                    kinds[kind] = pd.DataFrame({"N": x, "loss": loss})
            about = {"group": group, "unit": rows["unit"].iloc[0], "budget": C}
            yield from (own.assign(**about, kind=kind) for kind, own in kinds.items())


def optima(inputs: Inputs, groups: list[str]) -> pd.DataFrame:
    """Returns the optima of ``groups``, which have their order, that are inside their range."""
    rows = inputs.derived("optima")
    rows = rows[rows["inside"] & rows["group"].isin(groups)]
    return rows.assign(group=pd.Categorical(rows["group"], groups))


def ladder(inputs: Inputs, dataset: str, floor: float) -> Rows:
    """Yields the runs of dense models and mixtures, their lines, and the leverage between them.

    The ``kind`` of a row says which of them it is. The leverage is a bar from the compute of a
    mixture to that of a dense model, at the median loss.
    """
    leverage = inputs.derived("leverage").query("floor == @floor")
    rows = inputs.completed[inputs.completed["dataset"] == dataset].sort_values("C")
    yield rows.assign(name=rows["kind"].map(NAMES), kind="run")
    for own in records(leverage):  # none if the data set is not here
        times, a, alpha = (own[name] for name in ("leverage", "coefficient", "alpha"))
        C = np.geomspace(rows["C"].min() / 2, rows["C"].max() * 2, POINTS)
        for name, factor in zip(NAMES.values(), (1.0, times), strict=True):
            L = floor + a * (factor * C) ** -alpha
            yield pd.DataFrame({"C": C, "L": L, "name": name, "kind": "line"})
        level = float(np.median(rows["L"]))
        dense = ((level - floor) / a) ** (-1 / alpha)
        words = f"{times:.1f} times ({own['low']:.1f} to {own['high']:.1f})"
        ends = {"C": [dense / times, dense], "L": level, "words": ["", words]}
        yield pd.DataFrame(ends).assign(name="equal loss", kind="leverage")


def by_laws(inputs: Inputs, quantity: str) -> pd.DataFrame:
    """Returns what published laws give for the ``quantity``, lr or batch, of the table of rates."""
    columns = {f"{quantity}_{law}": name for law, name in LAWS.items()}
    rows = inputs.derived("rates").rename(columns=columns)
    known = [name for name in columns.values() if name in rows]
    return rows.melt(["dataset", "C"], known, "law").dropna()
