"""Results of each arm over seeds: loss beside the dense model's, cost, and speed of learning."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, Rows, of_runs, records, table
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import Spread
from moelaws.laws.base import Array
from moelaws.spec.errors import UserError
from moelaws.studies.sectional.arms import ARM, ARMS, DENSE, RATES, SHAPE, SIZE
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
    *of_runs("E", "k", "n_dense_layers", "d_model", "context", "D", "lr", "n_seeds"),
    Column("seeds", "string", "1", "their seeds"),
    Column("L", "float", "nats/token", "validation loss, mean over seeds"),
    Column("perplexity", "float", "1", "e^L"),
    *estimated("difference", "nats/token", "L less the dense model's, over the seeds of both", ""),
    Column("seed_sd", "float", "nats/token", f"standard deviation of L {_COMMON}", True),
    Column("freedom", "int", "1", "degrees of freedom of seed_sd"),
    Column("flops_per_token", "float", "FLOP/token", "training FLOPs without embeddings, M"),
    *of_runs("N_total", "N_active", "tokens_per_second", "peak_memory"),
    *estimated("steps_ratio", "1", "steps to the target loss over the dense model's", "steps"),
    Column("steps_sd", "float", "1", f"standard deviation of ln of the steps {_COMMON}", True),
    Column("steps_freedom", "int", "1", "degrees of freedom of steps_sd"),
    Column("reached", "int", "runs", "that reached the target loss", True),
    Column("spikes", "float", "steps", "logged, far above those around them; mean over seeds"),
)
def arms(inputs: Inputs) -> Rows:
    """Returns a row for each architecture and size of each arm.

    Intervals are over seeds, whose spread is pooled over the arms of the size. The ratio of steps
    is infinite where a seed did not reach the target.
    """
    cells = [
        Cell(arm, runs, inputs)
        for arm in ARMS
        for _, runs in inputs.sweep(arm).groupby([*SIZE, *SHAPE], sort=True)
    ]
    sizes = {cell.size: [other for other in cells if other.size == cell.size] for cell in cells}
    return [row for alike in sizes.values() for row in _rows(alike)]


def _rows(cells: "list[Cell]") -> Iterator[Row]:
    """Yields the rows of one size, the dense model's first."""
    base = next((cell for cell in cells if cell.arm == DENSE), None)
    loss = Spread.of([cell.losses for cell in cells])
    steps = [cell.log_steps(base) if base else {} for cell in cells]
    pace = Spread.of([{s: v for s, v in of.items() if math.isfinite(v)} for of in steps])
    spreads = {"seed_sd": loss.sd, "freedom": loss.freedom}
    spreads |= {"steps_sd": pace.sd, "steps_freedom": pace.freedom}
    for cell, own in zip(cells, steps, strict=True):
        row = cell.row() | spreads
        if base:
            row["reached"] = sum(map(math.isfinite, own.values()))
        if base and base is not cell:
            row["difference"], row["low"], row["high"] = loss.difference(cell.losses, base.losses)
            ratio = pace.difference(own, steps[cells.index(base)])
            row["steps_ratio"], row["steps_low"], row["steps_high"] = np.exp(ratio)
        yield row


@arms.limits
def arms_warnings(frame: pd.DataFrame) -> list[str]:
    """Says which arms have one seed alone, and which have no dense model of their size."""
    lines = []
    if alone := sorted(set(frame.loc[frame["n_seeds"] < 2, "arm"].map(ARMS))):
        lines.append(f"some runs have one seed alone, of: {', '.join(alone)}")
    lost = frame[(frame["arm"] != DENSE) & frame["difference"].isna()]
    if len(lost):
        lines.append(f"{len(lost)} rows have no dense model of their size to compare with")
    return lines


