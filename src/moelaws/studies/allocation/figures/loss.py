"""The table of F4: a training curve beside Eq 2."""

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.spec.errors import UserError

# Parameters of Fig 4's model: active ones and all, both without embeddings
PRINTED = {"N_active": 30e6, "N_total_nonemb": 550e6}
NEAR = 0.2  # the relative difference up to which a run is of that model
WINDOW = 0.02  # fraction of the steps over which the training loss is averaged


def curve(inputs: FittedInputs) -> pd.DataFrame:
    """Returns the training loss of one run over its tokens, and Eq 2 at its N, r and S as D grows.

    The run is of the paper's model (30M active of 550M parameters) where there is one, else of the
    middle sparsity at the largest budget, with the r that is nearest to r*. R is that of the whole
    run, since r* is defined at the budget that a run is trained with. The ``kind`` of a row is
    training, law or validation.
    """
    run = representative(inputs.derived("runs"))
    try:
        history = inputs.history(str(run["run_id"]))
    except UserError:  # it was not trained here
        history = pd.DataFrame(columns=["tokens", "loss"], dtype=float)
    history = history[np.isfinite(history["loss"])]
    if len(history) < 2:
        return pd.DataFrame(columns=["D", "L", "kind"])
    tokens = history["tokens"].to_numpy(float)
    window = max(1, round(WINDOW * len(history)))
    smooth = history["loss"].rolling(window, min_periods=1).mean().to_numpy(float)
    D = np.geomspace(max(tokens[-1] / 50, tokens[0]), tokens[-1], 80)
    mapping = inputs.spec("loss").mapping
    at_end = {name: float(run[column]) for name, column in mapping.items() if name not in "LD"}
    fitted = inputs.predict("loss", **at_end, D=D)
    # A law of final losses is far off at the first steps, which are not drawn.
    shown = fitted <= 1.05 * smooth.max()
    lines = {"training": (tokens, smooth), "law": (D[shown], fitted[shown])}
    lines["validation"] = np.array([run["D"]]), np.array([run["L"]])
    about = {name: run[name] for name in (*PRINTED, "S", "r")}
    rows = (pd.DataFrame({"D": D, "L": L, "kind": kind}) for kind, (D, L) in lines.items())
    return pd.concat(rows).assign(**about)


def representative(runs: pd.DataFrame) -> pd.Series:
    """Returns the run nearest in size to the paper's model, which Fig 4 shows.

    Of equal sizes it is the one nearest to r*. Where no run is near that model, it is of the middle
    sparsity (upper of two) at the largest budget.
    """
    far = (np.log(runs["r"]) - np.log(runs["r_star"])).abs()
    away = (runs[[*PRINTED]] / pd.Series(PRINTED) - 1).abs().max(axis=1)
    own = runs[away == min(away.min(), NEAR)]
    if own.empty:
        known = sorted(runs["S"].unique())
        own = runs[np.isclose(runs["S"], known[len(known) // 2])]
        own = own[own["C"] == own["C"].max()]
    nearest: pd.Series = own.loc[far[own.index].idxmin()]
    return nearest
