"""What each arm came to, over seeds: its loss beside the dense model's, its cost, its learning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Rows, table
from moelaws.analysis.inputs import Inputs
from moelaws.fitting.quantiles import t_interval
from moelaws.laws.base import Array
from moelaws.studies.sectional.arms import ARMS, DENSE, LEVEL, SHAPE, SIZE
from moelaws.studies.sectional.learning import spikes, steps_to_target, target_loss
from moelaws.tables.column import Column

_INTERVAL = f"end of its {LEVEL:.0%} interval over seeds, whose spread is pooled over all arms"


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
    Column("L", "float", "nats/token", "validation loss, mean over seeds"),
    Column("perplexity", "float", "1", "e^L"),
    Column("difference", "float", "nats/token", "L less that of the dense model of the size", True),
    Column("low", "float", "nats/token", _INTERVAL, True),
    Column("high", "float", "nats/token", _INTERVAL, True),
    Column("seed_sd", "float", "nats/token", "of L between seeds, pooled over all arms", True),
    Column("freedom", "int", "1", "degrees of freedom of the pooled spread"),
    Column("flops_per_token", "float", "FLOP/token", "training FLOPs without embeddings, M"),
    Column("N_total", "int", "parameters", "all parameters, embeddings included"),
    Column("N_active", "int", "parameters", "those that a token passes"),
    Column(
        "tokens_per_second", "float", "tokens/s", "of the median step; other runs ran beside it"
    ),
    Column("peak_memory", "float", "bytes", "peak memory of the process or device"),
    Column("balance_cv", "float", "1", "variation of tokens per expert on held-out text", True),
    Column(
        "steps_ratio",
        "float",
        "1",
        "steps to the target loss over the dense model's; infinite where a seed did not reach it",
        True,
    ),
    Column("steps_low", "float", "1", _INTERVAL, True),
    Column("steps_high", "float", "1", _INTERVAL, True),
    Column("reached", "int", "runs", "that reached the target loss"),
    Column("spikes", "float", "steps", "with a loss far above those before, mean over seeds"),
)
def derive(inputs: Inputs) -> Rows:
    """Makes a row for each architecture and size of each arm, the dense model's first."""
    cells = [
        Cell(arm, runs.sort_values("seed", kind="stable"), inputs)
        for arm in ARMS
        for _, runs in inputs.sweep(arm).groupby([*SIZE, *SHAPE], sort=True)
    ]
    dense = {cell.size: cell for cell in cells if cell.arm == DENSE}
    losses = Spread.of([cell.runs["L"].to_numpy(float) for cell in cells])
    rows, paces = [cell.row() for cell in cells], [cell.paces(dense) for cell in cells]
    pace = Spread.of([np.log(p[np.isfinite(p)]) for p in paces])
    for row, cell, ratios in zip(rows, cells, paces, strict=True):
        row |= {"seed_sd": losses.sd, "freedom": losses.freedom}
        base = dense.get(cell.size)
        if base is None or base is cell:
            continue
        row["difference"] = row["L"] - float(base.runs["L"].mean())
        row["low"], row["high"] = losses.around(
            row["difference"], 1 / len(cell.runs) + 1 / len(base.runs)
        )
        row["reached"] = int(np.isfinite(ratios).sum())
        if len(ratios):
            mean = float(np.log(ratios).mean())  # infinite where a seed did not reach the target
            ends = pace.around(mean, 1 / len(ratios))
            row["steps_ratio"], row["steps_low"], row["steps_high"] = np.exp([mean, *ends])
    return rows


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
class Spread:
    """The standard deviation between seeds, pooled over cells, and its degrees of freedom."""

    sd: float
    freedom: int

    @classmethod
    def of(cls, cells: Sequence[Array]) -> Spread:
        """Pools the values of ``cells``, an array of seeds each."""
        freedom = sum(max(0, len(values) - 1) for values in cells)
        squares = sum(
            float(np.square(values - values.mean()).sum()) for values in cells if len(values)
        )
        return cls(math.sqrt(squares / freedom) if freedom else math.nan, freedom)

    def around(self, centre: float, variance: float) -> tuple[float, float]:
        """Returns the interval about ``centre``, whose variance is a multiple of the spread's."""
        return t_interval(centre, self.sd * math.sqrt(variance), self.freedom, LEVEL)


@dataclass(frozen=True)
class Cell:
    """The completed runs of one arm, shape and size, which differ in their seed alone."""

    arm: str
    runs: pd.DataFrame
    inputs: Inputs

    @property
    def size(self) -> tuple[int, ...]:
        """What the dense model that it is compared with shares."""
        return tuple(int(self.runs[name].iloc[0]) for name in SIZE)

    @cached_property
    def losses(self) -> dict[int, Array]:
        """The training losses of each seed, (steps,) nats/token."""
        return {
            int(run["seed"]): self.inputs.history(str(run["run_id"]))["loss"].to_numpy(float)
            for _, run in self.runs.iterrows()
        }

    def paces(self, dense: Mapping[tuple[int, ...], Cell]) -> Array:
        """Returns the steps to the dense model's target over its own, (seeds that both have,)."""
        base = dense.get(self.size)
        if base is None or base is self:
            return np.zeros(0)
        ratios = []
        for seed in self.losses.keys() & base.losses.keys():
            target = target_loss(base.losses[seed])
            steps = [steps_to_target(cell.losses[seed], target) for cell in (self, base)]
            ratios.append(steps[0] / steps[1])
        return np.array(ratios)

    def row(self) -> dict[str, Any]:
        """Returns what the runs have by themselves."""
        runs, first = self.runs, self.runs.iloc[0]
        L = float(runs["L"].mean())
        alike = ("E", "k", "n_dense_layers", "lr", "N_total", "N_active", *SIZE)
        return {
            "arm": self.arm,
            **{name: first[name] for name in alike},
            "n_seeds": len(runs),
            "L": L,
            "perplexity": math.exp(L),
            "flops_per_token": float(first["C_leverage"] / first["D"]),
            "tokens_per_second": float(runs["tokens_per_second"].median()),
            "peak_memory": float(runs["peak_memory"].median()),
            "balance_cv": float(runs["balance_cv"].mean()),
            "reached": len(runs),
            "spikes": float(np.mean([spikes(loss) for loss in self.losses.values()])),
        }
