"""What Clark et al. claim of routing, measured on their published runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.minimum import Array, percentile_interval
from moelaws.claims.base import Evidence
from moelaws.fitting.regression import least_squares, student_t
from moelaws.studies.routing.routers import DENSE, ROUTERS, main_runs

LEVEL = 0.9
DRAWS = 20_000
BEST = "S-Base"


def helps_everywhere(inputs: Inputs) -> Evidence:
    """Returns the least gain over the dense model at each size, with the spread between seeds."""
    gains = inputs.derived("gains")
    least = gains.loc[gains.groupby("N_dense")["gain"].idxmin()]
    runs = main_runs(inputs.completed)
    dense = runs[runs["router"] == DENSE].groupby("N_dense")["L"]
    seeds = dense.get_group(dense.size().idxmax()).to_numpy(float)
    low, high = _difference_of_two(seeds)
    smallest = float(least["gain"].min())
    listed = "; ".join(
        f"{size}: {gain:.4f} ({router}, {E} experts)"
        for size, gain, router, E in zip(
            *(least[name] for name in ("size", "gain", "router", "E")), strict=True
        )
    )
    return Evidence(
        f"the least of {len(gains)} gains is {smallest:.4f} [{smallest + low:.4f}, "
        f"{smallest + high:.4f}] nats/token by the spread of {len(seeds)} seeds; the least at each "
        f"size: {listed}",
        smallest,
        smallest + low,
        smallest + high,
        "nats/token",
        decides=[(gain + low, gain + high) for gain in least["gain"]],
    )


def helps_less(inputs: FittedInputs) -> Evidence:
    """Returns the coefficient c of the three routers."""
    estimates = [inputs.fit(router.fit).part({}).params["c"] for router in ROUTERS]
    ends = [(_number(c.low), _number(c.high)) for c in estimates]
    return _of_routers("c", [c.estimate for c in estimates], ends, "1", ".4f")


def saturates(inputs: FittedInputs) -> Evidence:
    """Returns the profile-likelihood intervals of E_max of the three routers."""
    profiles = [inputs.fit(router.fit).part({}).profile["E_max"] for router in ROUTERS]
    ends = [(p.low or 0.0, math.inf if p.high is None else p.high) for p in profiles]
    return _of_routers("E_max", [p.estimate for p in profiles], ends, "experts", ".0f")


def best_router(inputs: Inputs, experts: int) -> Evidence:
    """Returns by how much the losses of the other routers exceed those of S-Base.

    Args:
        inputs: with the derived table gains.
        experts: from how many on.
    """
    runs = inputs.derived("gains").query("E >= @experts")
    losses = runs.pivot_table(index=["N_dense", "E"], columns="router", values="L")
    values, ends, texts = [], [], []
    for other in (router.name for router in ROUTERS if router.name != BEST):
        more = (losses[other] - losses[BEST]).dropna()
        of_sizes = more.groupby("N_dense").mean().to_numpy(float)
        mean, (low, high) = _mean(of_sizes)
        values.append(mean)
        ends.append((low, high))
        texts.append(
            f"{other} {mean:.3f} [{low:.3f}, {high:.3f}] nats/token above {BEST}, which has the "
            f"lower loss in {int((more > 0).sum())} of {len(more)} pairs"
        )
    least = int(np.argmin(values))
    return Evidence(
        f"{'; '.join(texts)} (means over {len(losses.groupby('N_dense'))} sizes, {experts} experts "
        "or more)",
        values[least],
        *ends[least],
        "nats/token",
        decides=ends,
    )


def stops_helping(inputs: Inputs) -> Evidence:
    """Returns log10 of the size at which routing stops helping, by the paper's objective."""
    rows = inputs.derived("cutoffs").query("objective == 'squared'").set_index("router")
    ends = [(float(low), float(high)) for low, high in zip(rows["low"], rows["high"], strict=True)]
    texts = []
    for router, row in rows.iterrows():
        holds = "holds" if row["low"] <= row["stated"] <= row["high"] else "leaves out"
        size, low, high = (10 ** row[name] for name in ("log10_N", "low", "high"))
        texts.append(
            f"{router} {size:.2g} [{low:.2g}, {high:.2g}], which {holds} the stated "
            f"{10 ** row['stated']:.3g} (by the printed coefficients {10 ** row['printed']:.2g})"
        )
    least = int(np.argmin(rows["log10_N"]))
    return Evidence(
        f"base parameters: {'; '.join(texts)}",
        float(rows["log10_N"].iloc[least]),
        *ends[least],
        "log10(parameters)",
        decides=ends,
    )


def _of_routers(
    name: str,
    values: Sequence[float],
    ends: Sequence[tuple[float, float]],
    unit: str,
    digits: str,
) -> Evidence:
    """A parameter of the three routers' fits, all of which decide; the first one is shown."""
    texts = [
        f"{router.name} {value:{digits}} [{low:{digits}}, {high:{digits}}]"
        for router, value, (low, high) in zip(ROUTERS, values, ends, strict=True)
    ]
    return Evidence(f"{name}: {'; '.join(texts)}", values[0], *ends[0], unit, decides=ends)


def _difference_of_two(seeds: Array) -> tuple[float, float]:
    """The interval of the difference of two runs that differ in their seed alone."""
    freedom = len(seeds) - 1
    if freedom < 1:
        return math.nan, math.nan
    scale = float(np.sqrt(2) * seeds.std(ddof=1))
    return percentile_interval(student_t(np.eye(1), freedom, DRAWS, 0, scale)[:, 0], LEVEL)


def _mean(values: Array) -> tuple[float, tuple[float, float]]:
    fitted = least_squares(np.ones((len(values), 1)), values, draws=DRAWS)
    return float(fitted.coefficients[0]), percentile_interval(fitted.draws[:, 0], LEVEL)


def _number(value: float | None) -> float:
    return math.nan if value is None else value
