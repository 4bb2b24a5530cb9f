"""The sub-experiments of the leverage paper: what each varies, its runs, and their parabolas.

One parabola or slope is fitted to all budgets of a sweep, with a level for each budget. Runs of one
trunk err together, since they share most of their steps: intervals take trunks for independent.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from moelaws.accounting.flops import TRAINING
from moelaws.analysis.effect import Effect
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, minima, terms
from moelaws.analysis.regression import of_draws
from moelaws.fitting.quantiles import jackknife_covariance, least_squares, student_t

DRAWS = 2000
SIZE = ("n_layers", "d_model")


@dataclass(frozen=True)
class Parabola:
    """ln L over t in [low, high], the same for all budgets but for the level of each.

    The values ``y_n3`` (1 + draws, 3) lie at the low end, the middle and the high end, the estimate
    first. There are no draws without degrees of freedom. The levels are left out.
    """

    y_n3: Array
    low: float
    high: float
    n: int
    budgets: int

    def at(self, t: float | Array) -> Array:
        """Returns ln L at ``t`` of the estimate and of each draw, (..., 1 + draws)."""
        slope, curvature = terms(self.y_n3)
        s = (t - (self.low + self.high) / 2) / ((self.high - self.low) / 2)
        return self.y_n3[:, 1] + slope * s + curvature / 2 * s**2

    def excess(self, t: float | Array) -> Array:
        """Returns ln L at ``t`` less its least of the estimate and of each draw, (1 + draws,)."""
        return self.at(t) - minima(self.y_n3, self.low, self.high).y

    def optima(self) -> Array:
        """Returns the t of least ln L in the range, of the estimate and each draw, (1 + draws,)."""
        return minima(self.y_n3, self.low, self.high).x

    def optima_between(self) -> tuple[Array, Array]:
        """Returns the least and the largest t at which each draw's ln L may be least, (draws,).

        They differ where a draw has its top inside the range: then ln L is least at an end, and
        chance says at which. Where nothing moves the loss, this is so in half of the draws.
        """
        slope, curvature = terms(self.y_n3[1:])
        topped, least = -curvature > np.abs(slope), self.optima()[1:]
        return np.where(topped, self.low, least), np.where(topped, self.high, least)

    def end_slopes(self) -> Array:
        """Returns d ln L / dt at both ends, of the estimate and of each draw, (1 + draws, 2)."""
        slope, curvature = terms(self.y_n3)
        return np.column_stack([slope - curvature, slope + curvature]) * 2 / (self.high - self.low)


def parabola(t: Array, runs: pd.DataFrame) -> Parabola | None:
    """Returns the parabola of ln L in ``t`` (n,) that all budgets share; None if undetermined."""
    return next(iter(parabolas(t, runs, np.zeros(len(t)))), None)


def parabolas(t: Array, runs: pd.DataFrame, shapes: Array) -> list[Parabola]:
    """Returns a parabola for each value of ``shapes`` (n,), all over the range of ``t`` (n,).

    Each budget of a shape has a level of its own. One regression gives all parabolas, so that their
    draws go together. There are none where one of them is not determined.
    """
    C = runs["C"].to_numpy(float)
    levels = pd.Series(t).groupby([shapes, C]).nunique().groupby(level=0).max()
    if not len(t) or levels.min() < 3:
        return []
    low, high = float(t.min()), float(t.max())
    s = (t - (low + high) / 2) / ((high - low) / 2)
    own = [shapes == shape for shape in levels.index]
    X = np.column_stack([m * power for m in own for power in (s, s**2)])
    levels_of = pd.DataFrame({"shape": shapes, "C": C}).groupby(["shape", "C"]).ngroup()
    fitted = regression(X, np.log(runs["L"].to_numpy(float)), levels_of, runs["trunk"])
    if fitted is None:
        return []
    ends = np.array([[-1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    return [
        Parabola(y @ ends.T, low, high, int(m.sum()), len(np.unique(C[m])))
        for y, m in zip(np.split(fitted, len(own), axis=1), own, strict=True)
    ]


def slope(x: Array, y: Array, runs: pd.DataFrame) -> Effect:
    """Returns the slope of ``y`` (n,) on ``x`` (n,), with a level for each budget of ``runs``."""
    fitted = regression(x[:, None], y, runs["C"], runs["trunk"])
    return Effect(math.nan, n=len(y)) if fitted is None else of_draws(fitted[:, 0], len(y))


def regression(X: Array, y: Array, groups: ArrayLike, trunks: ArrayLike) -> Array | None:
    """Returns what ``least_squares`` of ``y`` (n,) on ``X`` (n, P) does, with a level a group.

    Where ``trunks`` (n,) have several rows, each is left out in turn. There are no draws where one
    of them alone determines a coefficient. None if the rows do not suffice.
    """
    group, trunk = np.asarray(groups), np.asarray(trunks, str)
    within = _within(X, y, group)
    if not _determined(within[0]):
        return None
    names = np.unique(trunk)
    if len(names) == len(y):
        return least_squares(*within, draws=DRAWS, absorbed=len(np.unique(group)))
    others = [_within(X[rows], y[rows], group[rows]) for rows in names[:, None] != trunk]
    fitted = least_squares(*within, draws=0)
    if not all(_determined(X_less) for X_less, _ in others):
        return fitted
    left_out = np.vstack([least_squares(*rows, draws=0) for rows in others])
    values, vectors = np.linalg.eigh(jackknife_covariance(fitted[0], left_out))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.vstack([fitted, fitted + student_t(root, len(names) - 1, DRAWS, seed=0)])


def _within(X: Array, y: Array, group: Array) -> tuple[Array, Array]:
    """Returns ``X`` (n, P) and ``y`` (n,) less the means of their group."""
    rows = pd.DataFrame(np.column_stack([X, y]))
    less = (rows - rows.groupby(group).transform("mean")).to_numpy()
    return less[:, :-1], less[:, -1]


def _determined(X: Array) -> bool:
    """Returns whether the columns of ``X`` (n, P) are independent."""
    n, P = X.shape
    return n >= P and bool(np.linalg.matrix_rank(X, tol=1e-9) == P)


@dataclass(frozen=True)
class Series:
    """A sweep of the study and the quantity ``x`` that it varies at constant FLOPs a token."""

    sweep: str
    x: Callable[[pd.DataFrame], pd.Series]
    log2: bool = False  # parabolas are in log2 x
    sized: bool = True  # runs of a budget that differ in SIZE are compared at the best size alone
    architecture: Callable[[pd.DataFrame], pd.Series] = itemgetter("E")  # x may vary with the size

    def runs(self, inputs: Inputs) -> pd.DataFrame:
        """Returns the sweep's completed runs with the column x, sorted by C and x."""
        rows = inputs.sweep(self.sweep)
        return rows.assign(x=self.x(rows).astype(float)).sort_values(["C", "x"], ignore_index=True)

    def at_best_size(self, inputs: Inputs) -> pd.DataFrame:
        """Returns the runs of each budget whose size has the least loss there, the mean over x."""
        runs = self.runs(inputs)
        return at_best_size(runs, ["C"]) if self.sized else runs

    def by_architecture(self, inputs: Inputs) -> pd.DataFrame:
        """Returns the runs of each architecture at its best size of each budget."""
        runs = self.runs(inputs)
        runs["architecture"] = self.architecture(runs)
        best = at_best_size(runs, ["C", "architecture"]) if self.sized else runs
        return best.reset_index(drop=True)

    def compared(self, inputs: Inputs) -> pd.DataFrame:
        """Returns those at_best_size at budgets that have two values of x or more."""
        runs = self.at_best_size(inputs)
        return runs[runs.groupby("C")["x"].transform("nunique") > 1]

    def scaled(self, runs: pd.DataFrame) -> Array:
        """Returns x (n,), or its logarithm to base 2, in which parabolas are."""
        x = runs["x"].to_numpy(float)
        return np.log2(x) if self.log2 else x

    def parabola(self, runs: pd.DataFrame) -> Parabola | None:
        """Returns the parabola of ln L in x, as scaled, that the budgets of ``runs`` share."""
        return parabola(self.scaled(runs), runs)


