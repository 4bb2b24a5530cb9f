"""The claims of Clark et al. on routing that measure what no table holds."""

import math

from moelaws.analysis.effect import Effect
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import LEVEL, of_mean
from moelaws.claims.base import Evidence
from moelaws.fitting.quantiles import t_interval
from moelaws.studies.routing.routers import DENSE, ROUTERS, main_runs

BEST = "S-Base"


def helps_everywhere(inputs: Inputs) -> Evidence:
    """Returns the least gain over the dense model at each size, with the spread between seeds."""
    gains = inputs.derived("gains")
    least = gains.loc[gains.groupby("N_dense")["gain"].idxmin()]
    runs = main_runs(inputs.completed)
    dense = runs[runs["router"] == DENSE].groupby("N_dense")["L"]
    seeds = dense.get_group(dense.size().idxmax())
    # The interval of the difference of two runs that differ in their seed alone
    low, high = t_interval(0.0, math.sqrt(2) * seeds.std(), len(seeds) - 1, LEVEL)
    each = [Effect(gain, gain + low, gain + high) for gain in least["gain"]]
    smallest = min(each, key=lambda gain: gain.value)
    texts = (f"{x.size}: {x.gain:.4f} ({x.router}, {x.E} experts)" for x in least.itertuples())
    return Evidence(
        f"the least of {len(gains)} gains is {smallest} nats/token by the spread of {len(seeds)} "
        f"seeds; the least at each size: {'; '.join(texts)}",
        smallest,
        "nats/token",
        each,
    )


def best_router(inputs: Inputs, experts: int) -> Evidence:
    """Returns how far the other routers' losses exceed S-Base's with ``experts`` or more."""
    runs = inputs.derived("gains").query("E >= @experts")
    losses = runs.pivot_table(index=["N_dense", "E"], columns="router", values="L")
    each, texts = [], []
    for other in (router.name for router in ROUTERS if router.name != BEST):
        more = (losses[other] - losses[BEST]).dropna()
        each.append(of_mean(more.groupby("N_dense").mean()))
        texts.append(
            f"{other} {each[-1]} nats/token above {BEST}, which has the lower loss in "
            f"{int((more > 0).sum())} of {len(more)} pairs"
        )
    return Evidence(
        f"{'; '.join(texts)} (means over {len(losses.groupby('N_dense'))} sizes, {experts} experts "
        "or more)",
        min(each, key=lambda more: more.value),
        "nats/token",
        each,
    )
