"""The best learning rate at each shape, how far it lies from the base's, and what that costs.

A ladder changes one size under one rule, and its smallest shape is the base. Near its best rate the
loss of a shape is a parabola in ln lr.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from moelaws.analysis.derive import Row, Rows, of_runs, table
from moelaws.analysis.effect import Effect
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, Minima, parabola_minima
from moelaws.analysis.regression import LEVEL, contrast, of_mean
from moelaws.fitting.quantiles import percentiles
from moelaws.tables.column import INSIDE, NOTE, RUNS, Column, estimated

BASE = "base"  # the sweep of the base's runs, which all ladders of their optimizer share
# Rule -> how the names of its sweeps end: factors of the base, or one rate for all weights
RULES = {"transfer": "", "alone": "_alone"}
REACH = 3  # the parabola is through rates so many steps from that of least mean loss
# After this share of its steps the base has the loss to which all shapes' steps are counted.
EARLY = 0.25
SMOOTH = 0.025  # share of the steps over which losses are averaged, as single batches are noisy


class Shape(NamedTuple):
    """The runs of one shape, and its best rate."""

    size: float
    runs: pd.DataFrame  # of all rates and seeds
    near: pd.DataFrame  # of these, those near the best rate
    best: Minima  # over ln lr: the estimate, then draws
    moves: list[float]  # how far leaving out an end rate moves it, if by half a step of the rates

    @property
    def rate(self) -> Array:
        """Returns ln of the best rate (1 + B,), which is infinite beyond the rates tried."""
        beyond = np.where(self.best.at_high_end, np.inf, -np.inf)
        return np.where(self.best.inside, self.best.x, beyond)

    @property
    def tried(self) -> float:
        """Returns the rate tried that is next to the best one."""
        rates = np.unique(self.near["lr"])
        return float(rates[np.abs(np.log(rates) - self.best.x[0]).argmin()])

    def cells(self) -> Row:
        """Returns the best rate, its interval and what limits the trust in it."""
        inside = bool(self.best.inside[0])
        row: Row = {"inside": inside, "n": len(self.near), "note": self.best.notes[0]}
        if inside:
            row["lr_star"] = _of(self.rate, self.moves).map(np.exp)
        return row


def ladders_of(
    inputs: Inputs, ladders: Mapping[str, str]
) -> Iterator[tuple[dict[str, str], list[Shape]]]:
    """Yields the shapes of each ladder from the base on, behind the cells that say which it is.

    ``ladders`` has the column of the size that changes along each. A shape that was tried at fewer
    than three rates is left out, and so is a ladder without runs.
    """
    base = inputs.sweep(BASE)
    for along, column in ladders.items():
        for rule, end in RULES.items():
            own = inputs.sweep(along + end)
            every = pd.concat([base[base["optimizer"].isin(own["optimizer"])], own])
            by_size = enumerate(every.groupby(every[column].astype(float)))
            known = [_shape(size, runs, seed) for seed, (size, runs) in by_size]
            if shapes := [*filter(None, known)]:
                yield {"along": along, "rule": rule}, shapes


def _shape(size: float, runs: pd.DataFrame, seed: int) -> Shape | None:
    means = runs.groupby("lr")["L"].mean()
    place = int(np.argmin(means))
    rates = means.index.to_numpy(float)[max(0, place - REACH) : place + REACH + 1]
    near = runs[runs["lr"].isin(rates)]
    best = parabola_minima(np.log(near["lr"]), near["L"], seed)
    if best is None:
        return None
    without = [near[near["lr"] != end] for end in rates[[0, -1]]]
    others = [parabola_minima(np.log(rest["lr"]), rest["L"]) for rest in without]
    moves = [float(other.x[0] - best.x[0]) for other in others if other]
    half = np.diff(np.log(rates)).mean() / 2
    return Shape(size, runs, near, best, [move for move in moves if abs(move) > half])


@table(
    Column("along", "string", "the ladder: what changes along it"),
    Column("rule", "string", "transfer, or alone: one rate for all weights"),
    Column("size", "float", "columns, layers, experts or training tokens"),
    Column("place", "string", "in the ladder: base, between or largest"),
    *estimated("lr_star", "rate of least loss by a parabola in ln lr", "1", "lr"),
    *estimated("L_star", "loss there", "nats/token", "L"),
    *estimated("drift", "log10 of the best rate over the base's"),
    *estimated("power", "of the size, that best rates follow up to the largest shape"),
    *estimated("regret", "loss at the base's best rate, less L_star", "nats/token"),
    *estimated(
        "gain", "loss of the next smaller shape less its own, at the base's best rate", "nats/token"
    ),
    *estimated("later", "steps to an early training loss of the base, over the base's"),
    Column(
        "clipped", "float?", "share of steps whose gradient was clipped, at the base's best rate"
    ),
    INSIDE,
    RUNS,
    NOTE,
    told={"note != ''": "{along}, {rule}, {size:g}: no best rate inside those tried: {note}"},
)
def optima(inputs: Inputs, ladders: Mapping[str, str]) -> Rows:
    """Yields the best rate of each shape, and how it compares with the base's.

    ``ladders`` has the column of the size that changes along each. Intervals of rates hold what
    follows without either end rate, where that moves a best rate by half a step or more.
    """
    for about, known in ladders_of(inputs, ladders):
        base = known[0]
        level = 1 - (1 - LEVEL) / max(1, len(known) - 1)  # so that all gains hold at once
        places = ["base", *["between"] * (len(known) - 2), "largest"]
        for i, shape in enumerate(known):
            best = shape.best
            row = {**about, "size": shape.size, "place": places[i], **shape.cells()}
            row["L_star"] = _of(best.y)
            if inputs.sources == ("trained",):
                row["clipped"] = _clipped(inputs, shape.runs[shape.runs["lr"] == base.tried])
            if i and base.best.inside[0]:
                row["gain"] = _gain(known[i - 1], shape, base.best.x[0], level)
                row["later"] = _later(inputs, base, shape)
            if i and base.best.inside[0] and best.inside[0]:
                moves = [*shape.moves, *(-move for move in base.moves)]
                drift = np.where(base.best.inside, shape.rate - base.best.x, -base.rate)
                row["drift"] = _of(drift, moves) * (1 / np.log(10))
                row["power"] = _power([one for one in known[: i + 1] if one.best.inside[0]])
                squares = (base.best.x - best.x) ** 2
                row["regret"] = _of(np.where(best.inside, best.curvature * squares / 2, np.inf))
            yield row


@table(
    Column("run_id", "string", "a run of the base"),
    *of_runs("E", "k", "optimizer"),
    *estimated("lr_star", "rate of least loss by a parabola in ln lr", "1", "lr"),
    INSIDE,
    RUNS,
    NOTE,
    told={"note != ''": "{k} of {E} experts, {optimizer}: no best rate inside those tried: {note}"},
)
def bases(inputs: Inputs) -> Rows:
    """Yields the best rate of each share of active experts, at the base's size and tokens."""
    sizes = inputs.sweep(BASE)[["d_model", "n_layers", "D"]].drop_duplicates()
    runs = inputs.completed.merge(sizes)
    standard = runs[runs["parameterization"].fillna("standard") == "standard"]
    for (E, k, optimizer), own in standard.groupby(["E", "k", "optimizer"], dropna=False):
        if shape := _shape(1.0, own, 0):
            run = {"run_id": own["run_id"].iloc[0], "E": E, "k": k, "optimizer": optimizer}
            yield run | shape.cells()


