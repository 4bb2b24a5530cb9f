"""The three routers of the paper, and which fit and rows are whose."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Router:
    """A routing technique.

    Attributes:
        name: as the table has it.
        fit: the fit of Eq 1 by the paper's objective; ``fit_huber`` is the one by ours.
        variant: of the law ``clark.routing`` that holds the values printed for it.
    """

    name: str
    fit: str
    variant: str

    @property
    def huber(self) -> str:
        """The fit of Eq 1 by our objective."""
        return f"{self.fit}_huber"


ROUTERS = (
    Router("S-Base", "s_base", ""),
    Router("RL-R", "rl_r", "rl-r"),
    Router("Hash", "hash", "hash"),
)
DENSE = "Dense"
CUTOFF = "log10_N"  # log10 of the size at which routing stops helping


def main_runs(table: pd.DataFrame) -> pd.DataFrame:
    """Returns the runs that Eq 1 speaks of: one active expert, every other layer routed."""
    kept = (table["k_source"] == 1) & (table["routing_frequency"] == 0.5)
    return table[kept].reset_index(drop=True)
