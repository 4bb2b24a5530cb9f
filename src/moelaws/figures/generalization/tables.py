"""T1, T3-T5 and sec 4: dimension, the sweeps' runs, exponents over experts, regimes."""

from __future__ import annotations

from functools import partial

import pandas as pd

from moelaws.analysis.generalization.dimension import of_models
from moelaws.analysis.generalization.identities import OWN
from moelaws.analysis.inputs import Inputs
from moelaws.figures.tabular import Tabular
from moelaws.tables.sweeps import in_sweep

COUNTED = "N_act counts attention and the k active experts with biases; no router, norm, embedding."


def dimensions(inputs: Inputs) -> Tabular:
    """T1: the dimension of each model's middle layers."""
    table = inputs.derived("dimension")
    notes = [
        "Of the models' own hidden states on held-out text; the paper measures those of pretrained "
        "GPT-2 models, whose values are lost in its text."
    ]
    models = of_models(table)
    if models.empty:
        notes.insert(0, "No hidden states: no completed run's weights are kept.")
    else:
        points, k = int(table["points"].min()), int(table["neighbours"].iloc[0])
        notes.append(
            f"Levina-Bickel with {k} neighbours on random halves of at least {points} distinct "
            "states; MAD: median absolute deviation over the halves."
        )
    frame = models.rename(
        columns={
            "run_id": "run",
            "n_layers": "layers",
            "width": "expert width",
            "D": "tokens",
            "d_model": "width",
            "dimension": "intrinsic dimension",
            "mad": "MAD",
            "points": "states",
        }
    )
    return Tabular(frame, digits=4, notes=notes)


def architectures(inputs: Inputs, sweep: str) -> Tabular:
    """T3, T4: the runs of a sweep by their layers, width, active parameters and tokens."""
    runs = inputs.derived("runs")
    runs = runs[in_sweep(runs, sweep)]
    keys = ["n_layers", "width", "N_act", "d_model", "n_heads", "M", "k", "D"]
    means = runs.groupby(keys, as_index=False).agg(
        L=("L", "mean"), sd=("L", "std"), seeds=("seed", "nunique")
    )
    frame = means.sort_values(["n_layers", "width", "D"], ignore_index=True).rename(
        columns={
            "n_layers": "layers",
            "width": "expert width w",
            "d_model": "d",
            "n_heads": "heads",
            "D": "tokens",
            "L": "loss (nats/token)",
            "sd": "sd over seeds",
        }
    )
    notes = [COUNTED] if len(frame) else [f"No completed run of the sweep {sweep}."]
    return Tabular(frame, digits=6, notes=notes)


def exponents(inputs: Inputs) -> Tabular:
    """T5: exponents and identities for each number of experts, own rows first."""
    table = inputs.derived("identities")
    columns = {
        "origin": "origin",
        "E": "E",
        "n": "runs",
        "alpha_N": "alpha_N",
        "alpha_D": "alpha_D",
        "alpha_C": "alpha_C",
        "alpha_D_predicted": "alpha_D pred",
        "alpha_C_predicted": "alpha_C pred",
        "delta_D": "Delta_D",
        "delta_C": "Delta_C",
        "relative_delta_D": "Delta_D / alpha_D pred",
        "relative_delta_C": "Delta_C / alpha_C pred",
    }
    frame = table[list(columns)].rename(columns=columns)
    frame.insert(5, "alpha_D interval", _intervals(table, "alpha_D"))
    frame.insert(4, "alpha_N interval", _intervals(table, "alpha_N"))
    own = int((table["origin"] == OWN).sum())
    notes = (
        f"Own: a Chinchilla law in active parameters and tokens for each of {own} numbers of "
        "experts; intervals at 90 %. Published: recomputed from the exponents that the paper takes "
        "from Ludziejewski et al. 2025, Table 4; the paper truncates its cells to four decimals.",
    )
    return Tabular(frame, digits=4, notes=notes)


def regimes(inputs: Inputs) -> Tabular:
    """Section 4: where the base architecture lies among the bound's regimes, and the best k."""
    names = {
        "D": "tokens n",
        "N_act": "N_act",
        "R": "R (nats)",
        "p": "p = 2s/d",
        "N_cross": "N_cross",
        "N_cap": "N_cap",
        "n_route": "n_route",
        "routing_share": "R / N_act",
        "k_star": "k* of the bound",
        "k_best": "best k measured",
        "M_best": "at M",
    }
    frame = inputs.derived("regimes")[list(names)].rename(columns=names)
    notes = (
        "Approximation and estimation error are equal at N_cross = n^(1/(1 + p)), approximation "
        "and routing at N_cap = (n/R)^(1/p); below n_route = R^(1 + p) tokens routing dominates. "
        "p is the measured model exponent above a floor, and every constant of the bound is 1: the "
        "paper gives none, so that only trends compare.",
        "k* is the least of Eq 9 for the base's M; the best k measured is of the routing sweep, "
        "whose active experts share one width.",
    )
    return Tabular(frame, digits=4, notes=notes)


def _intervals(table: pd.DataFrame, name: str) -> list[str]:
    ends = zip(table[f"{name}_low"], table[f"{name}_high"], strict=True)
    return ["" if pd.isna(low) else f"{low:.3g} to {high:.3g}" for low, high in ends]


TABLES = {
    "T1": dimensions,
    "T3": partial(architectures, sweep="model"),
    "T4": partial(architectures, sweep="data"),
    "T5": exponents,
    "T_regimes": regimes,
}
