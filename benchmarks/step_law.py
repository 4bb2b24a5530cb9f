"""What published laws lose on the public searches of Step Law's authors, and the trend with A.

The tables are data/dense_lr_bs_loss.csv and data/moe_lr_bs_loss.csv of step-law/steplaw on GitHub;
they have no licence and are not shipped. Each pair of model and tokens was trained with some 45 or
120 pairs of rate and batch. A law loses what the pair nearest to its own, as logarithms and inside
the search, ends above the best one (smoothed training loss). C is 6 N_active D. The activation
ratio A counts the shared expert as so many of the routed ones' width. Its exponents are those of
lr ~ C^b A^c and B ~ D^b A^c through the minima of parabolas in both logarithms, for all mixtures
and with one shape left out. `moelaws next --search lr` walks each search with a part of its runs,
one run after the other or three at a time; beside it stand as many runs that are drawn at random.

    python benchmarks/step_law.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from moelaws import laws
from moelaws.analysis.choice.search import search as next_of
from moelaws.fitting.quantiles import jackknife
from moelaws.laws.base import Array

FILES = {"mixtures": "moe_lr_bs_loss.csv", "dense models": "dense_lr_bs_loss.csv"}
CONTEXT = 2048
LOSS = "smooth loss"
NEAR = 0.03  # nats above the least loss up to which a parabola holds
LAWS = {
    "Eq 5": "leverage.hyperparameters",
    "Step Law": "step_law",
    "DeepSeek": "deepseek",
    "Ling": "ling",
}


def lost(search: pd.DataFrame, lr: float, batch: float) -> float:
    """Returns the loss above the best of a search, of the pair nearest to ``lr`` and ``batch``."""
    runs = np.log(search[["lr", "bs"]].to_numpy(float))
    own = np.clip(np.log([lr, batch]), runs.min(axis=0), runs.max(axis=0))
    nearest = np.sum((runs - own) ** 2, axis=1).argmin()
    return float(search[LOSS].iloc[nearest] - search[LOSS].min())


def minimum(search: pd.DataFrame) -> tuple[float, float]:
    """Returns rate and batch (tokens) at the least loss of a parabola through the runs near it."""
    near = search[search[LOSS] < search[LOSS].min() + NEAR]
    x, y = np.log(near["lr"]).to_numpy(), np.log(near["bs"] * CONTEXT).to_numpy()
    terms = np.column_stack([np.ones(len(x)), x, y, x * x / 2, x * y, y * y / 2])
    _, by_x, by_y, xx, xy, yy = np.linalg.lstsq(terms, near[LOSS].to_numpy(), rcond=None)[0]
    lr, batch = np.exp(np.linalg.solve([[xx, xy], [xy, yy]], [-by_x, -by_y]))
    return float(lr), float(batch)


def searches(file: Path) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yields each pair of model and tokens of a table, with its runs."""
    runs = pd.read_csv(file).dropna(subset=["N", "D", "lr", "bs", LOSS])
    runs["Na"] = runs.get("Na", runs["N"])
    for _, search in runs.groupby(["Na", "N", "D"]):
        N_active, N, D = (float(search[name].iloc[0]) for name in ("Na", "N", "D"))
        at = {"N": N, "N_active": N_active, "D": D, "C": 6 * N_active * D, "context": CONTEXT}
        at |= {"A": 1.0, "shape": "dense"}
        if "topk" in search:
            shared, k, E = (search[name].iloc[0] for name in ("sed", "topk", "nume"))
            shared /= search["moeh"].iloc[0]
            at |= {"A": float((k + shared) / (E + shared)), "shape": search["moe_name"].iloc[0]}
        yield at, search


def losses(file: Path) -> dict[str, list[float]]:
    """Returns what each law loses in each search of a table."""
    by_law: dict[str, list[float]] = {}
    for at, search in searches(file):
        given = {name: (ref, at) for name, ref in LAWS.items()}
        given["Step Law, N active"] = ("step_law", at | {"N": at["N_active"]})
        for name, (ref, point) in given.items():
            law = laws.get(ref)
            value = law.evaluate({}, {v.name: point[v.name] for v in law.variables})
            loss = lost(search, float(value["lr"]), float(value["B"]) / CONTEXT)
            by_law.setdefault(name, []).append(loss)
    return by_law


