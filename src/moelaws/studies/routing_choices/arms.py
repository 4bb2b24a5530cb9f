"""The arms, a sweep of the grid each, and the effect of each arm's choice on the loss.

An arm is compared with the base in blocks: runs of one budget, number of active experts and seed,
which see the same text in the same order. The noise of one run beside what its block shares is
pooled over the arms that differ from the base in their router alone. Arms with another optimizer
or other text have a noise of their own. The optimizers are compared at the best rate that was tried
of each, for at other rates the difference would be that of the rates, too.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np
import pandas as pd

from moelaws.accounting.cost import orthogonalizing_flops
from moelaws.analysis.contrasts import contrast_errors
from moelaws.analysis.derive import records
from moelaws.analysis.effect import Effect
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import LEVEL, BySeed, Spread, of_mean, slope_weights
from moelaws.fitting.quantiles import t_interval
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
BEST = {BASE: "adamw_best", MUON: "muon_best"}  # arms of an optimizer's runs at its best rates
NAMES = ARMS | {BEST[arm]: f"{ARMS[arm]}, best rates" for arm in BEST}
# Their noise is that of differences between routers. Runs with both choices are left out, because
# they err as those with one do: the pairs of one block are not independent.
ROUTERS = (BASE, "sigmoid", "bias")
BLOCK = ["C", "k", "seed"]
# How many standard errors an interval reaches to either side.
REACH = NormalDist().inv_cdf((1 + LEVEL) / 2)


@dataclass(frozen=True)
class Arms:
    """The completed runs of all arms, with ``arm`` and 100 ln L as ``y``."""

    inputs: Inputs

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Returns a row for each run of an arm."""
        arms = {arm: self.inputs.sweep(arm) for arm in ARMS}
        arms |= {best: self.best(arm) for arm, best in BEST.items()}
        rows = pd.concat([own.assign(arm=arm) for arm, own in arms.items()], ignore_index=True)
        return rows.assign(y=100 * np.log(rows["L"]), block=rows.groupby(BLOCK).ngroup())

    def tried(self, arm: str) -> pd.DataFrame:
        """Returns an optimizer's runs at every rate that was tried."""
        rows = pd.concat([self.inputs.sweep(name) for name in (arm, f"rates_{arm}")])
        return rows[rows["k"] == TOP_K].drop_duplicates("run_id")

    def best(self, arm: str) -> pd.DataFrame:
        """Returns an optimizer's runs at the rate that was best with the first seed, by budget.

        The runs of that seed chose the rate, so that their losses flatter it. They are left out.
        Where no further seed was trained at these rates, the runs are those of the arm's sweep.
        """
        tried = self.tried(arm)
        first = tried["seed"] == tried["seed"].min()
        chosen = tried[first].sort_values("L").drop_duplicates("C")[["C", "lr"]]
        further = tried[~first].merge(chosen)
        return further if len(further) else self.inputs.sweep(arm).query("k == @TOP_K")

    def of(self, arm: str) -> BySeed:
        """Returns 100 ln L of an arm, by block."""
        rows = self.runs[self.runs["arm"] == arm]
        return rows.set_index("block")["y"].to_dict()

    @cached_property
    def spread(self) -> Spread:
        """Returns the noise of 100 ln L of a run beside what its block shares."""
        return Spread.of([self.of(arm) for arm in ROUTERS])

    def effect(self, arm: str) -> Effect:
        """Returns by how many percent the arm's loss is above the base's, over common blocks.

        The interval is for other seeds and, where losses by document are known, other documents.
        """
        by_seeds = self.noise(arm).difference(*map(self.of, _pair(arm)))
        value, _, high = by_seeds.interval
        reach = float(np.hypot(high - value, REACH * np.nan_to_num(self.documents(arm))))
        return replace(by_seeds, low=value - reach, high=value + reach)

    def changes(self, arm: str) -> tuple[pd.Series, pd.Series]:
        """Returns the differences whose mean is ``effect``, by block, and each block's budget."""
        one, base = map(self.of, _pair(arm))
        budgets = self.runs.groupby("block")["C"].first()
        changes = pd.Series({i: one[i] - base[i] for i in sorted(one.keys() & base.keys())})
        return changes, budgets[changes.index]

    def noise(self, arm: str) -> Spread:
        """Returns the noise of a run behind the arm's differences, where seeds repeat.

        Runs of a block share less if their optimizers or texts differ. So the noise of these
        differences is that of their own about each budget's mean.
        """
        if not arm.startswith((MUON, SHUFFLED)):
            return self.spread
        changes, budgets = self.changes(MUON if arm.startswith(MUON) else SHUFFLED)
        freedom = len(changes) - budgets.nunique()
        if freedom < 1:
            return self.spread
        left = changes - changes.groupby(budgets).transform("mean")
        return Spread(float(np.sqrt(np.sum(left**2) / freedom / 2)), freedom)

    def of_active(self, k: int) -> Effect:
        """Returns by how many percent the base's loss is higher with ``k`` active experts.

        These models begin with other weights, so that the interval is by seeds alone.
        """
        base = self.runs[self.runs["arm"] == BASE].pivot_table("y", ["C", "seed"], "k")
        differences = (base[k] - base[TOP_K]).dropna()
        return of_mean(differences if len(differences) else [np.nan])

    def documents(self, arm: str) -> float:
        """Returns the error of ``effect`` by documents, paired, in percent; NaN if unknown."""
        pair, blocks = _pair(arm), self.changes(arm)[0].index
        if not len(blocks):
            return np.nan
        rows = self.runs[self.runs["block"].isin(blocks) & self.runs["arm"].isin(pair)]
        signs = np.where(rows["arm"] == pair[0], 1, -1)
        errors = contrast_errors(self.inputs, rows["run_id"])
        return float(errors.documents(100 * signs / rows["L"].to_numpy(float) / len(blocks)))

    def slope(self, arm: str = BEST[BASE]) -> float:
        """Returns the slope of an arm's 100 ln L over ln C; NaN for one budget."""
        rows = self.runs[(self.runs["arm"] == arm) & (self.runs["k"] == TOP_K)]
        mean = rows.groupby("C")["y"].mean()
        return float(slope_weights(np.log(mean.index.to_numpy())) @ mean)

    def own_products(self) -> float:
        """Returns what Muon computes to make its steps orthogonal, over the FLOPs of training."""
        shares = []
        for row in records(self.runs[self.runs["arm"] == BEST[MUON]]):
            ffn = MoE(kind="moe", n_experts=row["E"], top_k=row["k"], d_expert=row["d_expert"])
            known = {name for name, value in row.items() if pd.notna(value)}  # not in older tables
            shape = {name: row[name] for name in known & Model.model_fields.keys()}
            flops = orthogonalizing_flops(Model(ffn=ffn, **shape)) * row["steps"]
            shares.append(flops / row["C_sparsity"])
        return float(np.mean(shares))

    def flattening(self) -> Effect:
        """Returns the slope over ln C of shuffled text over that of text, which is not varied."""
        changes, budgets = self.changes(SHUFFLED)
        weights, noise = slope_weights(np.log(budgets.to_numpy(float))), self.noise(SHUFFLED)
        change = float(weights @ changes) if len(changes) else np.nan
        ends = t_interval(change, noise.sd * np.sqrt(2 * weights @ weights), noise.freedom, LEVEL)
        slope = self.slope(BASE)
        value, high, low = (1 + number / slope for number in (change, *ends))
        return Effect(value, float(low), float(high), len(changes))


def _pair(arm: str) -> tuple[str, str]:
    """Returns the arm whose runs show what ``arm`` does, and the one with which it is compared."""
    return (BEST[MUON], BEST[BASE]) if arm == MUON else (arm, BASE)


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns each arm's first run of a budget and k, its loss and load as means over seeds."""
    cells = runs.groupby(["arm", "k", "C"], sort=False)
    own = cells[["L", "balance_cv", "balance_entropy"]].mean()
    first = cells.first().drop(columns=list(own))
    rows = first.join(own).assign(seeds=cells.size()).reset_index()
    rows["place"] = rows["arm"].map(list(NAMES).index)
    return rows.sort_values(["place", "k", "C"], ignore_index=True)
