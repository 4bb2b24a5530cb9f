"""Results of each arm over seeds: loss beside the dense model's, cost, and speed of learning."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, Rows, of_runs, records, table
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import Spread
from moelaws.laws.base import Array
from moelaws.spec.errors import UserError
from moelaws.studies.sectional.arms import (
    ARM,
    ARMS,
    DENSE,
    RATES,
    SHAPE,
    SIZE,
    of_arms,
)
from moelaws.tables.column import Column, estimated

SMOOTH = 0.05  # fraction of all steps over which the loss is averaged, as single batches are noisy
TARGET = 0.8  # fraction of the dense model's steps after which its loss is the target
SPIKE_WINDOW = 51  # steps around one; their median loss is the usual one there
SPIKE = 8.0  # standard deviations above the usual loss; the deviation is a robust one
_COMMON = "between seeds beside what all arms share, pooled over the arms of the size"


def smoothed(loss: Array) -> Array:
    """Returns the mean over each step's window, which ends with the step, (steps,) nats/token."""
    width = max(1, round(SMOOTH * len(loss)))
    return pd.Series(loss).rolling(width, min_periods=1).mean().to_numpy(float)


def steps_to_target(loss: Array, target: float) -> float:
    """Returns the first step whose smoothed loss is at most ``target``; infinity where none is."""
    below = np.flatnonzero(smoothed(loss) <= target)
    return float(below[0] + 1) if len(below) else np.inf


def spikes(loss: Array) -> int:
    """Counts steps of a loss far above the usual one there, after the first steep half window."""
    around = pd.Series(loss).rolling(SPIKE_WINDOW, center=True, min_periods=1).median()
    excess = (loss - around.to_numpy(float))[SPIKE_WINDOW // 2 :]
    spread = 1.4826 * np.median(np.abs(excess))  # the deviation of a normal distribution
    return int((excess > SPIKE * spread).sum()) if spread > 0 else 0


@table(
    ARM,
    *of_runs("E", "n_dense_layers", "d_model", "context", "D", "lr", "n_seeds"),
    Column("seeds", "string", "their seeds, over which L is a mean"),
    *of_runs("L"),
    Column("perplexity", "float", "e^L"),
    *estimated("difference", "L less the dense model's, over the seeds of both", "nats/token", ""),
    Column("seed_sd", "float?", f"standard deviation of L {_COMMON}", "nats/token"),
    Column("freedom", "int", "degrees of freedom of seed_sd"),
    Column("flops_per_token", "float", "training FLOPs without embeddings, M", "FLOP/token"),
    *of_runs("N_total", "N_active", "tokens_per_second", "peak_memory"),
    *estimated("steps_ratio", "steps to the target loss over the dense model's", "1", "steps"),
    Column("steps_sd", "float?", f"standard deviation of ln of the steps {_COMMON}"),
    Column("steps_freedom", "int", "degrees of freedom of steps_sd"),
    Column("reached", "int?", "that reached the target loss", "runs"),
    Column("spikes", "float", "logged, far above those around them; mean over seeds", "steps"),
    told={
        "n_seeds < 2": "some arms have one seed alone",
        f"arm != '{DENSE}' and difference.isna()": "some arms have no dense model of their size to "
        "compare with",
    },
)
def arms(inputs: Inputs) -> Rows:
    """Yields a row for each architecture and size of each arm.

    Intervals are over seeds, whose spread is pooled over the arms of the size. The ratio of steps
    is infinite where a seed did not reach the target.
    """
    runs = of_arms(inputs)
    repeated = runs[runs.duplicated(["arm", *SIZE, *SHAPE, "seed"], keep=False)]
    if len(repeated):
        names, ids = (", ".join(repeated[name].unique()) for name in ("arm", "run_id"))
        raise UserError(
            f"the arm {names} has several runs of one seed, size and shape ({ids}); give each a "
            "sweep of its own"
        )
    for _, alike in runs.groupby(SIZE):
        by_arm = alike.groupby("arm", sort=False)
        yield from _rows([cell for _, own in by_arm for _, cell in own.groupby(SHAPE)], inputs)


def _rows(cells: list[pd.DataFrame], inputs: Inputs) -> Iterator[Row]:
    """Yields the rows of one size, of which each cell has the runs of an arm and shape by seed."""
    has_dense = cells[0]["arm"].iloc[0] == DENSE  # the first of the arms
    by_seed = [cell.set_index("seed") for cell in cells]
    losses = [cell["L"].to_dict() for cell in by_seed]
    curves = [
        {seed: inputs.history(run)["loss"].to_numpy(float) for seed, run in cell["run_id"].items()}
        for cell in by_seed
    ]
    targets = {
        seed: smoothed(curve)[round(TARGET * len(curve)) - 1]
        for seed, curve in curves[0].items()
        if has_dense
    }
    steps = [  # ln of those to the target, by seed
        {s: math.log(steps_to_target(own[s], targets[s])) for s in own if s in targets}
        for own in curves
    ]
    loss = Spread.of(losses)
    pace = Spread.of([{s: v for s, v in of.items() if math.isfinite(v)} for of in steps])
    for place, cell in enumerate(cells):
        L, first = cell["L"].mean(), cell.iloc[0]
        row = {
            **first,
            "n_seeds": len(cell),
            "seeds": " ".join(map(str, sorted(cell["seed"]))),
            "L": L,
            "perplexity": math.exp(L),
            "seed_sd": loss.sd,
            "freedom": loss.freedom,
            "flops_per_token": first["C_leverage"] / first["D"],
            **cell[["tokens_per_second", "peak_memory"]].median(),
            "steps_sd": pace.sd,
            "steps_freedom": pace.freedom,
            "spikes": np.mean([spikes(curve) for curve in curves[place].values()]),
        }
        if has_dense:
            row["reached"] = sum(map(math.isfinite, steps[place].values()))
        if has_dense and place:
            row["difference"] = loss.difference(losses[place], losses[0])
            row["steps_ratio"] = pace.difference(steps[place], steps[0]).map(np.exp)
        yield row


@table(
    ARM,
    *of_runs("run_id", "E", "n_dense_layers", "d_model", "context", "D", "seed", "L", "L_beyond"),
    Column("rise", "float", "L_beyond less L", "nats/token"),
)
def longer(inputs: Inputs) -> Rows:
    """Returns a row for each run of an arm that was evaluated on longer sequences (sec 5.2.6)."""
    runs = of_arms(inputs)
    return runs.assign(rise=runs["L_beyond"] - runs["L"]).dropna(subset=["rise"])


@table(
    ARM,
    *of_runs("lr", "L"),
    Column("chosen", "bool", "whether the arm's other runs have this rate"),
    Column("best", "bool", "whether no other rate has a lower loss"),
    told={
        "best == True and chosen == False": "{arm}: the best rate tried is {lr:g}, and it is not "
        "the one used"
    },
)
def rates(inputs: Inputs) -> Rows:
    """Yields a row for each arm and learning rate that was tried before its own was chosen."""
    for arm in ARMS:
        tried = inputs.sweep(RATES + arm).sort_values("lr", kind="stable")
        chosen = tried["lr"].isin(inputs.sweep(arm)["lr"])
        best = tried["L"] == tried["L"].min()
        yield from records(tried.assign(arm=arm, chosen=chosen, best=best))
