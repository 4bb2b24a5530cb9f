"""Tables of the gain from sparsity at equal budget, width and seed, and over the time of training.

Those of Fig 5 and 10 have scores on tasks over the loss, with the relation that was fitted.
"""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.scores import MEASURES
from moelaws.studies.sparsity.derived.scores import regress, regressors

REWEIGHTED = 50  # times, after which a trend of speeds stays


def contrasts(inputs: Inputs) -> pd.DataFrame:
    """Returns the contrasts with the densest model."""
    return inputs.derived("contrasts").query("S_against == S_against.min()")


def seed_spread(inputs: Inputs) -> pd.DataFrame:
    """Returns the ends of one standard error by the spread between seeds, for each budget."""
    rows = contrasts(inputs)
    every = pd.concat([rows, rows.assign(S=rows["S_against"])])
    band = every.groupby(["C", "S"])["seed_se"].max().reset_index()
    band["high"] = band.groupby("C")["seed_se"].transform("max")
    return band.assign(zero=0.0, low=-band["high"])


def fastest(inputs: Inputs) -> pd.DataFrame:
    """Returns the best run of each budget and sparsity with the ``time`` that it takes, seconds.

    The time leaves out evaluation, starts of processes, and what else the machine did.
    """
    runs = inputs.completed[inputs.completed["C"].notna()]
    best = runs.loc[runs.groupby(["C", "S"])["L"].idxmin()]
    return best.assign(time=best["D"] / usual_speed(runs)[best.index])


def usual_speed(runs: pd.DataFrame) -> pd.Series:
    """Returns tokens per second (n,), a power law of FLOPs a token and of 1 - S; NaN if unknown.

    It has the least sum of absolute errors, for a run beside other work is slower by factors. That
    is least squares, reweighted.
    """
    known = runs[runs["tokens_per_second"] > 0]
    y, one = np.log(known["tokens_per_second"].to_numpy(float)), np.ones(len(known))
    X = np.column_stack([np.log(known["C"] / known["D"]), np.log1p(-known["S"]), one])
    fitted, root = y, one
    for _ in range(REWEIGHTED):
        fitted = X @ np.linalg.lstsq(X * root[:, None], y * root, rcond=None)[0]
        root = np.maximum(np.abs(y - fitted), 1e-4) ** -0.5
    return pd.Series(np.exp(fitted), known.index).reindex(runs.index)


FAR = 0.5  # of the range of errors, beyond which guessing is written and not drawn
ASIDE = 0.03  # of the range of losses, from the last run to the bar of its error


def scored(inputs: Inputs, by: str) -> pd.DataFrame:
    """Returns the scores, each with ``guess``, the error by guessing, and the same in ``words``."""
    table = inputs.derived("downstream", by=by)
    error, chance = table.groupby("skill")["error"], table["chance"].where(table["chance"] < 1)
    least, most = error.transform("min"), error.transform("max")
    return table.assign(
        skill=table["skill"].str.replace("_", " "),
        guess=chance.where(chance - most < FAR * (most - least)),
        words=chance.map("; guessing: {:.3g}".format, na_action="ignore").fillna(""),
    )


def relations(inputs: Inputs, by: str) -> Rows:
    """Yields each score over the loss at each sparsity, as the regression has it."""
    yield pd.DataFrame(columns=["skill", "S", "L", *MEASURES])
    for skill, rows in scored(inputs, by).groupby("skill", sort=False):
        fits = {measure: regress(rows, measure) for measure in MEASURES}
        for S, own in rows.groupby("S"):
            L = np.linspace(own["L"].min(), own["L"].max(), 40)
            X = regressors(rows, L, np.full(len(L), S))
            y = {measure: X @ fit[0] for measure, fit in fits.items() if fit is not None}
            yield pd.DataFrame({"skill": skill, "S": S, "L": L, **y})


def usual_errors(inputs: Inputs, by: str) -> pd.DataFrame:
    """Returns the median error of a run's scores, to be drawn below them beside the last run.

    A bar at each run would hide the others, and most of the error is common to all runs.
    """
    bars = []
    for skill, rows in scored(inputs, by).groupby("skill", sort=False):
        place = {"skill": skill, "L": rows["L"].max() + ASIDE * np.ptp(rows["L"])}
        for measure in MEASURES:
            least, half = rows[measure].min(), rows[f"{measure}_se"].median()
            ends = {f"{measure}_low": least, f"{measure}_high": least + 2 * half}
            place |= {measure: least + half, **ends}
        bars.append(place)
    return pd.DataFrame(bars)
