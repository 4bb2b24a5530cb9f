"""The sub-experiments of the leverage paper: what each varies, and its runs with that quantity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from moelaws.analysis.inputs import Inputs


@dataclass(frozen=True)
class Series:
    """A sweep of the study and the quantity ``x`` that it varies at constant FLOPs a token.

    ``key`` names the columns that tell its architectures apart whatever their size.
    """

    sweep: str
    label: str
    x: Callable[[pd.DataFrame], pd.Series]
    key: tuple[str, ...]
    log2: bool = False  # x is looked at as log2 x

    def runs(self, inputs: Inputs) -> pd.DataFrame:
        """The sweep's completed runs, sorted by C and x, with the column x; possibly empty."""
        rows = inputs.sweep(self.sweep)
        return rows.assign(x=self.x(rows).astype(float)).sort_values(["C", "x"], ignore_index=True)

    def scale(self, x: pd.Series | np.ndarray) -> np.ndarray:
        """x (n,) as it enters a parabola."""
        values = np.asarray(x, float)
        return np.log2(values) if self.log2 else values


def attention_share(frame: pd.DataFrame) -> pd.Series:
    """Attention's share of non-embedding FLOPs a token, 1 / (1 + r).

    By the allocation paper's App C, corrected, which is the leverage paper's M (App I, corrected)
    but for one column of the router: projections, scores and values over the whole context.
    """
    return 1 / (1 + frame["r"])


def shared_ratio(frame: pd.DataFrame) -> pd.Series:
    """Shared experts over active ones, E_s / (E_a + E_s): the leverage paper's S."""
    return frame["E_s"] / (frame["k"] + frame["E_s"])


SERIES: dict[str, Series] = {
    s.sweep: s
    for s in (
        Series(
            "activation",
            "activation ratio $A = E_a/E$",
            lambda frame: 1 - frame["S"],
            ("E",),
            log2=True,
        ),
        Series("granularity", "granularity $G$", lambda frame: frame["G"], ("E",), log2=True),
        Series("granularity_weak", "granularity $G$", lambda frame: frame["G"], ("E",), log2=True),
        Series("shared", "share of shared experts $E_s/(E_a+E_s)$", shared_ratio, ("E_s",)),
        Series(
            "dense_layers",
            "share of dense layers",
            lambda frame: frame["n_dense_layers"] / frame["n_layers"],
            ("n_dense_layers",),
        ),
        Series("attention", "attention's share of FLOPs $1/(1+r)$", attention_share, ("x",)),
        Series("heads", "attention heads $n_h$", lambda frame: frame["n_heads"], ("n_heads",)),
    )
}