def at_best_size(runs: pd.DataFrame, among: list[str]) -> pd.DataFrame:
    """Returns, of the runs that are equal in ``among``, those of the size of least mean loss."""
    mean = runs.groupby([*among, *SIZE])["L"].transform("mean")
    return runs[mean == mean.groupby([runs[name] for name in among]).transform("min")]


def attention_fraction(frame: pd.DataFrame) -> pd.Series:
    """Returns the fraction of all forward FLOPs that attention takes (leverage, Eq 10 to 12).

    Attention's are its projections, scores and values over the whole context, corrected as in M.
    All FLOPs include the logits: by this count the shapes of Table 12 give 30 to 47 % to attention,
    and without the logits 42 to 83 %.
    """
    M = frame["C_leverage"] / (TRAINING * frame["D"])
    logits = 2 * frame["d_model"] * frame["vocab_size"]
    return M / (1 + frame["r"]) / (M + logits)


def shared_ratio(frame: pd.DataFrame) -> pd.Series:
    """Returns shared experts over active ones, E_s / (E_a + E_s), the leverage paper's S."""
    return frame["E_s"] / (frame["k"] + frame["E_s"])


def attention_shape(frame: pd.DataFrame) -> pd.Series:
    """Returns each run's shape by its place in the order of attention's share at its budget.

    It counts from the shape whose experts are nearest to the model's width, d_expert = d_model.
    """
    place = frame.groupby("C")["r"].rank(method="dense", ascending=False)
    nearest = np.log(frame["G"] / 2).abs().groupby(frame["C"]).idxmin()
    return place - frame["C"].map(nearest).map(place)


SERIES = {series.sweep: series for series in (
    Series("activation", lambda t: 1 - t["S"], log2=True),
    *(Series(sweep, itemgetter("G"), log2=True)
      for sweep in ("granularity", "granularity_weak", "granularity_sparser")),
    Series("shared", shared_ratio, architecture=itemgetter("k")),
    Series("dense_layers", lambda t: t["n_dense_layers"] / t["n_layers"],
           architecture=itemgetter("n_dense_layers")),
    Series("attention", attention_fraction, architecture=attention_shape, sized=False),
    Series("heads", itemgetter("n_heads")),
)}  # fmt: skip
