"""The tables of the trained arms: what each came to, and how evenly its experts were used."""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.studies.sectional.arms import ARMS, WIDTHS
from moelaws.studies.sectional.figures.arms import name_of

_BALANCE = ("cv", "entropy", "kl", "overflow_1", "unused_1", "overflow_1.25", "unused_1.25")


def arms(inputs: Inputs) -> Tabular:
    """Sets each arm's loss, cost, speed and learning."""
    table = inputs.derived("arms")
    frame = pd.DataFrame(
        {
            "arm": [name_of(row).replace("$", "") for _, row in table.iterrows()],
            "d": table["d_model"],
            "positions": table["context"],
            "seeds": table["n_seeds"],
            "lr": table["lr"],
            "FLOPs a token": table["flops_per_token"],
            "parameters": table["N_total"],
            "active": table["N_active"],
            "loss": table["L"],
            "perplexity": table["perplexity"],
            "less dense": table["difference"],
            "low": table["low"],
            "high": table["high"],
            "steps over dense": table["steps_ratio"].replace(np.inf, np.nan),
            "from": table["steps_low"],
            "to": table["steps_high"],
            "reached": table["reached"],
            "spikes": table["spikes"],
            "tokens/s": table["tokens_per_second"],
            "memory (MB)": table["peak_memory"] / 1e6,
        }
    )
    note = (
        "The loss is in nats a token. Intervals (90 %) are over seeds, with the spread of all arms "
        "pooled. Steps over dense are those to the loss that the dense model has at 80 % of its "
        "steps, with an interval (from, to); the field is empty where a seed did not reach it, and "
        "reached counts those that did. Spikes are logged steps whose loss is far above those "
        "around them. Other runs ran beside each, so that speeds are rough."
    )
    return Tabular(frame, notes=[note])


def speed(inputs: Inputs) -> Tabular:
    """Sets the time and the memory of a training step of each architecture."""
    table = inputs.derived("speeds")
    names = {**ARMS, **{sweep: f"{ARMS[arm]}, equal widths" for arm, sweep in WIDTHS.items()}}
    frame = pd.DataFrame(
        {
            "architecture": table["sweep"].map(names),
            "E": table["E"],
            "dense layers": table["n_dense_layers"],
            "d": table["d_model"],
            "positions": table["context"],
            "FLOPs a token": table["flops_per_token"],
            "tokens/s": table["tokens_per_second"],
            "tokens/s, forward": table["evaluation_tokens_per_second"],
            "time over dense": table["ratio"],
            "low": table["low"],
            "high": table["high"],
            "state (MB)": table["state_bytes"] / 1e6,
            "activations (MB)": table["activation_bytes"] / 1e6,
        }
    )
    note = (
        f"Measured on: {', '.join(sorted(set(table['device'])))}. Intervals (at least 90 %) come "
        "from those of two medians over rounds. At equal widths, times are over those of one slice."
    )
    return Tabular(frame, notes=[note])


def balance(inputs: Inputs) -> Tabular:
    """Sets the measures of the experts' load on held-out text, means over layers and seeds."""
    table = inputs.derived("load")
    table = table[table["held_out"]]
    keys = ["arm", "d_model", "context", "E", "n_dense_layers"]
    means = table.groupby(keys, sort=False)[[*_BALANCE, "never_used"]].mean().reset_index()
    frame = pd.DataFrame(
        {
            "arm": means["arm"].map(ARMS),
            "d": means["d_model"],
            "positions": means["context"],
            "experts": means["E"],
            "dense layers": means["n_dense_layers"],
            "variation": means["cv"],
            "entropy": means["entropy"],
            "KL (nats)": means["kl"],
            "overflow, 1": means["overflow_1"],
            "unused, 1": means["unused_1"],
            "overflow, 1.25": means["overflow_1.25"],
            "unused, 1.25": means["unused_1.25"],
            "never used": means["never_used"],
        }
    )
    note = (
        "Numbers are means over layers and seeds. Variation is the standard deviation of tokens "
        "per expert over their mean; entropy is over that of equal use; overflow is the share of "
        "assignments beyond a capacity of 1 or 1.25 times the mean, unused the share of that "
        "capacity left empty; never used counts experts of a layer. Every expert on slices sees "
        "every token, or its own chunk, so that its load is even by construction."
    )
    return Tabular(frame, notes=[note])
