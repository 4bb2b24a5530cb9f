"""The sub-experiments of the leverage paper: the quantity that each varies, and its runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs
from moelaws.studies.leverage.derived.pooled import Parabola, parabola


@dataclass(frozen=True)
class Series:
    """A sweep of the study and the quantity ``x`` that it varies at constant FLOPs a token."""

    sweep: str
    label: str
    x: Callable[[pd.DataFrame], pd.Series]
    log2: bool = False  # parabolas are in log2 x

    def runs(self, inputs: Inputs) -> pd.DataFrame:
        """Returns the sweep's completed runs with the column x, sorted by C and x."""
        rows = inputs.sweep(self.sweep)
        return rows.assign(x=self.x(rows).astype(float)).sort_values(["C", "x"], ignore_index=True)

    def compared(self, inputs: Inputs) -> pd.DataFrame:
        """Returns the runs at those budgets that have two values of x or more."""
        runs = self.runs(inputs)
        return runs[runs.groupby("C")["x"].transform("nunique") > 1]

    def parabola(self, runs: pd.DataFrame) -> Parabola | None:
        """Returns the parabola of ln L in x, as scaled, that the budgets of ``runs`` share."""
        L, C = runs["L"].to_numpy(float), runs["C"].to_numpy(float)
        return parabola(self.scale(runs["x"]), L, C)

    def scale(self, x: pd.Series | np.ndarray) -> np.ndarray:
        """Returns x (n,) as it enters a parabola."""
        values = np.asarray(x, float)
        return np.log2(values) if self.log2 else values


def attention_share(frame: pd.DataFrame) -> pd.Series:
    """Returns attention's share of non-embedding FLOPs a token, 1 / (1 + r).

    It counts projections, scores and values over the whole context, by the allocation paper's
    App C, corrected, which is the leverage paper's M (App I, corrected) but for one column of the
    router.
    """
    return 1 / (1 + frame["r"])


def shared_ratio(frame: pd.DataFrame) -> pd.Series:
    """Returns shared experts over active ones, E_s / (E_a + E_s), the leverage paper's S."""
    return frame["E_s"] / (frame["k"] + frame["E_s"])


def activation_ratio(frame: pd.DataFrame) -> pd.Series:
    """Returns E_a / E, the activation ratio of routed experts alone."""
    return 1 - frame["S"]


def dense_share(frame: pd.DataFrame) -> pd.Series:
    """Returns the share of layers that are dense."""
    return frame["n_dense_layers"] / frame["n_layers"]


_SERIES = (
    Series("activation", "activation ratio $A = E_a/E$", activation_ratio, log2=True),
    Series("granularity", "granularity $G$", itemgetter("G"), log2=True),
    Series("granularity_weak", "granularity $G$", itemgetter("G"), log2=True),
    Series("shared", "share of shared experts $E_s/(E_a+E_s)$", shared_ratio),
    Series("dense_layers", "share of dense layers", dense_share),
    Series("attention", "attention's share of FLOPs $1/(1+r)$", attention_share),
    Series("heads", "attention heads $n_h$", itemgetter("n_heads")),
)
SERIES = {series.sweep: series for series in _SERIES}
