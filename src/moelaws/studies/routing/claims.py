"""The claims of Clark et al. on routing, measured on their published runs."""

import math
from collections.abc import Sequence

import numpy as np

from moelaws.analysis.estimate import number_or_nan
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.analysis.regression import LEVEL, of_mean
from moelaws.claims.base import Evidence
from moelaws.fitting.quantiles import t_interval
from moelaws.studies.routing.routers import CUTOFF, DENSE, ROUTERS, main_runs

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
    smallest = float(least["gain"].min())
    texts = (f"{x.size}: {x.gain:.4f} ({x.router}, {x.E} experts)" for x in least.itertuples())
    measured = (
        f"the least of {len(gains)} gains is {smallest:.4f} [{smallest + low:.4f}, "
        f"{smallest + high:.4f}] nats/token by the spread of {len(seeds)} seeds; the least at each "
        f"size: {'; '.join(texts)}"
    )
    decides = [(gain + low, gain + high) for gain in least["gain"]]
    return Evidence(measured, smallest, smallest + low, smallest + high, "nats/token", decides)


def helps_less(inputs: FittedInputs) -> Evidence:
    """Returns the coefficient c of the three routers, with the intervals over base sizes."""
    estimates = [inputs.fit(router.fit).group({}).params["c"] for router in ROUTERS]
    alone = "; ".join(
        f"{router.name} [{number_or_nan(c.low):.4f}, {number_or_nan(c.high):.4f}]"
        for router, c in zip(ROUTERS, estimates, strict=True)
    )
    ends = _over_sizes(inputs, "c")
    numbers = [(c.estimate, *own) for c, own in zip(estimates, ends, strict=True)]
    return _of_routers("c", numbers, "1", ".4f", f"; by independent residuals: {alone}")


def saturates(inputs: FittedInputs) -> Evidence:
    """Returns the profile-likelihood intervals of E_max of the three routers."""
    profiles = [inputs.fit(router.fit).group({}).profile["E_max"] for router in ROUTERS]
    numbers = [(p.estimate, p.low or 0.0, math.inf if p.high is None else p.high) for p in profiles]
    beside = "; ".join(
        f"{router.name} [{low:.0f}, {high:.0f}]"
        for router, (low, high) in zip(ROUTERS, _over_sizes(inputs, "E_max"), strict=True)
    )
    return _of_routers("E_max", numbers, "experts", ".0f", f"; over base sizes: {beside}")


def best_router(inputs: Inputs, experts: int) -> Evidence:
    """Returns how far the other routers' losses exceed S-Base's with ``experts`` or more."""
    runs = inputs.derived("gains").query("E >= @experts")
    losses = runs.pivot_table(index=["N_dense", "E"], columns="router", values="L")
    values, ends, texts = [], [], []
    for other in (router.name for router in ROUTERS if router.name != BEST):
        more = (losses[other] - losses[BEST]).dropna()
        mean, low, high = of_mean(more.groupby("N_dense").mean()).interval
        values.append(mean)
        ends.append((low, high))
        texts.append(
            f"{other} {mean:.3f} [{low:.3f}, {high:.3f}] nats/token above {BEST}, which has the "
            f"lower loss in {int((more > 0).sum())} of {len(more)} pairs"
        )
    least = int(np.argmin(values))
    measured = (
        f"{'; '.join(texts)} (means over {len(losses.groupby('N_dense'))} sizes, {experts} experts "
        "or more)"
    )
    return Evidence(measured, values[least], *ends[least], "nats/token", decides=ends)


def stops_helping(inputs: Inputs) -> Evidence:
    """Returns log10 of the size where routing stops helping, with its interval over base sizes."""
    rows = inputs.derived("cutoffs").query("objective == 'squared'").set_index("router")
    ends, texts = _over_sizes(inputs, CUTOFF), []
    for (router, row), (low, high) in zip(rows.iterrows(), ends, strict=True):
        holds = "holds" if low <= row["stated"] <= high else "leaves out"
        texts.append(
            f"{router} {_size(row['log10_N'])} [{_size(low)}, {_size(high)}], which {holds} "
            f"the stated {10 ** row['stated']:.3g} (by independent residuals "
            f"[{_size(row['low'])}, {_size(row['high'])}]; by the printed coefficients "
            f"{_size(row['printed'])})"
        )
    least = int(np.argmin(rows["log10_N"]))
    value, measured = float(rows["log10_N"].iloc[least]), f"base parameters: {'; '.join(texts)}"
    return Evidence(measured, value, *ends[least], "log10(parameters)", ends)


def _size(log10_N: float) -> str:
    """Returns a size as text; inf where it is beyond any float, as c close to 0 gives."""
    return f"{10**log10_N if not log10_N > 308 else math.inf:.2g}"


def _of_routers(
    name: str, numbers: Sequence[tuple[float, float, float]], unit: str, digits: str, beside: str
) -> Evidence:
    """Returns a parameter of the three routers' fits, all of which decide; shows the first."""
    texts = [
        f"{router.name} {value:{digits}} [{low:{digits}}, {high:{digits}}]"
        for router, (value, low, high) in zip(ROUTERS, numbers, strict=True)
    ]
    measured = f"{name}: {'; '.join(texts)}{beside}"
    return Evidence(measured, *numbers[0], unit, decides=[(low, high) for _, low, high in numbers])


def _over_sizes(inputs: Inputs, quantity: str) -> list[tuple[float, float]]:
    rows = inputs.derived("sizes").query("quantity == @quantity").set_index("router")
    return [(float(rows["low"][r.name]), float(rows["high"][r.name])) for r in ROUTERS]
