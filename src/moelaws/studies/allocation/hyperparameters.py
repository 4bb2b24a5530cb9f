"""T2 sets how the runs were trained. It lies apart from the other tables, for it reads no fit."""

from __future__ import annotations

from typing import Any

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.figures import style
from moelaws.figures.tabular import Tabular

# Table 2 of the paper: label, layers, heads, batch (sequences), learning rate.
PAPER = (
    ("20M", 8, 8, 96, 1.5e-3),
    ("30M", 8, 8, 160, 1.3e-3),
    ("55M", 10, 10, 224, 1.1e-3),
    ("100M", 14, 12, 320, 9e-4),
    ("200M", 16, 16, 512, 8e-4),
)


def set_table(inputs: Inputs) -> Tabular:
    """Sets how the runs were trained, a row a size, beside the paper's Table 2."""
    runs = inputs.completed[inputs.completed["C"].notna()]
    rows: list[dict[str, Any]] = []
    for (layers, heads, C), group in runs.groupby(["n_layers", "n_heads", "C"], sort=True):
        active = float(group["N_active_nonemb"].median())
        rows.append(
            {
                "Runs": "own",
                "Active parameters": style.short(active),
                "Budget (FLOPs)": C,
                "Layers": layers,
                "Heads": heads,
                "Widths": _range(group["d_model"]),
                "Batch (sequences)": _range(group["batch_tokens"] / group["context"]),
                "Learning rate": _range(group["lr"]),
                "Steps": _range(group["steps"]),
            }
        )
    rows += [
        {
            "Runs": "paper",
            "Active parameters": label,
            "Layers": layers,
            "Heads": heads,
            "Widths": "",
            "Batch (sequences)": str(batch),
            "Learning rate": f"{rate:g}",
            "Steps": "",
        }
        for label, layers, heads, batch, rate in PAPER
    ]
    return Tabular(
        pd.DataFrame(rows).sort_values(["Runs", "Budget (FLOPs)"], ignore_index=True),
        notes=(
            "Ranges are over ratios, sparsities and seeds of a budget. The paper names six sizes "
            "and prints five rows, without widths and budgets.",
        ),
    )


def _range(values: pd.Series[float]) -> str:
    ends = (float(values.min()), float(values.max()))
    low, high = (f"{end:.0f}" if end >= 1000 else f"{end:.4g}" for end in ends)
    return low if low == high else f"{low} to {high}"
