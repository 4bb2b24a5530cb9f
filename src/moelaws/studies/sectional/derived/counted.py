"""FLOPs of a section at fixed widths over the number of slices, beside the paper's cost model.

A section is a pre-expert block and a block in slices. The paper's S(E) holds the length L that each
expert sees, so that the sequence L E grows with E; here the sequence n is held, and L = n / E.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from moelaws.accounting.flops import TRAINING, forward_terms
from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs
from moelaws.spec.model import DenseFFN, Model, SlicePositions, Slices
from moelaws.studies.sectional.arms import SLICES, WIDTHS
from moelaws.studies.sectional.model import CORRECTED, PRINTED, evaluate
from moelaws.tables.column import Column

READINGS: dict[str, SlicePositions] = dict(zip(SLICES, ("all", "chunks"), strict=True))
_ONE = "over that of one slice"


@table(
    Column("d_model", "int", "1", "width of the residual stream"),
    Column("context", "int", "tokens", "sequence length n"),
    Column("E", "int", "experts", "slices"),
    Column("slice_all", "float", "FLOP/token", "training FLOPs where experts see all positions"),
    Column("slice_chunks", "float", "FLOP/token", "where each sees a chunk of n / E positions"),
    Column("all_ratio", "float", "1", f"slice_all {_ONE}"),
    Column("chunks_ratio", "float", "1", f"slice_chunks {_ONE}"),
    Column("printed_ratio", "float", "1", f"S(E) as printed for n tokens, without alpha, {_ONE}"),
    Column("corrected_ratio", "float", "1", f"S(E) corrected for n tokens, without alpha, {_ONE}"),
)
def derive(inputs: Inputs) -> Rows:
    """Makes a row for each size of the grid and number of slices that divides it."""
    sizes = inputs.completed[["d_model", "context"]].drop_duplicates()
    return pd.DataFrame(
        [row for d, n in sizes.itertuples(index=False) for row in _rows(int(d), int(n))]
    )


def of_widths(counted: pd.DataFrame, speeds: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of the size at which equal widths were timed, else of the widest."""
    size = ["d_model", "context"]
    timed = speeds[speeds["sweep"].isin(WIDTHS.values())]
    chosen = (timed if len(timed) else counted.sort_values(size))[size].iloc[-1]
    return counted[(counted[size] == chosen).all(axis=1)]


def _rows(d: int, n: int) -> Iterator[dict[str, Any]]:
    numbers = [E for E in (1, 2, 4, 8, 16, 32) if d % (2 * E) == 0 and n % E == 0]
    one = {arm: section_flops(d, n, 1, positions) for arm, positions in READINGS.items()}
    S = {
        form: [
            float(evaluate(form, E=float(E), L=n / E, d0=float(d), alpha=0.0)["S"]) for E in numbers
        ]
        for form in (PRINTED, CORRECTED)
    }
    for place, E in enumerate(numbers):
        flops = {arm: section_flops(d, n, E, positions) for arm, positions in READINGS.items()}
        yield {
            "d_model": d,
            "context": n,
            "E": E,
            **flops,
            "all_ratio": flops["slice_all"] / one["slice_all"],
            "chunks_ratio": flops["slice_chunks"] / one["slice_chunks"],
            "printed_ratio": S[PRINTED][place] / S[PRINTED][0],
            "corrected_ratio": S[CORRECTED][place] / S[CORRECTED][0],
        }


def section_flops(d: int, n: int, E: int, positions: SlicePositions) -> float:
    """Returns the training FLOPs a token of one section, without embeddings.

    MLPs have the usual hidden width of SwiGLU, 8 d / 3, and those of slices an E-th of it.
    """
    hidden = round(8 * d / 3)
    slices = Slices(n_experts=E, d_expert=max(1, round(hidden / E)), n_heads=1, positions=positions)
    ffn = DenseFFN(kind="dense", d_ffn=hidden)
    model = Model(
        n_layers=2, d_model=d, n_heads=1, n_kv=1, context=n, vocab_size=1, ffn=ffn, slices=slices
    )  # fmt: skip
    terms = forward_terms(model)
    return TRAINING * (sum(terms.values()) - terms["logits"])
