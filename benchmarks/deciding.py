"""Which sweep of one GPU would decide each claim: the cheapest whose simulated tables support it.

    python benchmarks/deciding.py [CLAIM ...] [--tables 40] [--out docs/evidence/deciding.csv]
    python benchmarks/deciding.py --report

Sweeps have one to four budgets of 3e14 FLOPs a run upwards, and one to four seeds of each run. They
are tried in the order of their FLOPs, on tables with the effect that the question states and with
the noise between seeds. The first one that supports the claim in 80 % of its tables decides. Where
none does, the row is of the one that supported it most often. The rows of the claims that are named
replace those in the file. ``--report`` writes the file's Markdown page beside it, and computes
nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from moelaws.claims.base import Verdict  # noqa: E402
from moelaws.grids.sweep import expand_study  # noqa: E402
from moelaws.spec.errors import UserError  # noqa: E402
from moelaws.spec.project import Project, load_study  # noqa: E402
from moelaws.tables.simulate import design  # noqa: E402
from moelaws.tables.sweeps import in_sweep  # noqa: E402
from nulls import allocation, generalization, hyperparameters, leverage, sparsity  # noqa: E402
from nulls.trial import decided  # noqa: E402

NOISE = 0.003  # of ln L, between seeds
SURE = 0.8  # of the tables
# What the first sweep on an H200 took (docs/speed.md): FLOPs a second of eight runs at a time, and
# the seconds that a run waits beside its steps
RATE, WAIT = 1e14, 8.6 / 8
BUDGETS = [(3e14,), (3e14, 1e15), (3e14, 1e15, 3e15), (3e14, 1e15, 3e15, 1e16)]
SEEDS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Question:
    """Claims, the sweeps that might decide them, and the effect that their runs have."""

    study: str
    claims: tuple[str, ...]
    effect: str  # in words
    values: str  # of the sweep at each budget, in words
    made: Callable[[int, tuple[float, ...], int], Any]  # seed, budgets, seeds a run -> what is read


def repeated(made: Callable[..., pd.DataFrame], *effect: Any) -> Callable[..., pd.DataFrame]:
    """Returns what makes tables of the leverage study that have several seeds of each run."""

    def tables(seed: int, budgets: tuple[float, ...], seeds: int) -> pd.DataFrame:
        own = {"budgets": np.array(budgets), "noise": NOISE}
        parts = []
        for i in range(seeds):
            frame = made(100 * seed + i, *effect, **own)
            parts.append(frame.assign(run_id=frame["run_id"] + f" s{i}", place=range(len(frame))))
        both = pd.concat(parts, ignore_index=True).assign(n_seeds=seeds)
        spread = both.groupby("place")["L"].transform("std")
        return both.assign(L_seed_sd=spread, trunk=both["run_id"])

    return tables


@cache
def grid() -> pd.DataFrame:
    """Returns the runs of design-gpu.yaml."""
    study = load_study("docs/evidence/design-gpu.yaml", ROOT)
    return design(expand_study(study, Project(tier="gpu", validation=0.05), ROOT))


def as_measured(sweep: sparsity.Sweep) -> np.ndarray:
    """Returns losses as the first sweep on a GPU has them at 1e15 FLOPs (docs/speed.md).

    There each e-fold of 1/(1-S) lowered the loss by 0.057 nats and the best active size by 6 %, and
    a size that is off by a factor of e cost 0.2 nats. The best size grows as C^0.43, as on the CPU.
    """
    runs = sweep.runs
    u, v, c = np.log(runs["N_active"] / 2.1e6), -np.log1p(-runs["S"]), np.log(runs["C"] / 1e15)
    return (2.3 - 0.1 * c - 0.057 * v + 0.2 * (u - 0.43 * c + 0.06 * v) ** 2).to_numpy()


def surfaces(seed: int, budgets: tuple[float, ...], seeds: int) -> Any:
    """Returns the trends of the runs of design-gpu.yaml at these budgets."""
    runs = grid()[np.isclose(grid()["C"].to_numpy()[:, None], budgets).any(axis=1)]
    runs = pd.concat([runs] * seeds, ignore_index=True)
    sweep = sparsity.Sweep(runs, NOISE * 2.3)
    table = sparsity.slopes(sweep.noisy(as_measured, seed), 10 * seed, sweep)
    return SimpleNamespace(frame=runs, derived={"trends": table}.get)


def growing(seed: int, budgets: tuple[float, ...], seeds: int, power: float) -> Any:
    """Returns runs of three ratios whose leverage grows, beside dense models.

    Further seeds lie between the budgets: a curve gains as much by them.
    """
    between = np.geomspace(budgets[0], budgets[-1], len(budgets) * seeds)
    return leverage.growing(seed, power, budgets=between, noise=NOISE)


def splits(seed: int, budgets: tuple[float, ...], seeds: int) -> Any:
    """Returns runs over ratios of experts to attention, of which the best one moves.

    A ratio that is off by a factor of e costs 0.05 nats, as in tests/nulls. By the paper's Table 1
    it costs 0.13 to 0.26.
    """
    grid = {"budgets": budgets, "experts": EXPERTS, "ratios": RATIOS}
    runs = allocation.simulate(replace(allocation.PAPER, **grid, seeds=seeds, noise=0.0))
    c, S = np.log(runs["C"] / 1e15), runs["S_shared"]
    best = np.log(np.select([S < 0.9, S > 0.95], [1.5, 2 / 3], 1.0)) + 0.1 * c
    L = 2.3 - 0.1 * c + 0.05 * (np.log(runs["r"]) - best) ** 2
    runs = runs.assign(L=L * np.exp(np.random.default_rng(seed).normal(0, NOISE, len(L))))
    derived = {"r_star": allocation.optima(runs)}.get
    return SimpleNamespace(frame=runs, completed=runs, derived=derived)


def regimes(seed: int, budgets: tuple[float, ...], seeds: int) -> Any:
    """Returns losses over the number of experts, with both regimes of tests/nulls.

    The models are those of the generalization study's tier node with two active experts.
    """
    runs = generalization.counted()
    runs = runs[in_sweep(runs, "routing")].query("k == 2 and D == D.min()")
    parts = [runs.assign(D=C, C=C, seed=i) for C in budgets for i in range(seeds)]
    return generalization.over_experts(seed, 0.01, -0.01, pd.concat(parts, ignore_index=True))


def searches(seed: int, budgets: tuple[float, ...], seeds: int) -> Any:
    """Returns a search of rates by Eq 5 at each budget, each run with these seeds.

    A rate that is off by a factor of e costs 0.03 nats.
    """
    truth = replace(hyperparameters.published(1e15), noise=2.3 * NOISE)
    best = truth.lr["moe"][0]
    return hyperparameters.of_rates(seed, truth, budgets, best * 2 ** np.arange(-3, 3, 0.5), seeds)


def over_wide_range(seed: int, curvature: float, **grid: Any) -> pd.DataFrame:
    """Returns runs of granularities up to 32, of which 10 is the best."""
    bowl = leverage.bowl(10.0, curvature)
    return leverage.table("granularity", seed, "G", leverage.MORE_GRANULARITIES, bowl, **grid)


def move(best: float, by: float) -> Callable[[Any], Any]:
    """Returns a best share over the budget that moves ``by`` so much for a tenfold budget."""
    return lambda C: best + by * np.log10(C / 1e15)


G, WIDE_G = "six granularities from 2 to 16", "eight granularities from 2 to 32"
SHARES = "seven shares of shared experts"
LAYERS = "six shares of dense layers from 0 to 1/6"
TRENDS = "six sparsities at five widths"
EXPERTS = (16, 24, 64, 128)  # two sparsities below 90 %, two above 95 %
RATIOS = (0.3, 0.45, 0.7, 1.0, 1.4, 2.0, 3.0)
QUESTIONS = [
    Question("leverage", (claim,), *rest)
    for claim, *rest in (
        (
            "sparser_is_better",
            "each e-fold of 1/A lowers the loss by 2.4 %, as on a GPU at 1e15",
            "eight activation ratios",
            repeated(leverage.over_ratios, lambda C, A: leverage.dense_loss(C) * A**0.024),
        ),
        (
            "best_granularity",
            "the bowl that Eq 4 has at 1e20, about 10",
            WIDE_G,
            repeated(over_wide_range, leverage.CURVATURE),
        ),
        (
            "best_granularity_is_the_same_at_all_budgets",
            "the same bowl at all budgets",
            WIDE_G,
            repeated(leverage.over_more, 0.0),
        ),
        (
            "weak_balance_favours_coarse",
            "the best granularity is 7 in place of 12",
            f"{G}, with both balance losses",
            repeated(leverage.over_balance, 7.0),
        ),
        (
            "few_shared_experts",
            "the best share is 15 %, and a share of 0 costs 0.05 %",
            SHARES,
            repeated(leverage.over_shares, move(0.15, 0.0)),
        ),
        (
            "fewer_shared_with_compute",
            "the best share falls by 8 points for a tenfold budget",
            SHARES,
            repeated(leverage.over_shares, move(0.13, -0.08)),
        ),
        (
            "attention_share",
            "35 % of attention costs 0.1 %",
            "five shares of attention",
            repeated(leverage.over_attention, 0.001),
        ),
        (
            "dense_layers_matter_little",
            "dense layers change nothing",
            "four numbers of dense layers",
            repeated(leverage.over_layers, 0.0),
        ),
        (
            "more_dense_layers_with_compute",
            "the best share rises by 3 points for a tenfold budget",
            LAYERS,
            repeated(leverage.over_more_layers, move(0.08, 0.03)),
        ),
        (
            "heads_hardly_matter",
            "a factor of two in the number of heads costs 0.1 %",
            "four numbers of heads",
            repeated(leverage.over_heads, 0.001),
        ),
        (
            "grows_with_compute",
            "leverage grows as C^0.1",
            "three ratios and dense models",
            partial(growing, power=0.1),
        ),
    )
] + [
    Question(
        "allocation",
        ("ratio_rises", "crosses_one"),
        "the best ratio is 1.5 below 90 % sparsity and 0.67 above 95 % at 1e15, and rises as C^0.1"
        "; a factor of e off costs 0.05 nats",
        "seven ratios from 0.3 to 3 at four sparsities",
        splits,
    ),
    Question(
        "generalization",
        ("routing_regimes",),
        "the loss rises by 0.01 nats for each e-fold of experts up to 16, and then falls so",
        "six numbers of experts from 2 to 64",
        regimes,
    ),
    Question(
        "hyperparameters",
        ("lr_falls",),
        "the best rate falls as C^-0.15, and a rate that is off by a factor of e costs 0.03 nats",
        "twelve rates, each 1.4 times the one before",
        searches,
    ),
    Question("sparsity", tuple(sparsity.TRENDS), "as on a GPU at 1e15", TRENDS, surfaces),
]


def verdicts(
    question: int, budgets: tuple[float, ...], seeds: int, seed: int
) -> tuple[list[str], float, int]:
    """Returns the verdicts on a question's claims, with the FLOPs and the number of the runs."""
    own = QUESTIONS[question]
    study = load_study(own.study, ROOT)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(ROOT / "config", "config")
        try:
            given = own.made(seed, budgets, seeds)
        except UserError:  # so few runs determine no curve
            return [str(Verdict.CANNOT_TELL)] * len(own.claims), np.nan, 0
        said = [str(decided(study, claim, given)) for claim in own.claims]
    runs = given if isinstance(given, pd.DataFrame) else given.frame
    return said, float(runs["C"].sum()), len(runs)


