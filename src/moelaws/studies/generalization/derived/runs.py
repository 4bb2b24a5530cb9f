"""The study's runs as the generalization paper counts them: active parameters and routing term."""

from __future__ import annotations

import pandas as pd

from moelaws.analysis.derive import table
from moelaws.analysis.inputs import Inputs
from moelaws.studies.generalization.laws.routing import routing_term
from moelaws.tables.column import Column


@table(
    Column("run_id", "string", "1", "identity of the run"),
    Column("sweep", "string", "1", "the study's sweeps that ask for the run, joined by commas"),
    Column("seed", "int", "1", "seed of initial weights and data order"),
    Column("n_layers", "int", "layers", "transformer blocks, all with experts"),
    Column("width", "int", "1", "hidden width w of an expert"),
    Column("d_model", "int", "1", "width of the residual stream"),
    Column("n_heads", "int", "heads", "query heads"),
    Column("M", "int", "experts", "routed experts a layer"),
    Column("k", "int", "experts", "active experts a token"),
    Column("context", "int", "tokens", "sequence length l"),
    Column("N_act", "float", "parameters", "active parameters as Tables 3 and 4 count them"),
    Column("N_active", "float", "parameters", "active parameters, embeddings and router included"),
    Column("D", "float", "tokens", "training tokens"),
    Column("R", "float", "nats", "routing term k L l ln(eM/k) of a sequence"),
    Column("L", "float", "nats/token", "validation loss"),
    Column("L_se", "float", "nats/token", "its standard error, by document", True),
    Column("L_paired_se", "float", "nats/token", "the same among the study's runs", True),
)
def derive(inputs: Inputs) -> pd.DataFrame:
    """Gives a row for each completed run.

    N_act = L (4 d^2 + k (2 d w + w + d)): bias-free attention and the k experts d -> w -> d with
    biases; no router, norms or embeddings. Source: generalization, Tables 3 and 4, whose every row
    it gives exactly.
    """
    runs = inputs.completed
    d, w, k, layers = (runs[c].astype(float) for c in ("d_model", "d_expert", "k", "n_layers"))
    return runs.rename(columns={"d_expert": "width", "E": "M"}).assign(
        N_act=layers * (4 * d**2 + k * (2 * d * w + w + d)),
        N_active=runs["N_active"].astype(float),
        D=runs["D"].astype(float),
        R=routing_term(k, runs["E"], layers, runs["context"]),
    )
