"""The gain from sparsity at equal budget, width and seed: each sparse run less the densest one."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from moelaws.analysis.contrasts import BY_SEEDS, contrast_errors
from moelaws.analysis.derive import Row, Rows, of_runs, table
from moelaws.analysis.inputs import Inputs
from moelaws.tables.column import Column


@table(
    Column("against", "string", "1", "identity of the densest run of this budget, width and seed"),
    *of_runs("run_id", "C", "d_model", "seed", "S"),
    Column("S_against", "float", "1", "sparsity of the densest run"),
    Column("difference", "float", "nats/token", "loss of the run less that of the densest one"),
    Column("paired_se", "float", "nats/token", "its error by documents, paired", True),
    Column("unpaired_se", "float", "nats/token", "its error if each loss had its own text", True),
    Column("seed_se", "float", "nats/token", f"its error {BY_SEEDS}", True),
)
def derive(inputs: Inputs) -> Rows:
    """Returns a row for each tuned run of a budget that is sparser than the densest one.

    Both agree in every setting but the number of experts and the steps, which follow from it. Runs
    whose configuration is not on record have none.
    """
    runs = inputs.derived("tuned").sort_values("S", kind="stable")
    groups = runs.groupby(["C", "recipe", "seed"])
    records = [row for _, rows in groups for row in _contrasts(inputs, rows)]
    return sorted(records, key=lambda r: [r[name] for name in ("C", "d_model", "seed", "S")])


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Says where the densest run is missing, and how many contrasts have no paired error."""
    lines = [
        f"C={C:.3g}, d_model={d_model:g}, seed={seed:g}: runs are compared with S={S:g}, for the "
        "densest run did not complete"
        for (C, d_model, seed, S), _ in frame.groupby(["C", "d_model", "seed", "S_against"])
        if frame["S_against"].min() < S
    ]
    if missing := int(frame["paired_se"].isna().sum()):
        lines.append(
            f"{missing} of {len(frame)} contrasts have no paired error: the losses by document of "
            "their runs are missing or damaged"
        )
    return lines


def _contrasts(inputs: Inputs, rows: pd.DataFrame) -> Iterator[Row]:
    """Yields the contrasts with the first of the ``rows``, which are sorted by S."""
    densest = rows.iloc[0]
    errors = contrast_errors(inputs, rows["run_id"])
    for place, (_, row) in enumerate(rows.iterrows()):
        if row["S"] == densest["S"]:
            continue
        weights = np.zeros(len(rows))
        weights[[place, 0]] = 1.0, -1.0
        own = {"against": densest["run_id"], "S_against": densest["S"]}
        own |= {"difference": row["L"] - densest["L"], "seed_se": float(errors.seeds(weights))}
        own["paired_se"] = float(errors.documents(weights))
        yield {**row, **own, "unpaired_se": float(np.hypot(row["L_se"], densest["L_se"]))}
