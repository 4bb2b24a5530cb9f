"""How well isoFLOP surfaces predict runs they have not seen: refits to random subsamples.

Of each budget's runs a random 80 % are fitted and the rest predicted, 100 times (sparsity, App B
and Fig 8).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.derive import Rows, table
from moelaws.analysis.fitted import FittedInputs
from moelaws.fitting.model_selection import held_out
from moelaws.laws.forms import LinearLaw
from moelaws.studies.sparsity.derived.surface import Surface, surfaces
from moelaws.tables.column import Column


@table(
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
def derive(inputs: FittedInputs) -> Rows:
    """Returns the predictions of every isoFLOP surface fit that the study's entry declares.

    A budget whose subsamples do not determine the surface has no rows.

    Raises:
        UserError: where a fit is missing or not split by C.
    """
    frames = [
        predictions(surface)
        for fit in sorted(inputs.fits)
        for surface in surfaces(inputs, fit)
        if len(surface.rows) > 1
    ]
    return pd.concat(frames, ignore_index=True) if frames else []


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
    """Returns a line where no budget's surface could be refitted to subsamples."""
    return [] if len(frame) else ["no budget has the runs to refit its surface to 80 % of them"]


def predictions(surface: Surface) -> pd.DataFrame:
    """Returns a row for each run of one budget's surface: what the refits without it predict."""
    law = laws.fittable(surface.law)
    assert isinstance(law, LinearLaw)  # an isoFLOP surface is
    rows = surface.rows
    N, S, L = (rows[name].to_numpy(float) for name in (surface.size, "S", "L"))
    resamples = held_out(law, ({"N": N, "S": S}, L))
    if resamples is None:
        return pd.DataFrame()
    held, predicted = (values.ravel() for values in resamples)
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
