"""Tables of the leverage study from laws without the effect, and with it.

The losses scatter by 0.3 %. Between seeds small dense models in docs/evidence/leverage.parquet
scatter by 0.5 %, mixtures by 0.8 %.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from moelaws.analysis.fitted import FittedInputs
from moelaws.spec.project import load_study
from moelaws.studies.leverage.laws import joint
from nulls.trial import Trial, edge, fit_of, null, seen
from repository import REPOSITORY

STUDY = load_study("leverage", REPOSITORY)
NOISE = 0.003  # of ln L
BUDGETS = np.array([2e18, 6e18, 2e19, 6e19, 2e20, 6e20])  # tier paper's
RATIOS = 1 / 2.0 ** np.arange(8)
GRANULARITIES = np.array([2.0, 4, 6, 8, 12, 16])
MORE_GRANULARITIES = np.append(GRANULARITIES, [24.0, 32])
SHARED = np.array([0, 1, 2, 4, 6, 8, 10])
HEADS = np.array([2, 4, 8, 16])
# Of the paper's grid: (A, G) of Tables 8 and 9, and budgets up to those of Figures 4c and 1.
SHAPES = [(2 / E, 2.0) for E in (4, 8, 16, 32, 64, 128, 256)]
SHAPES += [(1 / 32, G) for G in GRANULARITIES]
POINTS = np.array([m * 10.0**e for e in (18, 19, 20, 21) for m in (1, 2, 3, 6)] + [1e22])
EQ_4 = "eq_4_predicts_large_leverage"
CURVATURE = 0.0018  # of ln L in log2 G, by Eq 4 at 1e20 FLOPs on the assumed dense curve
KNOWN = {
    "status": "completed", "source": "trained", "S": 0.9, "G": 2.0, "r": 1.0, "n_seeds": 1,
    "C_leverage": 3.0, "D": 1.0, "vocab_size": 0, "L_seed_sd": np.nan, "k": 12, "E_s": 0,
    "d_model": 512, "n_heads": 8, "n_layers": 60, "n_dense_layers": 0,
}  # fmt: skip


def dense_loss(C):
    return 60 * C**-0.085 + 1.6


def table(sweep, seed, column, values, loss, budgets=BUDGETS, noise=NOISE):
    """A row for each budget and value, with ``loss`` (C, value) in nats times noise."""
    C, x = (axis.ravel() for axis in np.meshgrid(budgets, values, indexing="ij"))
    L = loss(C, x) * np.exp(np.random.default_rng([seed, len(sweep)]).normal(0, noise, len(C)))
    ids = [f"{sweep}{place}" for place in range(len(C))]
    own = {"sweep": sweep, "C": C, column: x, "L": L, "C_leverage_no_router": C, "run_id": ids}
    return pd.DataFrame(KNOWN | own | {"trunk": ids})


def bowl(best, curvature, scale=np.log2):
    return lambda C, x: dense_loss(C) * (1 + curvature * (scale(x) - scale(best)) ** 2)


def over_ratios(seed, loss, **grid):
    frame = table("activation", seed, "A", RATIOS, loss, **grid)
    return frame.assign(S=1 - frame["A"])


def alike(C, A):
    return dense_loss(C)


def law_of_A(C, A):
    return dense_loss(C * joint.LAW.predict(joint.LAW.published, {"A": A, "G": 2.0, "C": C}))


def over_granularities(seed, curvature, sweep="granularity", best=10.0, **grid):
    return table(sweep, seed, "G", GRANULARITIES, bowl(best, curvature), **grid)


def over_more(seed, doublings, curvature=CURVATURE, **grid):
    """Up to G = 32, with a best one that moves by so many ``doublings`` for a tenfold budget."""

    def loss(C, G):
        best = 8 * 2 ** (doublings * np.log10(C / 3.5e19))
        return dense_loss(C) * (1 + curvature * np.log2(G / best) ** 2)

    return table("granularity", seed, "G", MORE_GRANULARITIES, loss, **grid)


def moving(best_of_C, curvature, whole):
    """A bowl in the share of ``whole``, whose best share depends on the budget."""
    return lambda C, n: dense_loss(C) * (1 + curvature * (n / whole - best_of_C(C)) ** 2)


def over_shares(seed, best_of_C, curvature=0.02, **grid):
    frame = table("shared", seed, "E_s", SHARED, moving(best_of_C, curvature, 12), **grid)
    return frame.assign(k=12 - frame["E_s"])


def over_balance(seed, weak_best, **grid):
    tables = {"granularity": 12.0, "granularity_weak": weak_best}
    return pd.concat(over_granularities(seed, CURVATURE, *each, **grid) for each in tables.items())


def over_attention(seed, excess, **grid):
    """A bowl in attention's share about 0.6, ``excess`` above it at 35 %."""
    loss = bowl(0.6, excess / 0.25**2, scale=lambda r: 1 / (1 + r) if np.ndim(r) else r)
    return table("attention", seed, "r", np.array([0.5, 0.8, 1.2, 2.0, 4.0]), loss, **grid)