def rows(place: int, tables: int) -> Iterator[dict[str, object]]:
    """Yields a row for each claim: the cheapest sweep that decides it, or the nearest to it."""
    question = QUESTIONS[place]
    best: dict[str, dict[str, object]] = {}
    with ProcessPoolExecutor() as pool:
        for budgets, seeds in sorted(product(BUDGETS, SEEDS), key=lambda s: sum(s[0]) * s[1]):
            one = partial(verdicts, place, budgets, seeds)
            said, flops, n = zip(*pool.map(one, range(tables), chunksize=4), strict=True)
            cost = {"runs": n[0], "FLOPs": flops[0], "seconds": flops[0] / RATE + n[0] * WAIT}
            grid = {"budgets": " ".join(f"{C:g}" for C in budgets), "seeds": seeds}
            for claim, own in zip(question.claims, zip(*said, strict=True), strict=True):
                supported = own.count(str(Verdict.SUPPORTED))
                about = {"study": question.study, "claim": claim}
                about |= {"effect": question.effect, "values": question.values}
                row = about | grid | cost | {"supported": supported, "tables": tables}
                before = best.setdefault(claim, row)["supported"]
                if before < min(SURE * tables, supported):
                    best[claim] = row
            if all(row["supported"] >= SURE * tables for row in best.values()):
                break
    yield from best.values()


