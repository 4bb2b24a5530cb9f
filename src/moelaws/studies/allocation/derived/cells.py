"""The runs of the sweep, grouped into a cell for each budget C and sparsity S."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from moelaws.analysis.minimum import Array

MIN_RATIOS = 3  # for a parabola


@dataclass(frozen=True)
class Cell:
    """The runs of one budget and sparsity, sorted by ratio.

    Attributes:
        rows: completed runs.
        r, L: (m,) ratios measured, and the mean loss over the seeds of each.
        seeds: (m,) runs behind each mean.
    """

    C: float
    S: float
    rows: pd.DataFrame
    r: Array
    L: Array
    seeds: Array


def cells_of(runs: pd.DataFrame) -> list[Cell]:
    """Groups the ``runs`` that name a budget by (C, S), sorted by S and then C."""
    named = runs[runs["C"].notna()]
    cells = []
    for _, rows in named.groupby([named["S_shared"].round(12), "C"], sort=True):
        means = rows.groupby("r", sort=True)["L"].agg(["mean", "size"])
        cells.append(
            Cell(
                float(rows["C"].iloc[0]),
                float(rows["S_shared"].iloc[0]),
                rows,
                means.index.to_numpy(float),
                means["mean"].to_numpy(float),
                means["size"].to_numpy(float),
            )
        )
    return cells