def over_layers(seed, change, **grid):
    def loss(C, n):
        return dense_loss(C) * (1 + change * (n > 0))

    return table("dense_layers", seed, "n_dense_layers", np.array([0, 1, 2, 3]), loss, **grid)


def over_more_layers(seed, best_of_C, **grid):
    """Shares of dense layers with a bowl about the best one, of a curvature as that of shares."""
    loss = moving(best_of_C, 8, 60)
    return table("dense_layers", seed, "n_dense_layers", np.arange(0, 12, 2), loss, **grid)


def over_heads(seed, curvature, **grid):
    return table("heads", seed, "n_heads", HEADS, bowl(8, curvature), **grid)


def balanced(seed, power):
    """Coefficients of variation with scatter; without a power, permuted within each budget."""
    frame = over_granularities(seed, CURVATURE, best=12.0)
    rng = np.random.default_rng(seed)
    cv = 0.02 * frame["G"] ** (power or 1.0) * np.exp(rng.normal(0, 0.2, len(frame)))
    if not power:
        cv = cv.groupby(frame["C"]).transform(rng.permutation)
    return frame.assign(balance_cv=cv)


def with_trunks(seed, error=0.007):
    """Two seeds of runs that are alike; those of one at two budgets are a trunk, and err alike."""
    rng = np.random.default_rng([seed, 5])
    parts = []
    for repeat in range(2):
        frame = over_ratios(2 * seed + repeat, alike)
        size = frame["C"].rank(method="dense").astype(int) // 2
        trunk = frame.assign(size=size).groupby(["sweep", "A", "size"]).ngroup()
        moved = frame["L"] * np.exp(rng.normal(0, error, trunk.nunique())[trunk])
        ids = frame["run_id"] + f" s{repeat}"
        parts.append(frame.assign(L=moved, run_id=ids, trunk=trunk.astype(str) + f" s{repeat}"))
    both = pd.concat(parts, ignore_index=True)
    spread = both.groupby(["sweep", "A", "C"])["L"].transform("std")
    return both.assign(n_seeds=2, L_seed_sd=spread)


def fitted(frame, **splits):
    """The inputs of a rule that reads curves of a table, each split by a column or by none."""
    fits = {}
    for name, split_by in splits.items():
        spec = STUDY.fit(name)
        quick = {"rows": "", "split_by": split_by, "bootstrap": 60, "protocol": {"sample": 6}}
        rows = frame[frame["sweep"] == spec.sweep]
        fits[name] = fit_of(spec.model_copy(update=quick), rows)
    losses = Path("losses.parquet")
    frame.to_parquet(losses)
    return FittedInputs(frame=frame, fits=fits, derived_tables={"losses": losses})


def dense(seed, **grid):
    return table("dense", seed, "E", np.array([2.0]), lambda C, E: dense_loss(C), **grid)


def pair(seed, EL, C=6.95678e21, noise=NOISE):
    """The dense models of the paper, and MoE-mini of leverage ``EL`` with Dense-6.1B beside it."""
    runs = dense(seed, noise=noise).assign(S=0.0)
    both = pd.concat([runs.head(1)] * 2).assign(sweep="validation", S=[0.0, 31 / 32])
    at, errors = np.array([6 * C, EL * C]), np.random.default_rng([seed, 2]).normal(0, noise, 2)
    both = both.assign(C_leverage_no_router=[6 * C, C], L=dense_loss(at) * np.exp(errors))
    return fitted(pd.concat([runs, both], ignore_index=True), curve_dense="")


def growing(seed, power, **grid):
    """Runs of the dense counterpart and of three ratios whose leverage grows as C^``power``."""
    moe = table(
        "activation", seed, "E", np.array([4.0, 16, 64]),
        lambda C, E: dense_loss(C * (E / 2) ** 0.2 * (C / C.min()) ** power), **grid,
    )  # fmt: skip
    runs = pd.concat([dense(seed, **grid), moe], ignore_index=True)
    return fitted(runs, curve_dense="", curve_activation="E")


