"""What figures draw: effects of choices, the load of the experts, and losses over compute."""

import pandas as pd

from moelaws.analysis.derive import Rows
from moelaws.analysis.inputs import Inputs
from moelaws.studies.routing_choices.arms import (
    ARMS,
    BASE,
    BEST,
    MUON,
    SHUFFLED,
    TOP_K,
    Arms,
    means,
)

NAMES = {BASE: "AdamW", MUON: "Muon", SHUFFLED: "AdamW, shuffled text"}


def effects(inputs: Inputs) -> pd.DataFrame:
    """Returns by how many percent each arm's loss is above the base's, with its interval."""
    arms = Arms(inputs)
    shown = [arm for arm in ARMS if arm in set(arms.runs["arm"]) - {BASE, SHUFFLED}]
    ends = [arms.effect(arm).interval for arm in shown]
    rows = pd.DataFrame(ends, columns=["effect", "low", "high"])
    return rows.assign(name=[ARMS[arm] for arm in shown])


def loads(inputs: Inputs) -> pd.DataFrame:
    """Returns how unevenly each arm uses its experts, at the budget of most arms."""
    runs = Arms(inputs).runs
    rows: pd.DataFrame = means(runs[runs["arm"].isin(ARMS)])
    rows = rows[rows["C"] == rows["C"].mode().max()]
    names = [f"{ARMS[arm]}, $k$ = {k}" for arm, k in zip(rows["arm"], rows["k"], strict=True)]
    return rows.assign(name=names)


def optimizers(inputs: Inputs) -> Rows:
    """Yields the runs of both optimizers, ``best`` at the best rate of each budget."""
    arms = Arms(inputs)
    for arm in (BASE, MUON):
        own = arms.runs[(arms.runs["k"] == TOP_K) & (arms.runs["arm"] == BEST[arm])]
        rows = pd.concat([arms.tried(arm).assign(best=False), own.assign(best=True)])
        yield rows.assign(name=NAMES[arm])


def texts(inputs: Inputs) -> pd.DataFrame:
    """Returns the runs of the base on text and on shuffled text."""
    runs = Arms(inputs).runs
    runs = runs[(runs["k"] == TOP_K) & runs["arm"].isin([BASE, SHUFFLED])]
    return runs.assign(name=runs["arm"].map(NAMES))
