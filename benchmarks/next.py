"""Runs chosen by `moelaws next` against ScaleBench (Li et al. 2026, arXiv 2604.22753).

python benchmarks/next.py FOLDER               FOLDER is a clone of github.com/PlanarG/active-sl
python benchmarks/next.py FOLDER --held-out    judges by the dearest tenth of the train part (in moe
                                               by its largest models) and reads no test part

Prints R2 in the target region, clipped to [-1, 1], as a mean over laws and seeds, or with
--held-out the root mean square error of ln L in percent, at most 30: with each law
alone, as the benchmark has it; with all laws of a task together, weighted by their likelihood; and
with the one law among them that, fitted to the cheaper half of the chosen runs, predicts the dearer
half best (a roll-out). The laws, their bounds and the costs are the benchmark's own. 100 % is the
fit to all runs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from moelaws.analysis.choice.ask import Question, ask
from moelaws.laws.base import Array, FitProtocol, Parameter, Variable
from moelaws.laws.forms import GeneralLaw
from moelaws.laws.vocabulary import LOSS
from moelaws.spec.fit import Fit

USUAL = (0.01, 0.05, 0.1)
BUDGETS = {"sparsity": (0.2, 0.35, 0.5)}
# The cost of target rows by their features, for which the benchmark gives none, up to a factor
COSTS = {
    "moe": lambda X: X[:, 0] * X[:, 1],
    "data_constrained": lambda X: 6 * X[:, 1] * X[:, 2],
    "sparsity": lambda X: X[:, 1],
    "farseer": lambda X: 6 * X[:, 0] * X[:, 1],
}
ROUNDS, NOISE = 8, 0.003
WAYS = ("each", "together", "rolled-out")
WIDTH, STARTS = 10.0, (2.5, 5.0, 7.5)  # of a parameter from bound to bound, and where fits start
MOST = 30.0  # percent, of an error: one fit that fails would decide a mean
FLOOR = 1e-6  # least loss, of vectors at which a law has no value


def law_of(task: Any) -> GeneralLaw:
    """Returns the benchmark's law on our scales: of ln of the loss, and of ln of parameters > 0."""
    ends = np.array([np.log(b) if b[0] > 0 else b for b in task.param_bounds], float)
    is_log = np.array([low > 0 for low, _ in task.param_bounds])
    low, unit = ends[:, 0], np.ptp(ends, axis=1) / WIDTH
    names = [f"x{i}" for i in range(task.groups[0].X_train.shape[1])]

    def value(theta: Array, columns: Any) -> tuple[Array, Array]:
        own = low + unit * theta
        natural = np.where(is_log, np.exp(np.where(is_log, own, 0.0)), own)
        with np.errstate(all="ignore"):
            loss, slopes = task.model_fn(natural, np.stack([columns[n] for n in names], axis=-1))
            loss, slopes = np.atleast_2d(loss), slopes.reshape(len(theta), -1, len(ends))
            known = np.isfinite(loss) & (loss > FLOOR)
            slopes = slopes * (unit * np.where(is_log, natural, 1.0))[:, None] / loss[..., None]
        slopes = np.where(known[..., None] & np.isfinite(slopes), slopes, 0.0)
        return np.log(np.where(known, loss, FLOOR)), slopes.swapaxes(1, 2)

    return GeneralLaw(
        id=task.sl_id,
        title=task.task_id,
        source="arXiv 2604.22753",
        equation="",
        latex="",
        variables=tuple(Variable(name, "1", "") for name in names),
        response=LOSS,
        parameters=tuple(
            Parameter(f"p{i}", "1", 0.0, WIDTH, "", starts=STARTS) for i in range(len(ends))
        ),
        protocol=FitProtocol("squared"),
        function=value,
    )


def questions(task: Any, name: str, held_out: bool) -> Iterator[tuple[Question, Array, Array]]:
    """Yields for each group the question without any loss, the runs' losses and the target's."""
    for group in task.groups:
        X, y, cost = group.X_train, group.y_train, group.cost_train
        target, truth, aim = group.X_test, group.y_test, COSTS[name](group.X_test)
        if name == "sparsity":
            aim = aim * cost.mean() / X[:, 1].mean()
        if held_out:
            by = X[:, 1] if name == "moe" else cost
            dear = by >= np.quantile(by, 0.9)
            target, truth, aim = X[dear], y[dear], cost[dear]
            X, y, cost = X[~dear], y[~dear], cost[~dear]
        pool, rows = (pd.DataFrame({f"x{i}": x for i, x in enumerate(f.T)}) for f in (X, target))
        free, far = np.ones(len(y), bool), float(np.exp(np.log(aim).mean()))
        frames = pool.assign(L=np.nan), rows.assign(L=np.nan)
        yield Question((), (), frames[0], cost, free, frames[1], far, False), y, truth


