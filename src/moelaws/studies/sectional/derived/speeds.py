"""The cost of an architecture: time and memory of a step as measured, FLOPs as counted.

Speeds are measured by turns in one process. FLOPs over the number of slices are those of a section
at fixed widths, beside the paper's cost model; a section is a pre-expert block and a block in
slices. The paper's S(E) holds the length L that each expert sees, so that the sequence L E grows
with E. Here the sequence n is held, and L = n / E.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from moelaws.accounting.flops import TRAINING, forward_terms
from moelaws.analysis.derive import Rows, of_runs, records, table
from moelaws.analysis.effect import ratio_of_times
from moelaws.analysis.inputs import Inputs
from moelaws.spec.model import DenseFFN, Model, SlicePositions, Slices
from moelaws.studies.sectional.arms import (
    BALANCED,
    DENSE,
    RATES,
    SIZE,
    WIDTHS,
    widest,
)
from moelaws.studies.sectional.laws.cost import CORRECTED, PRINTED, evaluate
from moelaws.tables.column import Column, estimated

_LATENCY = "time to generate a token of one sequence over that of the top-2 mixture of the size"
_BASE = "the dense model of the size, or of one slice at equal widths"
_ONE = "over that of one slice"


@table(
    Column("sweep", "string", "arm of the grid, or sweep of slices at equal widths"),
    *of_runs("E", "n_dense_layers", "d_model", "context"),
    Column("flops_per_token", "float", "training FLOPs without embeddings, M", "FLOP/token"),
    *of_runs("tokens_per_second"),
    Column("evaluation_tokens_per_second", "float", "of the forward pass alone", "tokens/s"),
    *estimated("ratio", f"time a token over that of {_BASE}", "1", ""),
    Column("generation_seconds", "float", "to generate a token, the context computed again", "s"),
    *estimated("latency_ratio", _LATENCY, "1", "latency"),
    Column("state_bytes", "float", "weights, gradients and both moments", "bytes"),
    Column("activation_bytes", "float", "that wait for the backward pass of a step", "bytes"),
    Column("device", "string", "what it was measured on"),
)
def speeds(inputs: Inputs) -> Rows:
    """Yields a row for each architecture of the grid, in its order."""
    speeds = inputs.speed().merge(inputs.table.drop(columns="tokens_per_second"), on="run_id")
    speeds["sweep"] = speeds["sweep"].str.split(",").str[0].str.removeprefix(RATES)
    speeds["flops_per_token"] = speeds["C_leverage"] / speeds["D"]
    one_slice = speeds["sweep"].isin(WIDTHS.values()) & (speeds["E"] == 1)
    bases = {_alike(row): row for row in records(speeds[one_slice | (speeds["sweep"] == DENSE)])}
    mixtures = {_alike(row): row for row in records(speeds[speeds["sweep"] == BALANCED])}
    for row in records(speeds):
        if base := bases.get(_alike(row)):
            row["ratio"] = ratio_of_times(row, base, "time_ratio")
            if mixture := mixtures.get(_alike(row)):
                row["latency_ratio"] = ratio_of_times(row, mixture, "generation_ratio")
            yield row


def _alike(row: Mapping[Any, Any]) -> tuple[Any, ...]:
    """Returns what an architecture shares with those that its time is compared with."""
    equal_widths = row["sweep"] in WIDTHS.values()
    return (row["sweep"],) if equal_widths else (row["d_model"], row["context"])


@table(
    *of_runs("d_model", "context", "E"),
    Column("all_ratio", "float", f"training FLOPs, where experts see all positions, {_ONE}"),
    Column("chunks_ratio", "float", f"where each sees a chunk of n / E positions, {_ONE}"),
    Column("printed_ratio", "float", f"S(E) as printed for n tokens, without alpha, {_ONE}"),
    Column("corrected_ratio", "float", f"S(E) corrected for n tokens, without alpha, {_ONE}"),
)
def counted(inputs: Inputs) -> Rows:
    """Yields a row for each size of the grid and number of slices that divides it."""
    sizes = inputs.completed[["d_model", "context"]].drop_duplicates().astype(int)
    for d, n in sizes.itertuples(index=False):
        one: dict[str, float] = {}
        for E in (1, 2, 4, 8, 16, 32):
            if d % (2 * E) or n % E:
                continue
            at = {"E": float(E), "L": n / E, "d0": float(d), "alpha": 0.0}
            cost = {
                "all": section_flops(d, n, E, "all"),
                "chunks": section_flops(d, n, E, "chunks"),
                "printed": float(evaluate(PRINTED, **at)["S"]),
                "corrected": float(evaluate(CORRECTED, **at)["S"]),
            }
            one = one or cost
            ratios = {f"{name}_ratio": x / one[name] for name, x in cost.items()}
            yield {"d_model": d, "context": n, "E": E, **ratios}


def of_widths(counted: pd.DataFrame, speeds: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of the size at which equal widths were timed, else of the widest."""
    timed = speeds.loc[speeds["sweep"].isin(WIDTHS.values()), SIZE[:2]].drop_duplicates()
    return widest(counted.merge(timed) if len(timed) else counted)


def section_flops(d: int, n: int, E: int, positions: SlicePositions) -> float:
    """Returns the training FLOPs a token of one section, without embeddings.

    MLPs have the usual hidden width of SwiGLU, 8 d / 3; those of slices have an E-th of it.
    """
    hidden = round(8 * d / 3)
    slices = Slices(n_experts=E, d_expert=max(1, round(hidden / E)), n_heads=1, positions=positions)
    ffn = DenseFFN(kind="dense", d_ffn=hidden)
    model = Model(
        n_layers=2, d_model=d, n_heads=1, n_kv=1, context=n, vocab_size=1, ffn=ffn, slices=slices
    )  # fmt: skip
    terms = forward_terms(model)
    return TRAINING * (sum(terms.values()) - terms["logits"])
