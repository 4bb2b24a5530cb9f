"""What each arm came to, over seeds: its loss beside the dense model's, its cost, its learning."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs
from moelaws.laws.base import Array
from moelaws.spec.errors import UserError
from moelaws.studies.sectional.arms import ARMS, DENSE, LEVEL, SHAPE, SIZE
from moelaws.studies.sectional.learning import spikes, steps_to_target, target_loss
from moelaws.studies.sectional.spread import Spread
from moelaws.tables.column import Column

_INTERVAL = f"end of its {LEVEL:.0%} interval over seeds, whose spread is pooled over its arms"
_COMMON = "between seeds beside what all arms share, pooled over the arms of the size"


@table(
    Column("arm", "string", "1", "sweep of the grid that names the architecture"),
    Column("E", "int", "experts", "routed experts a layer, or slices; 1 for dense"),
    Column("k", "int", "experts", "experts that a token passes in a layer"),
    Column("n_dense_layers", "int", "layers", "blocks without experts"),
    Column("d_model", "int", "1", "width of the residual stream"),
    Column("context", "int", "tokens", "sequence length"),
    Column("D", "int", "tokens", "training tokens"),
    Column("lr", "float", "1", "peak learning rate"),
    Column("n_seeds", "int", "runs", "completed runs, which differ in their seed alone"),
    Column("seeds", "string", "1", "their seeds"),
    Column("L", "float", "nats/token", "validation loss, mean over seeds"),
    Column("perplexity", "float", "1", "e^L"),
    Column(
        "difference",
        "float",
        "nats/token",
        "L less that of the dense model of the size, over the seeds that both have",
        True,
    ),
    Column("low", "float", "nats/token", _INTERVAL, True),
    Column("high", "float", "nats/token", _INTERVAL, True),
    Column("seed_sd", "float", "nats/token", f"standard deviation of L {_COMMON}", True),
    Column("freedom", "int", "1", "degrees of freedom of seed_sd"),
    Column("flops_per_token", "float", "FLOP/token", "training FLOPs without embeddings, M"),
    Column("N_total", "int", "parameters", "all parameters, embeddings included"),
    Column("N_active", "int", "parameters", "those that a token passes"),
    Column(
        "tokens_per_second", "float", "tokens/s", "of the median step; other runs ran beside it"
    ),
    Column("peak_memory", "float", "bytes", "peak memory of the process or device"),
    Column(
        "steps_ratio",
        "float",
        "1",
        "steps to the target loss over the dense model's; infinite where a seed did not reach it",
        True,
    ),
    Column("steps_low", "float", "1", _INTERVAL, True),
    Column("steps_high", "float", "1", _INTERVAL, True),
    Column("steps_sd", "float", "1", f"standard deviation of ln of the steps {_COMMON}", True),
    Column("steps_freedom", "int", "1", "degrees of freedom of steps_sd"),
    Column("reached", "int", "runs", "that reached the target loss", True),
    Column("spikes", "float", "steps", "logged, far above those around them; mean over seeds"),
)
def derive(inputs: Inputs) -> Rows:
    """Makes a row for each architecture and size of each arm.

    Raises:
        UserError: if two runs of a cell have one seed.
    """
    cells = [
        Cell(arm, runs, inputs)
        for arm in ARMS
        for _, runs in inputs.sweep(arm).groupby([*SIZE, *SHAPE], sort=True)
    ]
    sizes = {cell.size: [other for other in cells if other.size == cell.size] for cell in cells}
    return pd.DataFrame([row for alike in sizes.values() for row in _rows(alike)])


def _rows(cells: list[Cell]) -> Iterator[dict[str, Any]]:
    """Yields the rows of one size, the dense model's first."""
    base = next((cell for cell in cells if cell.arm == DENSE), None)
    loss = Spread.of([cell.losses for cell in cells])
    steps = [cell.log_steps(base) if base else {} for cell in cells]
    pace = Spread.of([{s: v for s, v in of.items() if math.isfinite(v)} for of in steps])
    spreads = {
        "seed_sd": loss.sd, "freedom": loss.freedom,
        "steps_sd": pace.sd, "steps_freedom": pace.freedom,
    }  # fmt: skip
    for cell, own in zip(cells, steps, strict=True):
        row = cell.row() | spreads
        if base:
            row["reached"] = sum(map(math.isfinite, own.values()))
        if base and base is not cell:
            row["difference"], row["low"], row["high"] = loss.difference(cell.losses, base.losses)
            ratio = pace.difference(own, steps[cells.index(base)])
            row["steps_ratio"], row["steps_low"], row["steps_high"] = np.exp(ratio)
        yield row


@derive.limits
def warnings(frame: pd.DataFrame) -> list[str]:
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
        """What the dense model that it is compared with shares."""
        return tuple(int(self.runs[name].iloc[0]) for name in SIZE)

    @property
    def losses(self) -> dict[int, float]:
        """The validation loss of each seed, nats/token."""
        return dict(zip(self.runs["seed"], self.runs["L"], strict=True))

    @cached_property
    def curves(self) -> dict[int, Array]:
        """The training losses of each seed, (steps,) nats/token."""
        return {
            int(run["seed"]): self.inputs.history(str(run["run_id"]))["loss"].to_numpy(float)
            for _, run in self.runs.iterrows()
        }

    def log_steps(self, base: Cell) -> dict[int, float]:
        """Returns ln of the steps to the loss that is the dense model's target, by seed."""
        targets = {seed: target_loss(curve) for seed, curve in base.curves.items()}
        return {
            seed: math.log(steps_to_target(curve, targets[seed]))
            for seed, curve in self.curves.items()
            if seed in targets
        }

    def row(self) -> dict[str, Any]:
        """Returns what the runs have by themselves."""
        runs, first = self.runs, self.runs.iloc[0]
        L = float(runs["L"].mean())
        alike = ("E", "k", "n_dense_layers", "lr", "N_total", "N_active", *SIZE)
        return {
            "arm": self.arm,
            **{name: first[name] for name in alike},
            "n_seeds": len(runs),
            "seeds": " ".join(map(str, sorted(runs["seed"]))),
            "L": L,
            "perplexity": math.exp(L),
            "flops_per_token": float(first["C_leverage"] / first["D"]),
            "tokens_per_second": float(runs["tokens_per_second"].median()),
            "peak_memory": float(runs["peak_memory"].median()),
            "spikes": float(np.mean([spikes(curve) for curve in self.curves.values()])),
        }