def _of(values: Array, moves: Sequence[float] = ()) -> Effect:
    """Returns the first of ``values`` (1 + B,) with an interval of the others and the moves."""
    low, high = percentiles(values[1:], LEVEL, "inverted_cdf")
    moved = values[0] + np.array([0.0, *moves])
    return Effect(float(values[0]), min(low, moved.min()), max(high, moved.max()))


def _power(known: Sequence[Shape]) -> Effect:
    """Returns the slope of ln of the best rate over ln of the size, by least squares."""
    u = np.log([shape.size for shape in known])
    weights = (u - u.mean()) / np.sum((u - u.mean()) ** 2)
    # Beyond the rates tried a draw is infinite; two of them leave their slope open
    with np.errstate(invalid="ignore"):
        slopes = weights @ np.array([shape.rate for shape in known])
    moves = [w * move for w, shape in zip(weights, known, strict=True) for move in shape.moves]
    return _of(np.where(np.isnan(slopes), np.inf, slopes), moves)


def _gain(smaller: Shape, shape: Shape, rate: float, level: float) -> Effect:
    """Returns the difference of losses at ``rate``, ln lr, of runs with one rate and seed."""
    pairs = smaller.near.merge(shape.runs, on=["lr", "seed"])
    X, y = np.vander(np.log(pairs["lr"]) - rate, 3), pairs["L_x"] - pairs["L_y"]
    return contrast(X, y.to_numpy(float), np.array([0.0, 0.0, 1.0]), level)


def _later(inputs: Inputs, base: Shape, shape: Shape) -> Effect:
    """Returns the mean ratio of steps to a loss, at the rate tried next to the base's best."""
    if inputs.sources != ("trained",):
        return Effect(np.nan)
    pairs = base.near.merge(shape.runs, on=["lr", "seed"])
    pairs = pairs[pairs["lr"] == base.tried]
    ratios = []
    for ids in pairs[["run_id_x", "run_id_y"]].to_numpy(str):
        each = [_smoothed(inputs, run) for run in ids]
        level = each[0].iloc[int(EARLY * len(each[0]))]
        first, own = (loss.index[loss <= level].min() for loss in each)
        ratios.append(own / first)
    return of_mean(np.log(ratios)).map(np.exp)


def _clipped(inputs: Inputs, runs: pd.DataFrame) -> float:
    """Returns the mean share of logged steps whose gradient's norm was above ``clip``."""
    each = zip(runs["run_id"], runs["clip"], strict=True)
    return float(np.mean([(inputs.history(run)["grad_norm"] > clip).mean() for run, clip in each]))


def _smoothed(inputs: Inputs, run: str) -> pd.Series:
    """Returns the training loss by step, as means over the last ones."""
    history = inputs.history(run).set_index("step")["loss"]
    return history.rolling(max(1, int(SMOOTH * len(history)))).mean().dropna()