def predicted(
    question: Question,
    losses: Array,
    laws: list[GeneralLaw],
    share: float,
    seed: int,
    rolled_out: bool = False,
) -> Array:
    """Returns the losses (m,) expected at the target with ``share`` of the cost of all runs.

    The laws are weighted by their likelihood, or the best by roll-out is believed alone.
    """
    specs = [Fit(name="next", law=law.ref, mapping={"L": "L"}) for law in laws]
    pool, free = question.pool.copy(), question.free.copy()
    left = share * question.costs.sum()
    if share == 1:
        pool["L"], left = losses, 0.0
    for turn in range(ROUNDS if left else 0):
        now = replace(question, laws=laws, specs=specs, pool=pool, free=free)
        part = left / (ROUNDS - turn)
        for one in ask(now, NOISE, left, seed).chosen:
            if part <= 0:
                break
            pool.loc[one.run, "L"], free[one.run] = losses[one.run], False
            left, part = left - one.cost, part - one.cost
    now = replace(question, laws=laws, specs=specs, pool=pool, free=free)
    if rolled_out:
        best = int(np.argmin(roll_out(now, seed)))
        now = replace(now, laws=laws[best : best + 1], specs=specs[best : best + 1])
    return ask(now, NOISE, 0.0, seed).loss


def roll_out(question: Question, seed: int) -> Array:
    """Returns how far each law, fitted to the cheaper half of the known runs, errs at the dearer.

    This is the mean square error of ln L.
    """
    known = question.pool.index[question.pool["L"].notna()]
    known = known[np.argsort(question.costs[known], kind="stable")]
    cheap, dear = known[: len(known) // 2], known[len(known) // 2 :]
    frames = (question.pool.loc[rows].reset_index(drop=True) for rows in (cheap, dear))
    pool, target = frames
    far = float(np.exp(np.log(question.costs[dear]).mean()))
    costs, free = question.costs[cheap], question.free[cheap]
    errors = []
    for law, spec in zip(question.laws, question.specs, strict=True):
        past = Question((law,), (spec,), pool, costs, free, target, far, False)
        loss = ask(past, NOISE, 0.0, seed).loss
        errors.append(np.mean((np.log(loss) - np.log(target["L"])) ** 2))
    return np.array(errors)


def r2(predictions: list[Array], truths: list[Array]) -> float:
    """Returns R2 over the rows of all groups, as the benchmark has it."""
    at, y = np.concatenate(predictions), np.concatenate(truths)
    return float(np.clip(1 - ((at - y) ** 2).sum() / ((y - y.mean()) ** 2).sum(), -1, 1))


def percent(predictions: list[Array], truths: list[Array]) -> float:
    """Returns the root mean square error of ln L over the rows of all groups, in percent."""
    apart = np.log(np.concatenate(predictions)) - np.log(np.concatenate(truths))
    return min(100 * float(np.sqrt(np.mean(apart**2))), MOST)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", nargs="+", default=list(COSTS), choices=COSTS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--shares", type=float, nargs="+", help="budgets in place of the usual")
    parser.add_argument("--laws", nargs="+", default=WAYS, choices=WAYS)
    parser.add_argument("--held-out", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, str(args.folder))
    load = import_module("benchmark.task").load_tasks_for_dataset
    judge = percent if args.held_out else r2
    for name in args.tasks:
        tasks = load(f"{name}_scaling_law")
        laws = [law_of(task) for task in tasks]
        groups = list(questions(tasks[0], name, args.held_out))
        truths = [truth for _, _, truth in groups]
        for way in args.laws:
            sets = [[law] for law in laws] if way == "each" else [laws]
            for share in args.shares or (*BUDGETS.get(name, USUAL), 1.0):
                began, rolled_out = time.monotonic(), way == "rolled-out"
                scores = [
                    [
                        judge(
                            [predicted(*g[:2], own, share, seed, rolled_out) for g in groups],
                            truths,
                        )
                        for seed in range(args.seeds if share < 1 else 1)
                    ]
                    for own in sets
                ]
                by_law = " ".join(f"{mean:.2f}" for mean in np.mean(scores, axis=1))
                print(
                    f"{name}, laws {way}, {share:.0%}: {np.mean(scores):.2f} ± "
                    f"{np.std(scores):.2f} ({by_law}; {time.monotonic() - began:.0f} s)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
