"""Tables of the cost model's optima and of the trained arms."""

import numpy as np
import pandas as pd

from moelaws.analysis.derive import records
from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.spec.from_toml import table_beside
from moelaws.studies.sectional.arms import ARMS, WIDTHS
from moelaws.studies.sectional.figures.arms import name_of
from moelaws.studies.sectional.figures.model import SHAPES
from moelaws.studies.sectional.laws.cost import CORRECTED, PRINTED, evaluate

OVERHEADS = (1e6, 1e7, 1e8, 1e9)
VERDICT = (
    "The whole number of experts of least cost is 1 in both forms, for every shape and overhead: a "
    "second expert always adds cost, and E sections cost more than E traditional experts."
)
# Column -> heading, of each table
ARMS_SHOWN, SPEED, CELL, BALANCE = table_beside(__file__).values()


def optima(inputs: Inputs) -> Tabular:
    """Sets E_opt by Eq 21, by the printed and the corrected cost, and what a second expert adds."""
    shapes = sorted(SHAPES, key=lambda shape: shape != (4096, 4096))  # the example comes first
    rows = [(*shape, alpha) for shape in shapes for alpha in OVERHEADS]
    at = pd.DataFrame(rows, columns=["L", "d0", "alpha"])
    printed, corrected = evaluate(PRINTED, **at), evaluate(CORRECTED, **at)
    single = evaluate(CORRECTED, E=1.0, **at)["S"]
    columns = {
        "Eq 21 as printed": printed["E_opt_eq21"],
        "least S as printed": printed["E_opt"],
        "least S corrected": corrected["E_opt"],
        "whole, printed": printed["E_whole"],
        "whole, corrected": corrected["E_whole"],
        "S(2)/S(1), corrected": 1 + corrected["S_step"] / single,
    }
    notes = ("Computed from the cost model; no run is behind it.", VERDICT)
    return Tabular(at.assign(**columns), digits=6, notes=notes)


def arms(inputs: Inputs) -> Tabular:
    """Sets each arm's loss, cost, speed and learning."""
    table = inputs.derived("arms")
    frame = table.assign(
        arm=[name_of(row).replace("$", "") for row in records(table)],
        steps_ratio=table["steps_ratio"].replace(np.inf, np.nan),
        peak_memory=table["peak_memory"] / 1e6,
    )
    note = (
        "The loss is in nats a token. Intervals (90 %) are over seeds, with the spread of all arms "
        "pooled. Steps over dense are those to the loss that the dense model has at 80 % of its "
        "steps, with an interval (from, to); the field is empty where a seed did not reach it, and "
        "reached counts those that did. Spikes are logged steps whose loss is far above those "
        "around them. Other runs ran beside each, so that speeds are rough."
    )
    return _headed(frame, ARMS_SHOWN, note)


def speed(inputs: Inputs) -> Tabular:
    """Sets the time and the memory of a training step of each architecture."""
    table = inputs.derived("speeds")
    names = {**ARMS, **{sweep: f"{ARMS[arm]}, equal widths" for arm, sweep in WIDTHS.items()}}
    frame = table.assign(
        sweep=table["sweep"].map(names),
        generation_seconds=table["generation_seconds"] * 1e3,
        state_bytes=table["state_bytes"] / 1e6,
        activation_bytes=table["activation_bytes"] / 1e6,
    )
    note = (
        f"Measured on: {', '.join(sorted(set(table['device'])))}. Intervals (at least 90 %) come "
        "from those of two medians over rounds. At equal widths times are over those of one slice. "
        "Generated is the time of a token at the end of one sequence; no keys and values are kept, "
        "so that the whole context is computed again. Over top-2 it has an interval (from, to)."
    )
    return _headed(frame, SPEED, note)


def balance(inputs: Inputs) -> Tabular:
    """Sets the measures of the experts' load on held-out text, means over layers and seeds."""
    table = inputs.derived("load")
    cells = table[table["held_out"]].groupby([*CELL], sort=False)
    means = cells[[*BALANCE]].mean().reset_index()
    note = (
        "Numbers are means over layers and seeds. Variation is the standard deviation of tokens "
        "per expert over their mean; entropy is over that of equal use; overflow is the share of "
        "assignments beyond a capacity of 1 or 1.25 times the mean, unused the share of that "
        "capacity left empty; never used counts experts of a layer. Every expert on slices sees "
        "every token, or its own chunk, so that its load is even by construction."
    )
    return _headed(means.assign(arm=means["arm"].map(ARMS)), CELL | BALANCE, note)


def _headed(frame: pd.DataFrame, headings: dict[str, str], note: str) -> Tabular:
    """Returns the columns of the ``frame`` that have headings, below these."""
    return Tabular(frame[[*headings]].rename(columns=headings), notes=[note])
