"""Tables of the cost model (optima, costs) and of the trained arms."""

from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.studies.sectional.arms import ARMS, WIDTHS
from moelaws.studies.sectional.figures.arms import name_of
from moelaws.studies.sectional.figures.model import EXAMPLE, SHAPES
from moelaws.studies.sectional.laws.cost import CORRECTED, PRINTED, evaluate

EXPERTS = 8  # of the worked example
# The results of the cost model: name, words, equation.
SECTIONAL = (
    ("projections", "projections", "6"),
    ("attention_before", "attention before the experts", "11"),
    ("attention_experts", "attention of the experts", "13"),
    ("overhead", "overhead", "19"),
    ("S", "whole cost", "20"),
)
OVERHEADS = (1e6, 1e7, 1e8, 1e9)
VERDICT = (
    "The whole number of experts of least cost is 1 in both forms, for every shape and overhead: a "
    "second expert always adds cost, and E sections cost more than E traditional experts."
)
# Column -> heading of the table of balance
_CELL = {"arm": "arm", "d_model": "d", "context": "positions", "E": "experts"}
_BALANCE = {
    "cv": "variation",
    "entropy": "entropy",
    "kl": "KL (nats)",
    **{f"{name}_{c}": f"{name}, {c}" for c in ("1", "1.25") for name in ("overflow", "unused")},
    "never_used": "never used",
}


def optima(inputs: Inputs) -> Tabular:
    """Sets E_opt by Eq 21, by the printed and the corrected cost, and what a second expert adds."""
    rows = []
    for L, d0 in ((4096, 4096), *(shape for shape in SHAPES if shape != (4096, 4096))):
        for alpha in OVERHEADS:
            at = {"L": float(L), "d0": float(d0), "alpha": alpha}
            printed, corrected = evaluate(PRINTED, **at), evaluate(CORRECTED, **at)
            single = evaluate(CORRECTED, E=1.0, **at)["S"]
            row = {
                "L": L,
                "d0": d0,
                "alpha": alpha,
                "Eq 21 as printed": float(printed["E_opt_eq21"]),
                "least S as printed": float(printed["E_opt"]),
                "least S corrected": float(corrected["E_opt"]),
                "whole, printed": float(printed["E_whole"]),
                "whole, corrected": float(corrected["E_whole"]),
                "S(2)/S(1), corrected": float(1 + corrected["S_step"] / single),
            }
            rows.append(row)
    notes = ("Computed from the cost model; no run is behind it.", VERDICT)
    return Tabular(pd.DataFrame(rows), digits=6, notes=notes)


def costs(inputs: Inputs) -> Tabular:
    """Sets the costs of one and of eight experts, equation by equation."""
    L, d0 = EXAMPLE["L"], EXAMPLE["d0"]
    rows = []
    for E in (1.0, float(EXPERTS)):
        printed, corrected = (evaluate(form, E=E, **EXAMPLE) for form in (PRINTED, CORRECTED))
        plain, attention = E * (3 * L * d0**2), E * L**2 * d0
        costs: list[tuple[Any, ...]] = [
            ("traditional: projections of E experts", "1", plain, plain),
            ("traditional: attention of E experts", "2", attention, 2 * attention),
            *((f"sectional: {name}", eq, printed[p], corrected[p]) for p, name, eq in SECTIONAL),
        ]
        rows += [(E, *words, float(p), float(c), float(c / p)) for *words, p, c in costs]
    notes = (
        f"Multiply-adds at L = {L:g} tokens an expert, d0 = {d0:g}, alpha = "
        f"{EXAMPLE['alpha']:g}. Computed from the cost model; no run is behind it.",
    )
    heads = ["E", "Cost", "Eq", "As printed", "Corrected", "Corrected / printed"]
    return Tabular(pd.DataFrame(rows, columns=heads), notes=notes)


def arms(inputs: Inputs) -> Tabular:
    """Sets each arm's loss, cost, speed and learning."""
    table = inputs.derived("arms")
    columns = {
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
    note = (
        "The loss is in nats a token. Intervals (90 %) are over seeds, with the spread of all arms "
        "pooled. Steps over dense are those to the loss that the dense model has at 80 % of its "
        "steps, with an interval (from, to); the field is empty where a seed did not reach it, and "
        "reached counts those that did. Spikes are logged steps whose loss is far above those "
        "around them. Other runs ran beside each, so that speeds are rough."
    )
    return Tabular(pd.DataFrame(columns), notes=[note])


def speed(inputs: Inputs) -> Tabular:
    """Sets the time and the memory of a training step of each architecture."""
    table = inputs.derived("speeds")
    names = {**ARMS, **{sweep: f"{ARMS[arm]}, equal widths" for arm, sweep in WIDTHS.items()}}
    columns = {
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
        "generated (ms)": table["generation_seconds"] * 1e3,
        "generated over top-2": table["latency_ratio"],
        "from": table["latency_low"],
        "to": table["latency_high"],
        "state (MB)": table["state_bytes"] / 1e6,
        "activations (MB)": table["activation_bytes"] / 1e6,
    }
    note = (
        f"Measured on: {', '.join(sorted(set(table['device'])))}. Intervals (at least 90 %) come "
        "from those of two medians over rounds. At equal widths times are over those of one slice. "
        "Generated is the time of a token at the end of one sequence; no keys and values are kept, "
        "so that the whole context is computed again. Over top-2 it has an interval (from, to)."
    )
    return Tabular(pd.DataFrame(columns), notes=[note])


def balance(inputs: Inputs) -> Tabular:
    """Sets the measures of the experts' load on held-out text, means over layers and seeds."""
    table = inputs.derived("load")
    keys = _CELL | {"n_dense_layers": "dense layers"}
    cells = table[table["held_out"]].groupby([*keys], sort=False)
    means = cells[[*_BALANCE]].mean().reset_index()
    frame = means.assign(arm=means["arm"].map(ARMS)).rename(columns=keys | _BALANCE)
    note = (
        "Numbers are means over layers and seeds. Variation is the standard deviation of tokens "
        "per expert over their mean; entropy is over that of equal use; overflow is the share of "
        "assignments beyond a capacity of 1 or 1.25 times the mean, unused the share of that "
        "capacity left empty; never used counts experts of a layer. Every expert on slices sees "
        "every token, or its own chunk, so that its load is even by construction."
    )
    return Tabular(frame, notes=[note])
