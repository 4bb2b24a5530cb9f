"""The arms, a sweep of the grid each, and the effect of each arm's choice on the loss.

An arm is compared with the base in blocks: runs of one budget, number of active experts and seed,
which see the same text in the same order. The noise of one run beside what its block shares is
pooled over the arms that differ from the base in their router alone.
"""

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
import pandas as pd

from moelaws.accounting.cost import orthogonalizing_flops
from moelaws.analysis.contrasts import contrast_errors
from moelaws.analysis.derive import records
from moelaws.analysis.estimate import Estimate
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import LEVEL, BySeed, Spread, of_mean, slope_weights
from moelaws.fitting.quantiles import t_interval
from moelaws.laws.base import Array
from moelaws.spec.experts import MoE
from moelaws.spec.model import Model

# Sweep -> name in figures and tables.
ARMS = {
    "adamw": "softmax, loss",
    "sigmoid": "sigmoid, loss",
    "bias": "softmax, bias",
    "sigmoid_bias": "sigmoid, bias",
    "none": "softmax, no balance",
    "sigmoid_none": "sigmoid, no balance",
    "muon": "Muon",
    "muon_bias": "Muon, bias",
    "muon_sigmoid_bias": "Muon, sigmoid, bias",
    "shuffled": "shuffled text",
}
BASE, TOP_K, MUON, SHUFFLED = "adamw", 2, "muon", "shuffled"
# Their noise is that of every difference. Runs with both choices are left out, because they err
# as those with one do: the pairs of one block are not independent.
ROUTERS = (BASE, "sigmoid", "bias")
BLOCK = ["C", "k", "seed"]
REACH = NormalDist().inv_cdf((1 + LEVEL) / 2)  # of an interval, in normal errors


@dataclass(frozen=True)
class Arms:
    """The completed runs of all arms, with ``arm`` and 100 ln L as ``y``."""

    inputs: Inputs

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Returns a row for each run."""
        rows = pd.concat([self.inputs.sweep(arm).assign(arm=arm) for arm in ARMS])
        rows = rows.drop_duplicates("run_id").reset_index(drop=True)
        return rows.assign(y=100 * np.log(rows["L"]), block=rows.groupby(BLOCK).ngroup())

    def of(self, arm: str) -> BySeed:
        """Returns 100 ln L of an arm, by block."""
        rows = self.runs[self.runs["arm"] == arm]
        return dict(zip(rows["block"], rows["y"], strict=True))

    @cached_property
    def spread(self) -> Spread:
        """Returns the noise of 100 ln L of a run beside what its block shares."""
        return Spread.of([self.of(arm) for arm in ROUTERS])

    def effect(self, arm: str) -> Estimate:
        """Returns by how many percent the arm's loss is above the base's, over common blocks.

        The interval is for other seeds and, where losses by document are known, other documents.
        """
        one, base = self.of(arm), self.of(BASE)
        value, _, high = self.spread.difference(one, base)
        reach = float(np.hypot(high - value, REACH * np.nan_to_num(self.documents(arm))))
        return Estimate(value, value - reach, value + reach, len(one.keys() & base.keys()))

    def of_active(self, k: int) -> Estimate:
        """Returns by how many percent the base's loss is higher with ``k`` active experts.

        These models begin with other weights, so that the interval is by seeds alone.
        """
        base = self.runs[self.runs["arm"] == BASE].pivot_table("y", ["C", "seed"], "k")
        differences = (base[k] - base[TOP_K]).dropna()
        return of_mean(differences if len(differences) else [np.nan])

    def documents(self, arm: str) -> float:
        """Returns the error of ``effect`` by documents, paired, in percent; NaN if unknown."""
        blocks = self.of(arm).keys() & self.of(BASE).keys()
        if not blocks:
            return np.nan
        rows = self.runs[self.runs["block"].isin(blocks) & self.runs["arm"].isin((arm, BASE))]
        signs = np.where(rows["arm"] == arm, 1, -1)
        errors = contrast_errors(self.inputs, rows["run_id"])
        return float(errors.documents(100 * signs / rows["L"].to_numpy(float) / len(blocks)))

    @cached_property
    def slope(self) -> float:
        """Returns the slope of 100 ln L of the base over ln C; NaN for one budget."""
        rows = self.runs[(self.runs["arm"] == BASE) & (self.runs["k"] == TOP_K)]
        mean = rows.groupby("C")["y"].mean()
        return float(_weights(mean.index.to_numpy()) @ mean)

    def own_products(self) -> float:
        """Returns what Muon computes to make its steps orthogonal, over the FLOPs of training."""
        shares = []
        for row in records(self.runs[self.runs["arm"] == MUON]):
            ffn = MoE(kind="moe", n_experts=row["E"], top_k=row["k"], d_expert=row["d_expert"])
            shape = {name: row[name] for name in Model.model_fields if name in row}
            flops = orthogonalizing_flops(Model(ffn=ffn, **shape)) * row["steps"]
            shares.append(flops / row["C_sparsity"])
        return float(np.mean(shares))

    def flattening(self) -> Estimate:
        """Returns the slope over ln C of shuffled text over that of text, which is not varied."""
        shuffled, base = self.of(SHUFFLED), self.of(BASE)
        blocks = sorted(shuffled.keys() & base.keys())
        weights = _weights(self.runs.groupby("block")["C"].first()[blocks].to_numpy(float))
        changes = np.array([shuffled[block] - base[block] for block in blocks])
        change = float(weights @ changes) if blocks else np.nan
        se = self.spread.sd * np.sqrt(2 * np.sum(weights**2))
        ends = t_interval(change, se, self.spread.freedom, LEVEL)
        value, high, low = (1 + number / self.slope for number in (change, *ends))
        return Estimate(value, float(low), float(high), len(blocks))


def _weights(C: Array) -> Array:
    """Returns the weights of a slope over ln C, NaN for one budget."""
    if len(np.unique(C)) < 2:
        return np.full(len(C), np.nan)
    return slope_weights(np.log(C))


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns each arm's first run of a budget and k, its loss and load as means over seeds."""
    cells = runs.groupby(["arm", "k", "C"], sort=False)
    own = cells[["L", "balance_cv", "balance_entropy"]].mean()
    first = cells.first().drop(columns=list(own))
    return first.join(own).assign(seeds=cells.size()).reset_index()
