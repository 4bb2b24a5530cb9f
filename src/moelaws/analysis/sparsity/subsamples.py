"""How well isoFLOP surfaces predict runs they have not seen: refits to random subsamples.

Of each budget's runs a random 80 % are fitted and the rest predicted, 100 times (sparsity, App B
and Fig 8).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.surface import Surface, surfaces
from moelaws.fitting.model_selection import held_out
from moelaws.laws.kinds import LinearLaw
from moelaws.tables.column import Column

COLUMNS = (
    Column("C", "float", "FLOPs", "training budget"),
    Column("size", "string", "1", "which parameters: total or active, with embeddings or without"),
    Column("run_id", "string", "1", "the run that is predicted"),
    Column("N", "float", "parameters", "its size"),
    Column("S", "float", "1", "its sparsity"),
    Column("L", "float", "nats/token", "its measured loss"),
    Column("predicted", "float", "nats/token", "mean prediction by the refits without it", True),
    Column("mse", "float", "(nats/token)^2", "mean squared error of these predictions", True),
    Column("times", "int", "1", "refits without it"),
)


def derive(inputs: Inputs) -> pd.DataFrame:
    """The table ``COLUMNS`` from every isoFLOP surface fit that the study's entry declares.

    A budget whose subsamples do not determine the surface has no rows.

    Raises:
        UserError: where a fit is missing or not split by C.
    """
    names = [c.name for c in COLUMNS]
    frames = [
        predictions(surface)
        for fit in inputs.fits
        for surface in surfaces(inputs, fit)
        if len(surface.rows) > 1
    ]
    found = [frame for frame in frames if len(frame)]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=names)


def warnings(frame: pd.DataFrame) -> list[str]:
    """A line where no budget's surface could be refitted to subsamples."""
    return [] if len(frame) else ["no budget has the runs to refit its surface to 80 % of them"]


def predictions(surface: Surface) -> pd.DataFrame:
    """A row a run of one budget's surface: what the refits without the run predict of it."""
    law = laws.fittable(surface.law)
    assert isinstance(law, LinearLaw)  # an isoFLOP surface is
    rows = surface.rows
    N, S, L = (rows[name].to_numpy(float) for name in (surface.size, "S", "L"))
    found = held_out(law, ({"N": N, "S": S}, L))
    if found is None:
        return pd.DataFrame()
    held, predicted = found[0].ravel(), found[1].ravel()
    times = np.bincount(held, minlength=len(L))
    with np.errstate(invalid="ignore"):  # a run that was never held out has no prediction
        mean = np.bincount(held, predicted, len(L)) / times
        mse = np.bincount(held, (predicted - L[held]) ** 2, len(L)) / times
    return pd.DataFrame(
        {
            "C": surface.C,
            "size": surface.size.removeprefix("N_"),
            "run_id": rows["run_id"].to_numpy(),
            "N": N,
            "S": S,
            "L": L,
            "predicted": mean,
            "mse": mse,
            "times": times,
        }
    )
