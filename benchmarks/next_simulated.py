"""What `moelaws next` spends, on losses simulated by laws that are known: docs/planning.md.

python benchmarks/next_simulated.py [--seeds 5]     writes docs/images/next.png and prints a table
python benchmarks/next_simulated.py --trained       the runs' own losses in place of simulated ones,
                                                    and the study's verdicts by the chosen runs

The runs are the 126 of the study sparsity at the tier workstation. Each of four laws, with its
coefficients fitted to these runs' own losses, is taken as the truth in turn. Runs are chosen in
rounds, at random, or the cheapest first; all five candidate laws then say which model of ten times
the largest budget is best, and what losses to expect there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from moelaws import laws
from moelaws.analysis.choice.ask import Answer, Question, ask, models_of
from moelaws.analysis.remake import inputs_of, remake, with_starts
from moelaws.claims.base import Verdict
from moelaws.claims.judge import judged
from moelaws.files.layout import Results
from moelaws.fitting.fit import fit
from moelaws.spec.fit import Fit
from moelaws.spec.project import load_study
from moelaws.tables.at_hand import at_hand

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs/evidence/sparsity.parquet"
# Truth -> the column of each of its variables
MAPPINGS = {
    "wang.loss": {"N": "N_active"},
    "sparsity.loss": {"N": "N_total"},
    "joint.loss": {},
    "chinchilla": {"N": "N_active"},
    "comprehensive": {"N": "N_total"},
}
TRUTHS = list(MAPPINGS)[:4]
SHARES = (0.01, 0.03, 0.1, 0.3)  # of the cost of all runs
NOISE, ROUNDS, COMPUTE = 0.003, 4, 1e14
SPECS = [Fit(name="next", law=law, mapping={**m, "L": "L"}) for law, m in MAPPINGS.items()]


def truth_of(name: str, runs: pd.DataFrame, target: pd.DataFrame) -> tuple[Any, Any]:
    """Returns ln of the law's losses at the runs and at the target."""
    law, mapping = laws.fittable(name), MAPPINGS[name]
    spec = Fit(name="truth", law=name, mapping=mapping, bootstrap=1, protocol={"sample": 300})
    (fitted,) = fit(law, runs, spec, calibrated=False).parts
    frames = (runs, target)
    at = [{v.name: f[mapping.get(v.name, v.name)] for v in law.variables} for f in frames]
    return tuple(np.log(law.predict(fitted.estimates(), columns)) for columns in at)


class Sweep:
    """One simulated sweep, of which some runs are known."""

    def __init__(self, runs: pd.DataFrame, target: pd.DataFrame, losses: Any) -> None:
        self.pool, self.target, self.losses = runs.assign(L=np.nan), target, losses
        self.costs = runs["C"].to_numpy(float)

    def ask(self, budget: float, seed: int, is_budget: bool = True) -> Answer:
        free = self.pool["L"].isna().to_numpy()
        candidates = [laws.fittable(name) for name in MAPPINGS]
        runs = self.pool, self.costs, free
        question = Question(candidates, SPECS, *runs, self.target, COMPUTE, is_budget)
        return ask(question, NOISE, budget, seed)

    def train(self, run: int) -> float:
        self.pool.loc[run, "L"] = np.exp(self.losses[run])
        return float(self.costs[run])

    def in_rounds(self, budget: float, seed: int) -> None:
        left = budget
        for turn in range(ROUNDS):
            part = left / (ROUNDS - turn)
            for one in self.ask(left, seed + turn).chosen:
                if part > 0:
                    spent = self.train(one.run)
                    left, part = left - spent, part - spent

    def in_order(self, budget: float, order: Any) -> None:
        for run in order:
            if self.costs[run] <= budget:
                budget -= self.train(run)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trained", action="store_true")
    args = parser.parse_args()
    runs = pd.read_parquet(TABLE).reset_index(drop=True)
    runs = runs[[c for c in runs if c not in ("L_se", "status", "source")]]
    target = models_of(runs[runs["seed"] == 0], runs.loc[runs["seed"] == 0, "C"], COMPUTE)
    target["L"] = np.nan
    if args.trained:
        on_trained(runs, target, args.seeds)
        return
    rows = []
    for truth in TRUTHS:
        clean, at_target = truth_of(truth, runs, target)
        for seed in range(args.seeds):
            g = np.random.default_rng([seed, TRUTHS.index(truth)])
            losses = clean + NOISE * g.standard_normal(len(clean))
            cheapest = np.argsort(runs["C"].to_numpy(), kind="stable")
            orders = {"at random": g.permutation(len(runs)), "cheapest first": cheapest}
            for share in (*SHARES, 1.0):
                for way in ("chosen", *orders) if share < 1 else ("all runs",):
                    sweep = Sweep(runs, target, losses)
                    budget = share * sweep.costs.sum()
                    if way == "chosen":
                        sweep.in_rounds(budget, seed)
                    else:
                        sweep.in_order(budget, orders.get(way, range(len(runs))))
                    best, loss = (sweep.ask(0.0, seed, is_budget) for is_budget in (True, False))
                    regret = at_target[np.argmin(best.loss)] - at_target.min()
                    error = np.sqrt(np.mean((np.log(loss.loss) - at_target) ** 2))
                    rows.append((truth, seed, way, share, regret, best.error, error, loss.error))
        print(truth, "done", flush=True)
    names = ["truth", "seed", "way", "share", "regret", "promised", "error", "promised_error"]
    table = pd.DataFrame(rows, columns=names)
    shown = table.groupby(["way", "share"])[
        ["regret", "promised", "error", "promised_error"]
    ].mean()
    print((100 * shown).round(3).to_string())
    chosen = table[(table["way"] == "chosen") & (table["share"] >= 0.1)]
    print(f"error within 1.645 times the promised one: "
          f"{(chosen['error'] <= 1.645 * chosen['promised_error']).mean():.0%}; "
          f"regret within 3 times the expected one: "
          f"{(chosen['regret'] <= 3 * chosen['promised'] + 1e-4).mean():.0%}")  # fmt: skip
    draw(table)


