"""T1: the paper's search space beside the values that these runs take."""

from __future__ import annotations

from typing import Any

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular

# Table 1: hyperparameter, the paper's search space, the table's column.
SEARCHED = (
    ("sparsity S", "0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98", "S"),
    ("experts E", "adjusted depending on sparsity", "E"),
    ("active experts k", "adjusted depending on sparsity", "k"),
    ("granularity G", "0.5, 1 (printed 1, 2: counted from 4 d_model)", "G"),
    ("learning rate", "0.003, 0.002, 0.001", "lr"),
    ("budget C, FLOPs", "3e+19, 6e+19, 1e+20, 3e+20, 1e+21", "C"),
    ("tokens a step", "2.097e+06 (1024 sequences of 2048)", "batch_tokens"),
    ("context, tokens", "2048", "context"),
    ("vocabulary", "50432", "vocab_size"),
    ("total parameters N", "not printed", "N_total"),
    ("layers", "not printed", "n_layers"),
    ("width d_model", "not printed", "d_model"),
)
MAX_LISTED = 8  # values of a column that are listed one by one


def search_space(inputs: Inputs) -> Tabular:
    """Sets the search space beside the values of the runs."""
    runs = inputs.table
    rows = [
        {"Hyperparameter": name, "Paper": paper, "These runs": _values(runs[column])}
        for name, paper, column in SEARCHED
    ]
    notes = (
        "Searched in the paper besides: load-balance factor 0.02, 0.05; warm-up 2, 5, 10 % of the "
        "steps. Constant there: jitter 0, z-loss 0, router z-loss 0.001, QK norm. The study's grid "
        "states what these runs take.",
        f"{len(runs)} runs, of which {len(inputs.completed)} completed.",
    )
    return Tabular(pd.DataFrame(rows), notes=notes)


def _values(column: pd.Series[Any]) -> str:
    """The values of a column, or their range where they are many."""
    values = sorted({float(f"{value:.4g}") for value in column.dropna().astype(float)})
    if len(values) <= MAX_LISTED:
        return ", ".join(f"{value:.4g}" for value in values) or "none"
    return f"{values[0]:.4g} to {values[-1]:.4g} ({len(values)} values)"
