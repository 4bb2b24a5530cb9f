"""What deciding.py asks: claims, the sweeps that might decide them, and their runs' effects."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
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
from moelaws.grids.sweep import expand_study  # noqa: E402
from moelaws.spec.project import Project, load_study  # noqa: E402
from moelaws.tables.simulate import design  # noqa: E402
from moelaws.tables.sweeps import in_sweep  # noqa: E402
from nulls import allocation, generalization, hyperparameters, leverage, sparsity  # noqa: E402

NOISE = 0.003  # of ln L, between seeds


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
    truth = searched()
    best = truth.lr["moe"][0]
    return hyperparameters.of_rates(seed, truth, budgets, best * 2 ** np.arange(-3, 3, 0.5), seeds)


def searched(**changes: Any) -> Any:
    """Returns where the best settings lie by Eq 5 and Table 5, with the noise of one seed."""
    return replace(hyperparameters.published(1e15, **changes), noise=2.3 * NOISE)


def settings(
    seed: int, budgets: Sequence[float], seeds: int, rates: Any, batches: Any, others: Any = ()
) -> Any:
    """Returns a search of ``rates`` times ``batches``, as factors of the best of mixtures at 1e15.

    ``others`` are the sweeps beside that of mixtures: that of dense models at all budgets, or that
    of other activation ratios at the largest one.
    """
    truth = searched(batch=2.0 if "dense" in others else 1.0)
    runs = hyperparameters.grid("gpu").drop_duplicates("sweep").set_index("sweep", drop=False)
    chosen = [(runs.loc[["moe"]], budgets)]
    if "dense" in others:
        chosen.append((runs.loc[["dense"]], budgets))
    if "activation" in others:
        chosen += [
            (runs.loc[["moe"]].assign(sweep="activation", E=E, A=5 / (E + 1)), budgets[-1:])
            for E in (32, 128)
        ]
    parts = [
        run.assign(
            C=C, lr=lr * truth.lr["moe"][0], batch_tokens=B * truth.batch_tokens["moe"][0], seed=i
        )
        for run, own in chosen
        for C, lr, B, i in product(own, rates, batches, range(seeds))
    ]
    return losses_of(parts, truth, seed)


def losses_of(parts: list[pd.DataFrame], truth: Any, seed: int) -> Any:
    """Returns what the rules of hyperparameters read of runs with losses by ``truth``."""
    runs = pd.concat(parts, ignore_index=True)
    known = {"tier": "gpu", "source": "simulated"}
    return hyperparameters.derived(hyperparameters.with_losses(runs, truth, seed, **known))


def sizes(seed: int, budgets: tuple[float, ...], seeds: int) -> Any:
    """Returns seven sizes of mixtures and of dense models about the best ones of Table 5.

    A size that is off by a factor of e costs 0.2 nats, as on a GPU at 1e15 FLOPs.
    """
    truth, parts = replace(searched(), curvature=0.2), []
    for kind, (at_C0, exponent) in truth.M.items():
        run = hyperparameters.grid("gpu").query(f"sweep == '{kind}_sizes'").iloc[:1]
        for C, factor, i in product(budgets, 2 ** np.arange(-1.5, 2, 0.5), range(seeds)):
            M = factor * at_C0 * (C / truth.C0) ** exponent
            parts.append(run.assign(C=C, C_leverage_no_router=C, D=C / M, seed=i))
    return losses_of(parts, truth, seed)


def powers(seed: int, budgets: tuple[float, ...], seeds: int) -> Any:
    """Returns slopes over ten sizes at one number of tokens, and over ten numbers at one size.

    A run costs a tenth of the least budget to the whole of the largest. Where the two series meet,
    a model has 20 tokens for each parameter.
    """
    costs = np.geomspace(budgets[0] / 10, budgets[-1], 10)
    N = np.sqrt(np.sqrt(costs[0] * costs[-1]) / 120)
    run, D = generalization.counted().iloc[:1], 20 * N
    parts = []
    for C, i in product(costs, range(seeds)):
        parts.append(run.assign(sweep="model", N_act=C / (6 * D), D=D, C=C, seed=i))
        parts.append(run.assign(sweep="data", N_act=N, D=C / (6 * N), C=C, seed=i))
    runs = pd.concat(parts, ignore_index=True)
    runs["run_id"] = [f"{row:016x}" for row in range(len(runs))]
    read = generalization.over_powers(seed, runs=runs, noise=NOISE)
    return SimpleNamespace(frame=runs, derived=read.derived)


def laws_of_experts(seed: int, budgets: tuple[float, ...], seeds: int) -> Any:
    """Returns the joint law of six numbers of experts, each at three sizes a budget."""
    run, parts = generalization.experts().iloc[:1], []
    for C, E, ratio, i in product(budgets, (1, 2, 4, 8, 16, 32), (5, 20, 80), range(seeds)):
        N, name = np.sqrt(C / (6 * ratio)), f"{C:g} {E} {ratio} {i}"
        own = run.assign(N_active=N, D=ratio * N, C=C, E=E, seed=i, run_id=name)
        parts.append(own.assign(_configuration=name))
    return generalization.of_experts(seed, {}, pd.concat(parts, ignore_index=True))


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
STEPS = 2 ** np.arange(-2, 2, 0.5)
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
    Question(
        "hyperparameters",
        ("batch_rises",),
        "the best batch rises as C^0.36, and one that is off by a factor of e costs 0.03 nats",
        "twelve batches, each 1.4 times the one before",
        partial(settings, rates=[1.0], batches=2 ** np.arange(-3, 3, 0.5)),
    ),
    Question(
        "hyperparameters",
        ("moe_batch_larger",),
        "mixtures' best batch is twice dense models' at 1e15, and their best rate 0.77 of it; a "
        "factor of e off costs 0.03 nats",
        "eight rates times eight batches, each 1.4 times the one before, of both kinds of models",
        partial(settings, rates=STEPS, batches=STEPS, others=["dense"]),
    ),
    Question(
        "hyperparameters",
        ("across_activation",),
        "the best rate and batch are the same at all activation ratios; a factor of e off costs "
        "0.03 nats",
        "eight rates times eight batches, each 1.4 times the one before, with two further "
        "activation ratios at the largest budget",
        partial(settings, rates=STEPS, batches=STEPS, others=["activation"]),
    ),
    Question(
        "hyperparameters",
        ("smaller_model", "equal_split"),
        "the best sizes of Table 5; a factor of e off costs 0.2 nats, as on a GPU at 1e15",
        "seven sizes of mixtures and of dense models, each 1.4 times the one before",
        sizes,
    ),
    Question(
        "generalization",
        ("active_parameters", "dimension_and_exponents", "exponent_identity"),
        "above a floor of 1.6 nats the loss is a power of the active parameters, 0.19, and one of "
        "the tokens, 0.16; hidden states have 12 dimensions",
        "ten sizes and ten numbers of tokens, with costs from a tenth of the least budget to the "
        "largest",
        powers,
    ),
    Question(
        "generalization",
        ("kappa_grows", "ratio_rises"),
        "the law of Ludziejewski et al., of which kappa grows as E^0.13",
        "six numbers of experts from 1 to 32, each at three sizes",
        laws_of_experts,
    ),
    Question("sparsity", tuple(sparsity.TRENDS), "as on a GPU at 1e15", TRENDS, surfaces),
]
