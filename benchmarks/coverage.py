"""Do the default intervals hold new losses, and how wide are they? Six laws, simulated sweeps.

Each sweep has isoFLOP budgets of several architectures and sizes. Losses err independently, or have
an error in common by budget or by architecture; fits know no more of it than the table's columns.
New losses lie at budgets between the fitted ones, and at twice the largest. They have new errors of
their own and of their budgets, and an architecture keeps its error. Widths are medians, in units of
the width of the noise alone.

    python benchmarks/coverage.py --seeds 20 --jobs 2
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: the processes share the cores

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.fitting.fit import fit
from moelaws.fitting.prediction import predict
from moelaws.fitting.quantiles import t_interval
from moelaws.laws.base import Array
from moelaws.spec.fit import Fit

LEVEL, OWN, COMMON = 0.9, 0.003, 0.002  # the errors are standard deviations of ln L
# Law -> the values of the variable in which architectures differ. A dense law has one architecture
# a size.
ARCHITECTURES: dict[str, dict[str, tuple[float, ...]]] = {
    "chinchilla": {},
    "sparsity.loss": {"S": (0.0, 0.5, 0.75, 0.9, 0.97)},
    "allocation.loss": {"S": (14 / 17, 62 / 65), "r": (0.3, 0.7, 1.4)},
    "granularity.loss": {"G": (1, 2, 4, 8, 16)},
    "repeated_data": {"U": (1e9, 1e10, 1e11)},
    "wang.loss": {"E": (2, 4, 8, 16, 64)},
}
# No values of it are published: these are near those of granularity.loss.
WANG = {"a": 18.0, "alpha": 0.115, "gamma": 0.05, "b": 31.0, "beta": 0.147, "tau": 0.47}
KINDS = ("independent", "C", "architecture")


def sweep(ref: str, budgets: Array) -> pd.DataFrame:
    """Returns runs of six sizes a budget and architecture; D follows from C = 6 N_active D."""
    own = ARCHITECTURES[ref]
    rows = product(budgets, *own.values(), np.geomspace(1 / 4, 4, 6))
    table = pd.DataFrame(rows, columns=["C", *own, "size"])
    active = np.sqrt(table["C"] / 120) * table["size"]
    table["D"] = table["C"] / (6 * active)
    table["N"] = table["N_active"] = active
    if "S" in own and "N" in {v.name for v in laws.fittable(ref).variables}:
        table["N"] = active / (1 - table["S"])
    if "r" in own:
        ratio = laws.fittable("allocation.ratio")
        table["r_star"] = ratio.predict(ratio.published or {}, table)
    return table.assign(architecture=table[[*own] or ["size"]].astype(str).agg(" ".join, axis=1))


def losses(ref: str, table: pd.DataFrame, kind: str, rng: np.random.Generator) -> Array:
    law = laws.fittable(ref)
    error = OWN * rng.standard_normal(len(table))
    if kind != "independent":
        _, group = np.unique(table[kind], return_inverse=True)
        error += COMMON * rng.standard_normal(group.max() + 1)[group]
    return np.asarray(law.predict(law.published or WANG, table) * np.exp(error))


def trial(seed: int, ref: str, kind: str, budgets: int) -> list[tuple[float, float]]:
    """Returns coverage and width of new losses within the fitted range and at twice its end."""
    law, rng = laws.fittable(ref), np.random.default_rng(seed)
    C = np.geomspace(1e19, 1e21, budgets)
    every = sweep(ref, np.concatenate([C, np.sqrt(C[1:] * C[:-1]), 2 * C[-1:]]))
    every["L"] = losses(ref, every, kind, rng)
    hidden = ["size", *(["architecture"] if kind != "architecture" else [])]  # else it makes blocks
    entry = {"law": ref, "mapping": {}, "units": {"L": "1"}, "protocol": {"sample": 200}}
    spec = Fit(name="f", bootstrap=100, **entry)
    report = fit(law, every[every["C"].isin(C)].drop(columns=hidden), spec, seed=seed)
    draws = report.draws[list(law.names)].to_numpy()
    _, noise = t_interval(0.0, np.hypot(OWN, COMMON if kind != "independent" else 0), 1e9, LEVEL)
    results = []
    for new in (every[~every["C"].isin(C) & (every["C"] < C[-1])], every[every["C"] > C[-1]]):
        columns = {v.name: new[v.name].to_numpy() for v in law.variables if v.name in new}
        at = predict(law, report.parts[0], draws, columns, LEVEL)
        held = (at.new_low <= new["L"]) & (new["L"] <= at.new_high)
        width = np.median(np.log(at.new_high / at.new_low)) / (2 * noise)
        results.append((float(held.mean()), float(width)))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--laws", default=",".join(ARCHITECTURES))
    parser.add_argument("--budgets", default="4,6")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    print("| law | errors | budgets | within, % | width | twice the budget, % | width |")
    print("|-|-|-:|-:|-:|-:|-:|")
    with ProcessPoolExecutor(given.jobs, initializer=partial(np.seterr, all="ignore")) as pool:
        each = product(given.laws.split(","), KINDS, map(int, given.budgets.split(",")))
        for ref, kind, budgets in each:
            own = partial(trial, ref=ref, kind=kind, budgets=budgets)
            trials = np.array([*pool.map(own, range(given.seeds))])
            held, width = 100 * trials[:, :, 0].mean(axis=0), np.median(trials[:, :, 1], axis=0)
            cells = [f"{x:.0f} | {w:.2f}" for x, w in zip(held, width, strict=True)]
            words = {"C": "by budget", "architecture": "by curve"}.get(kind, kind)
            print(f"| {ref} | {words} | {budgets} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