HEAD = """# What would decide

For each claim this is the cheapest sweep of one GPU that would decide it, by simulation. Runs have
budgets of 3e14 to 1e16 FLOPs, the effect that the second column states, and a noise between seeds
of 0.3 % of the loss. It decides where the rule supports the claim in 80 % of the tables or more.
Hours are of one H200 that trains eight runs at a time, at [the speed of the first such
sweep](../speed.md). Where no sweep of up to four budgets and four seeds decides, the row shows the
one that came nearest. `python benchmarks/deciding.py` makes the table; claims that it does not name
were not simulated.

| claim | effect | sweep | runs | FLOPs | hours | supported |
|-|-|-|-:|-:|-:|-:|
"""


def report(found: pd.DataFrame) -> str:
    """Returns a Markdown table with a row a claim, those first that are decided for least."""
    lines = [HEAD]
    decided = found["supported"] >= SURE * found["tables"]
    ordered = found.assign(open=~decided).sort_values(["open", "FLOPs"], kind="stable")
    for _, row in ordered.iterrows():
        sweep = f"{row['values']} at {', '.join(str(row['budgets']).split())}"
        sweep += f"; seeds: {row['seeds']}"
        share = f"{row['supported']} of {row['tables']}"
        cost = f"{row['runs']} | {row['FLOPs']:.1e} | {row['seconds'] / 3600:.2f}"
        cells = [row["claim"].replace("_", " "), row["effect"], sweep, cost]
        lines.append(f"| {' | '.join(cells)} | {'none decides: ' * row['open']}{share} |\n")
    return "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("claims", nargs="*", metavar="CLAIM")
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/deciding.csv")
    parser.add_argument("--report", action="store_true", help="write the page of the table alone")
    given = parser.parse_args()
    if given.report:
        given.out.with_suffix(".md").write_text(report(pd.read_csv(given.out)))
        return
    known = pd.read_csv(given.out) if given.out.is_file() else pd.DataFrame(columns=["claim"])
    asked = [i for i, q in enumerate(QUESTIONS) if set(given.claims or q.claims) & set(q.claims)]
    new = pd.DataFrame([row for place in asked for row in rows(place, given.tables)])
    both = pd.concat([known[~known["claim"].isin(new["claim"])], new], ignore_index=True)
    both.convert_dtypes().sort_values(["study", "claim"]).to_csv(given.out, index=False)


if __name__ == "__main__":
    main()
