"""The learning rates of each arm: among which its own was chosen, and whether it was the best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs
from moelaws.studies.sectional.arms import ARMS, RATES
from moelaws.tables.column import Column


@table(
    Column("arm", "string", "1", "sweep of the grid that names the architecture"),
    Column("lr", "float", "1", "peak learning rate"),
    Column("L", "float", "nats/token", "validation loss of one seed"),
    Column("L_se", "float", "nats/token", "its standard error, by document"),
    Column("chosen", "bool", "1", "whether the arm's other runs have this rate"),
    Column("best", "bool", "1", "whether no other rate has a lower loss"),
)
def derive(inputs: Inputs) -> Rows:
    """Makes a row for each arm and rate that was tried."""
    return pd.DataFrame(list(_rows(inputs)))


def _rows(inputs: Inputs) -> Iterator[dict[str, Any]]:
    for arm in ARMS:
        tried, chosen = inputs.sweep(RATES + arm), set(inputs.sweep(arm)["lr"])
        for _, run in tried.sort_values("lr", kind="stable").iterrows():
            yield {
                "arm": arm,
                **{name: run[name] for name in ("lr", "L", "L_se")},
                "chosen": run["lr"] in chosen,
                "best": run["L"] == tried["L"].min(),
            }


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Says which arms train at a rate that was not the best, or at an end of those tried."""
    lines = []
    for arm, rows in frame.groupby("arm", sort=False):
        best = rows.loc[rows["best"], "lr"].iloc[0]
        if not rows.loc[rows["best"], "chosen"].all():
            lines.append(
                f"{ARMS[str(arm)]}: the best rate tried is {best:g}, and it is not the one used"
            )
        if best in (rows["lr"].min(), rows["lr"].max()):
            lines.append(f"{ARMS[str(arm)]}: the best rate, {best:g}, is an end of those tried")
    return lines