def on_trained(runs: pd.DataFrame, target: pd.DataFrame, seeds: int) -> None:
    """Chooses among the runs in eight rounds of a quarter of their cost, until the target is known.

    Prints how many runs that takes, how far the model that they advise is from the best one by what
    all 126 runs say, and which verdicts of the study's claims differ from those of all runs.
    """
    by_all = verdicts(set(runs["run_id"]))
    print("all runs:", by_all, flush=True)
    whole = Sweep(runs, target, np.log(runs["L"].to_numpy()))
    whole.in_order(np.inf, range(len(runs)))
    known = whole.ask(0.0, 0)
    print(f"all {len(runs)}: expected regret {100 * known.error:.3f} %")
    for seed in range(seeds):
        sweep = Sweep(runs, target, whole.losses)
        left = 0.25 * sweep.costs.sum()
        for turn in range(8):
            answer = sweep.ask(left, seed + turn)
            trained = int(sweep.pool["L"].notna().sum())
            if trained and answer.error <= 0.001:
                break
            part = left / (8 - turn)
            for one in answer.chosen:
                if part > 0:
                    spent = sweep.train(one.run)
                    left, part = left - spent, part - spent
        best = int(np.argmin(answer.loss))
        excess = known.loss[best] / known.loss.min() - 1
        share = 0.25 - left / sweep.costs.sum()
        at = {"all": int(np.argmin(known.loss)), "chosen": best}
        shown = {way: f"N_active {target['N_active'][i]:.3g}, S {target['S'][i]:g}"
                 for way, i in at.items()}  # fmt: skip
        print(f"seed {seed}: {trained} runs, {100 * share:.1f} % of the FLOPs, expected regret "
              f"{100 * answer.error:.3f} %, {100 * excess:.3f} % by all runs; {shown}")  # fmt: skip
        own = verdicts(set(runs["run_id"][sweep.pool["L"].notna()]))
        others = {name: verdict for name, verdict in own.items() if verdict != by_all[name]}
        print(f"seed {seed}: {len(own) - len(others)} of {len(own)} verdicts are those of all "
              f"runs; the others: {others}", flush=True)  # fmt: skip


def verdicts(run_ids: set[str]) -> dict[str, str]:
    """Returns the verdict on each claim of the study by the rules of its page, for some runs.

    A claim is open where a fit or a derived table behind it cannot be made of them.
    """
    study = at_hand(load_study("sparsity", ROOT), "workstation")
    fits = tuple(with_starts(entry, 1000) for entry in study.fits)
    study = study.model_copy(update={"fits": fits})
    table = parquet.read_table(TABLE)
    with tempfile.TemporaryDirectory() as root:
        folder = Results(Path(root)).tier("workstation")
        folder.table(study.study).parent.mkdir(parents=True)
        chosen = [run in run_ids for run in table["run_id"].to_pylist()]
        parquet.write_table(table.filter(chosen), folder.table(study.study))
        needs = {name for claim in study.claims for name in claim.needs}
        made = remake(study, folder, needs, lambda name: lambda stage, done, total: None)
        lost = {entry.name for entry, _, reason in made if reason}
        return {
            claim.name: str(Verdict.CANNOT_TELL) if claim.needs & lost
            else str(judged(study, claim, inputs_of(study, claim, folder))["verdict"])
            for claim in study.claims
        }  # fmt: skip


def draw(table: pd.DataFrame) -> None:
    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    for axes, truth in zip(figure.subplots(2, 2, sharex=True).flat, TRUTHS, strict=True):
        own = table[table["truth"] == truth]
        for way, mark in (("chosen", "o-"), ("at random", "s--"), ("cheapest first", "^:")):
            mean = own[own["way"] == way].groupby("share")["regret"].mean()
            axes.plot(100 * mean.index, 100 * mean.clip(lower=1e-4), mark, label=way)
        whole = 100 * own[own["way"] == "all runs"]["regret"].mean()
        axes.axhline(max(whole, 1e-2), color="0.5", lw=1, label="all 126 runs")
        axes.set(xscale="log", yscale="log", title=f"truth: {truth} (simulated)")
    figure.axes[0].legend(fontsize=8)
    figure.supxlabel("share of the cost of all runs, %")
    figure.supylabel("regret at 1e14 FLOPs, % of the loss")
    figure.savefig(ROOT / "docs/images/next.png", dpi=150)


if __name__ == "__main__":
    main()