def leverages(rng, curves=0.04):
    """Points by Eq 4 as published: of each curve an error, and an error of the dense curve in all.

    The standard deviations of ln EL are those of the simulated paper tier, whose losses scatter by
    0.3 %, at the trained budgets; beyond them errors grow with ln C.
    """
    rows = []
    of_dense = 0.03 * rng.standard_normal()
    for place, (A, G) in enumerate(SHAPES):
        level, slope = curves * rng.standard_normal(2)
        true = joint.LAW.predict(joint.LAW.published, {"A": A, "G": G, "C": POINTS})
        error = of_dense + level + slope / 3 * np.log(POINTS / 3e19) / np.log(10)
        EL, measured = true * np.exp(error), (POINTS <= 3e20).astype(int)
        own = {"A_routed": A, "G": G, "C": POINTS, "EL": EL, "measured": measured}
        rows.append(pd.DataFrame(own).assign(architecture=f"{place}", sweep="activation"))
    return pd.concat(rows, ignore_index=True)


def of_points(points):
    """The inputs of the rule on Eq 4, which is fitted to a table ``points`` by least squares.

    They take a tenth of the time of the study's robust loss. A_max, which takes most of the rest,
    stays as published, where it is too large to matter.
    """
    table = Path("points.parquet")
    points.to_parquet(table)
    quick = {
        "bootstrap": 20,
        "protocol": {"objective": "squared", "sample": 1},
        "fixed": {"A_max": joint.LAW.published["A_max"]},
    }
    fits = {"joint": fit_of(STUDY.fit("joint").model_copy(update=quick), points)}
    return FittedInputs(frame=None, fits=fits, derived_tables={"points": table})


def validating(seed, curves=0.04, other_models=False):
    """Points by Eq 4, or each architecture has those of another, so that no law can tell."""
    rng = np.random.default_rng(seed)
    points = leverages(rng, curves)
    if other_models:
        EL = points["EL"].to_numpy().reshape(len(SHAPES), -1)
        points = points.assign(EL=EL[rng.permutation(len(SHAPES))].ravel())
    return of_points(points)


def step(C):
    return np.where(C <= 1e20, 1 / 6, 1 / 12)


# Claim -> its tables, what these take without the effect and with it, and how many of a hundred
# with it support the claim at least. Of the best share, the paper prints no curvature.
CASES = {
    "sparser_is_better": (over_ratios, alike, law_of_A, 70),
    "best_granularity": (over_granularities, 0.0, CURVATURE, 20),
    "best_granularity_is_the_same_at_all_budgets": (over_more, 0.5, 0.0, 20),
    "weak_balance_favours_coarse": (over_balance, 12.0, 7.0, 50),
    "fewer_shared_with_compute": (over_shares, lambda C: 0.13, step, 5),
    "attention_share": (over_attention, 0.005, 0.001, 70),
    "dense_layers_matter_little": (over_layers, 0.005, 0.0, 70),
    "more_dense_layers_with_compute": (
        over_more_layers,
        lambda C: 0.08,
        lambda C: 0.08 + 0.03 * np.log10(C / 3.5e19),
        50,
    ),
    "heads_hardly_matter": (over_heads, 0.005, 0.001, 70),
    "finer_is_less_balanced": (balanced, 0.0, 0.96, 70),
}
TRIALS = [
    *(
        trial
        for claim, (made, without, effect, least) in CASES.items()
        for trial in (
            edge(claim, lambda seed, made=made, without=without: made(seed, without)),
            seen(claim, lambda seed, made=made, effect=effect: made(seed, effect), least),
        )
    ),
    edge("few_shared_experts", lambda seed: over_shares(seed, lambda C: 0.15, curvature=0.0)),
    seen("few_shared_experts", lambda seed: over_shares(seed, lambda C: 0.15), 10),
    # Errors that runs of a trunk share seldom refute that sparser is better
    Trial(("sparser_is_better",), with_trunks, (0, 0), (0, 3), 32),
    edge("matches_seven_times_the_compute", partial(pair, EL=7.0)),
    # The leverage of Eq 4 at 1e24 FLOPs, where it is largest in reach; at MoE-mini's own it is 7
    seen("matches_seven_times_the_compute", partial(pair, EL=11.5), 30),
    edge("grows_with_compute", partial(growing, power=0.0), 40),
    seen("grows_with_compute", partial(growing, power=0.1), 28, 40),
    null(EQ_4, partial(validating, other_models=True)),
    seen(EQ_4, partial(validating, curves=0.01), 80),
]
