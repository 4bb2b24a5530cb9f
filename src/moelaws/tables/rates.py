"""Whether the learning rates that a sweep tried hold the best one."""

from __future__ import annotations

import pandas as pd

# What tells configurations apart, but for the rate and the seed.
CONFIGURATION = [
    "C", "kind", "E", "k", "E_s", "n_layers", "d_model", "n_heads", "n_kv", "d_expert", "context",
    "vocab_size", "batch_tokens",
]  # fmt: skip


def rates_at_the_edge(frame: pd.DataFrame) -> list[str]:
    """Names each budget where a configuration's best learning rate is the last one tried.

    ``frame`` is a study's table. Configurations with fewer than three rates were not searched.
    """
    lines = []
    completed = frame[frame["status"] == "completed"]
    for budget, runs in completed.groupby("C"):
        searched, edge = 0, []
        for key, group in runs.groupby(CONFIGURATION):
            losses = group.groupby("lr")["L"].mean()
            if len(losses) < 3:
                continue
            searched += 1
            if losses.idxmin() in (losses.index.min(), losses.index.max()):
                edge.append(dict(zip(CONFIGURATION, key, strict=True)))
        if edge:
            first = f"E={edge[0]['E']}, d_model={edge[0]['d_model']}"
            lines.append(
                f"C={budget:.3g}: the best learning rate lies at the edge of those tried for "
                f"{len(edge)} of {searched} configurations (such as {first}): widen lr"
            )
    return lines