@dataclass(frozen=True)
class Cell:
    """The completed runs of one arm, shape and size, which differ in their seed alone."""

    arm: str
    runs: pd.DataFrame
    inputs: Inputs

    def __post_init__(self) -> None:
        if self.runs["seed"].duplicated().any():
            ids = ", ".join(self.runs.loc[self.runs["seed"].duplicated(keep=False), "run_id"])
            raise UserError(
                f"the arm {self.arm} has several runs of one seed, size and shape ({ids}); give "
                "each a sweep of its own"
            )

    @property
    def size(self) -> tuple[int, ...]:
        """Gives width, context and tokens, in which arms that are compared agree."""
        return tuple(int(self.runs[name].iloc[0]) for name in SIZE)

    @property
    def losses(self) -> dict[int, float]:
        """Maps each seed to its validation loss, nats/token."""
        return dict(zip(self.runs["seed"], self.runs["L"], strict=True))

    @cached_property
    def curves(self) -> dict[int, Array]:
        """Maps each seed to its training losses, (steps,) nats/token."""
        return {
            int(run["seed"]): self.inputs.history(str(run["run_id"]))["loss"].to_numpy(float)
            for _, run in self.runs.iterrows()
        }

    def log_steps(self, base: "Cell") -> dict[int, float]:
        """Returns ln of the steps to the target loss of the dense model, by seed."""
        targets = {
            seed: float(smoothed(curve)[round(TARGET * len(curve)) - 1])
            for seed, curve in base.curves.items()
        }
        return {
            seed: math.log(steps_to_target(curve, targets[seed]))
            for seed, curve in self.curves.items()
            if seed in targets
        }

    def row(self) -> Row:
        """Returns the columns that follow from these runs alone."""
        runs, first = self.runs, self.runs.iloc[0]
        L, seeds = float(runs["L"].mean()), " ".join(map(str, sorted(runs["seed"])))
        row = {**first, "arm": self.arm, "n_seeds": len(runs), "seeds": seeds}
        row |= {name: float(runs[name].median()) for name in ("tokens_per_second", "peak_memory")}
        row["flops_per_token"] = float(first["C_leverage"] / first["D"])
        row["spikes"] = float(np.mean([spikes(curve) for curve in self.curves.values()]))
        return row | {"L": L, "perplexity": math.exp(L)}


@table(
    ARM,
    *of_runs("run_id", "E", "n_dense_layers", "d_model", "context", "D", "seed", "L", "L_beyond"),
    Column("rise", "float", "nats/token", "L_beyond less L"),
)
def longer(inputs: Inputs) -> pd.DataFrame:
    """Returns a row for each run of an arm that was evaluated on longer sequences (sec 5.2.6)."""
    runs = pd.concat([inputs.sweep(arm).assign(arm=arm) for arm in ARMS])
    return runs.assign(rise=runs["L_beyond"] - runs["L"]).dropna(subset=["rise"])


@table(
    ARM,
    *of_runs("lr", "L", "L_se"),
    Column("chosen", "bool", "1", "whether the arm's other runs have this rate"),
    Column("best", "bool", "1", "whether no other rate has a lower loss"),
)
def rates(inputs: Inputs) -> Iterator[Row]:
    """Yields a row for each arm and learning rate that was tried before its own was chosen."""
    for arm in ARMS:
        tried, chosen = inputs.sweep(RATES + arm), set(inputs.sweep(arm)["lr"])
        for run in records(tried.sort_values("lr", kind="stable")):
            own = {"chosen": run["lr"] in chosen, "best": run["L"] == tried["L"].min()}
            yield {**run, "arm": arm, **own}


@rates.limits
def rates_warnings(frame: pd.DataFrame) -> list[str]:
    """Says which arms train at a rate that was not the best, or at an end of those tried."""
    lines = []
    for arm, rows in frame.groupby("arm", sort=False):
        name, best = ARMS[str(arm)], rows.loc[rows["best"], "lr"].iloc[0]
        if not rows.loc[rows["best"], "chosen"].all():
            lines.append(f"{name}: the best rate tried is {best:g}, and it is not the one used")
        if best in (rows["lr"].min(), rows["lr"].max()):
            lines.append(f"{name}: the best rate, {best:g}, is an end of those tried")
    return lines