def exponents(table: pd.DataFrame, best: str, over: str) -> Array:
    """Returns b and c of ``best`` ~ ``over``^b A^c, by least squares of logarithms."""
    terms = np.column_stack([np.ones(len(table)), np.log(table[[over, "A"]])])
    return np.linalg.lstsq(terms, np.log(table[best]), rcond=None)[0][1:]


def trends(file: Path) -> Iterator[str]:
    """Yields how the best rate and batch go with A, with one shape left out at a time."""
    rows = [at | dict(zip(("lr", "B"), minimum(own), strict=True)) for at, own in searches(file)]
    table = pd.DataFrame(rows)
    shapes = table["shape"].unique()
    for best, over in (("lr", "C"), ("B", "D")):
        whole = exponents(table, best, over)
        left = np.array([exponents(table[table["shape"] != one], best, over) for one in shapes])
        low, high = jackknife(whole, left, 0.9)
        for name, *own, each in zip((over, "A"), whole, low, high, left.T, strict=True):
            text = f"{best} ~ {name}^{own[0]:.3f} [{own[1]:.3f}, {own[2]:.3f}]; without "
            pairs = zip(shapes, each, strict=True)
            yield text + ", ".join(f"{shape} {value:.3f}" for shape, value in pairs)


def walked(runs: pd.DataFrame, part: float, workers: int, seed: int) -> tuple[float, int, float]:
    """Returns the loss above the best of a walk through a search, its runs, and that at random.

    By the ``seed`` the rows are in another order, which decides between first runs as near.
    """
    runs = runs.sample(frac=1, random_state=seed)
    logs, L = np.log(runs[["lr", "bs"]].to_numpy(float)), runs[LOSS].to_numpy(float)
    places = 2 * (logs - logs.min(axis=0)) / np.ptp(logs, axis=0) - 1
    nothing, ones = np.zeros(len(L)), np.ones(len(L))
    known, free, most = np.full(len(L), np.nan), ones > 0, max(4, round(part * len(L)))
    while plan := next_of(places, nothing, known, free, ones, most - np.sum(~free), 0.003):
        for one in plan[:workers]:
            free[one.run], known[one.run] = False, L[one.run]
    rng, done = np.random.default_rng(seed), int(np.sum(~free))
    drawn = [L[rng.permutation(len(L))[:done]].min() for _ in range(200)]
    return float(np.nanmin(known) - L.min()), done, float(np.mean(drawn) - L.min())


def walks(file: Path) -> Iterator[str]:
    """Yields what walks through all searches of a table lose."""
    every = [own for _, own in searches(file)]
    for part, workers in ((0.1, 1), (0.1, 3), (0.15, 1), (0.2, 1), (1.0, 1)):
        each = [walked(own, part, workers, seed) for own in every for seed in range(10)]
        off, runs, drawn = np.array(each).T
        yield (
            f"{part:.0%} of the runs, {workers} at a time: {off.mean():.4f} (to {off.max():.4f}), "
            f"within .002 in {np.mean(off <= 0.002):.0%} of {len(off)}, by {runs.mean():.1f} runs; "
            f"as many at random {drawn.mean():.4f}"
        )


def main(folder: Path) -> None:
    """Prints the mean, the median and the largest loss of each law, by kind of model."""
    for kind, file in FILES.items():
        for law, values in losses(folder / file).items():
            numbers = (
                f"{np.mean(values):.3f}, median {np.median(values):.4f} (to {max(values):.3f})"
            )
            print(f"{kind}, {law}: {numbers}, {len(values)}")
        print(*(f"{kind}, next: {line}" for line in walks(folder / file)), sep="\n")
    print(*trends(folder / FILES["mixtures"]), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
