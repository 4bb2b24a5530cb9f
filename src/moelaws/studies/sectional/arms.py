"""The arms of the paper's plan (sec 5.1), a sweep of the grid each, in the order of figures."""

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.tables.column import Column

# Sweep -> name in figures and tables.
ARMS = {
    "dense": "dense",
    "shallow": "dense, half the blocks",
    "top1": "mixture, top-1",
    "top2": "mixture, top-2",
    "slice_all": "slices, all positions",
    "slice_chunks": "slices, chunks of positions",
    "by_layer": "experts above dense layers",
    "position": "chunks by their place",
    "chunk": "chunks by a router",
    "chunk_balanced": "chunks by a router, balanced",
    "both": "chunks, above dense layers",
}
DENSE, SHALLOW = "dense", "shallow"
LEARNED, BALANCED = "chunk", "top2"  # a router without a balance loss, and one with it
PLACED = "position"  # chunks of which each goes to an expert by its place
CHUNKS = (PLACED, LEARNED)
SLICES = ("slice_all", "slice_chunks")  # the two readings of the paper's sec 2.2 and 3.2
DIVIDED = ("by_layer", "both")  # into dense layers below and experts above
RATES = "rates_"  # begins the name of the sweep of learning rates from which an arm's was chosen
# Reading -> the sweep of slices at equal widths.
WIDTHS = {"slice_all": "widths_all", "slice_chunks": "widths_chunks"}
SIZE = ["d_model", "context", "D"]  # arms that are compared agree in these
ARM = Column("arm", "string", "sweep of the grid that names the architecture")
SHAPE = ["E", "n_dense_layers"]  # runs of an arm that agree in these, too, differ in seed alone


def of_arms(inputs: Inputs) -> pd.DataFrame:
    """Returns the completed runs of all arms in their order, with the arm of each."""
    return pd.concat([inputs.sweep(arm).assign(arm=arm) for arm in ARMS], ignore_index=True)


def widest(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of the widest model, at its longest sequence."""
    for column in SIZE[:2]:
        table = table[table[column] == table[column].max()]
    return table


def middle(table: pd.DataFrame, column: str = "n_dense_layers") -> pd.DataFrame:
    """Returns each arm's rows with the middle one of its numbers of dense layers, or of slices."""
    numbers = table.groupby("arm")[column]
    return table[table[column] == numbers.transform(lambda n: np.unique(n)[n.nunique() // 2])]
