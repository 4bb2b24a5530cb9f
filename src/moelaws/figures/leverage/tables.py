"""T8-T12, T14, T15: the runs of each sub-experiment; T1: the validation pair."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.analysis.leverage.series import SERIES, attention_share, shared_ratio
from moelaws.figures.tabular import Tabular

# Heading -> the study's column, as in the paper's tables.
CONFIGURATION = {
    "C (FLOPs)": "C",
    "layers": "n_layers",
    "dense layers": "n_dense_layers",
    "d_model": "d_model",
    "d_expert": "d_expert",
    "heads": "n_heads",
    "KV heads": "n_kv",
    "E": "E",
    "E_a": "k",
    "E_s": "E_s",
    "A (formal)": "A",
    "A = E_a/E": "A_routed",
    "G": "G",
    "S = E_s/(E_a+E_s)": "shared_ratio",
    "attention's share": "attention_share",
    "batch (tokens)": "batch_tokens",
    "learning rate": "lr",
    "N": "N_total",
    "N_a": "N_active",
    "D (tokens)": "D",
    "runs": "runs",
    "L (nats/token)": "L",
}
_ALWAYS = ("C (FLOPs)", "d_model", "E", "E_a", "E_s", "d_expert", "N_a", "D (tokens)", "runs")
_SHOWN = {
    "activation": ("A (formal)", "A = E_a/E"),
    "granularity": ("G",),
    "shared": ("S = E_s/(E_a+E_s)",),
    "dense_layers": ("layers", "dense layers"),
    "attention": ("attention's share", "heads"),
    "heads": ("heads", "KV heads"),
}
NO_RUNS = "This tier trains no run of this sub-experiment, or none completed."


def configurations(inputs: Inputs, sweep: str) -> Tabular:
    """A row a configuration: what it is and its loss, the mean over seeds."""
    runs = _described(SERIES[sweep].runs(inputs))
    shown = {*_ALWAYS, *_SHOWN[sweep], "batch (tokens)", "learning rate", "L (nats/token)"}
    return _tabular(runs, [name for name in CONFIGURATION if name in shown])


def balance(inputs: Inputs) -> Tabular:
    """T15: load balance of the largest budget's granularities, as the paper's Table 15."""
    runs = _described(SERIES["granularity"].runs(inputs))
    names = ["C (FLOPs)", "d_model", "E", "E_a", "E_s", "d_expert", "G", "runs"]
    made = _tabular(runs, [*names, "L (nats/token)"], {"CV of tokens per expert": "balance_cv"})
    note = (
        "CV is taken over the experts of each layer on the validation text. Published (6e19 "
        "FLOPs): G = 6: .033, 8: .052, 12: .061, 16: .093."
    )
    return Tabular(made.frame, notes=(*made.notes, note), warnings=made.warnings)


def validation(inputs: Inputs) -> Tabular:
    """T1: the pair whose training F6a shows."""
    runs = _described(inputs.sweep("validation").sort_values("N_total"))
    left = ("A (formal)", "shared_ratio", "attention's share", "S = E_s/(E_a+E_s)", "runs")
    made = _tabular(runs, [name for name in CONFIGURATION if name not in left])
    note = (
        "Published: Dense-6.1B (28 layers, d_model 4096, 32 heads, 8 KV heads, width 14336, 6.11e9 "
        "parameters) and MoE-mini (20 layers, the first dense and 5120 wide, d_model 2048, 16 "
        "heads, 4 KV heads, d_expert 384, E 384, E_a 12, E_s 1, 17.5e9 parameters, .85e9 active "
        "without embeddings)."
    )
    return Tabular(made.frame, notes=(*made.notes, note), warnings=made.warnings)


def _described(runs: pd.DataFrame) -> pd.DataFrame:
    return runs.assign(
        A_routed=1 - runs["S"],
        shared_ratio=shared_ratio(runs),
        attention_share=attention_share(runs),
    )


def _tabular(runs: pd.DataFrame, names: list[str], more: Mapping[str, str] = {}) -> Tabular:
    if not len(runs):
        return Tabular(
            pd.DataFrame({name: pd.Series(dtype=float) for name in (*names, *more)}),
            notes=(NO_RUNS,),
            warnings=[NO_RUNS],
        )
    columns = {name: CONFIGURATION[name] for name in names} | dict(more)
    measured = {"L", "balance_cv"} & set(columns.values())
    keys = [column for column in columns.values() if column not in {*measured, "runs"}]
    grouped = runs.groupby(keys, dropna=False, sort=True)
    frame = grouped[sorted(measured)].mean().assign(runs=grouped.size()).reset_index()
    frame = frame[list(columns.values())].set_axis(list(columns), axis="columns")
    return Tabular(frame, notes=("N_a and N count embeddings; C does not count logits.",))


TABLES = {
    "T1": validation,
    "T8": partial(configurations, sweep="activation"),
    "T9": partial(configurations, sweep="granularity"),
    "T10": partial(configurations, sweep="shared"),
    "T11": partial(configurations, sweep="dense_layers"),
    "T12": partial(configurations, sweep="attention"),
    "T14": partial(configurations, sweep="heads"),
    "T15": balance,
}
