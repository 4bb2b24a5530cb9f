"""What is said of the published runs, and rules that measure it."""

from moelaws.analysis.estimate import Estimate, number_or_nan
from moelaws.analysis.fitted import FittedInputs
from moelaws.analysis.inputs import Inputs
from moelaws.claims.base import Evidence
from moelaws.fitting.report import GroupFit


def holds_larger_runs(inputs: Inputs, fit: str) -> Evidence:
    """Returns how far the least loss of the larger runs lies from what the fit predicts.

    The unit is the half width of the calibrated interval, on that side.
    """
    rows = inputs.derived("predictions").query("fit == @fit").sort_values("observed")
    least = rows.iloc[0]
    value, observed = float(least["value"]), float(least["observed"])
    end = float(least["high"] if observed > value else least["low"])
    far = (observed - value) / abs(end - value)
    losses = ", ".join(f"{x:.3f}" for x in rows["observed"])
    return Evidence(
        f"{value:.3f} [{least['low']:.3f}, {least['high']:.3f}] is predicted, the law alone gives "
        f"[{least['alone_low']:.3f}, {least['alone_high']:.3f}]; {len(rows)} runs have {losses} "
        f"nats/token; the calibrated interval holds {rows['inside'].sum()} of them, that of the "
        f"law alone {rows['inside_alone'].sum()}",
        far,
        unit="half widths of the interval",
        decides=[(far, far)],
    )


def size_outgrows_tokens(inputs: FittedInputs, group: str, stated: float) -> Evidence:
    """Returns the exponent of the best size over compute, beside the ``stated`` one."""
    parts = [part for part in inputs.fit("size").parts if part.where["group"] == group]
    others = [part for part in inputs.fit("size").parts if part.where["group"] != group]
    if not parts:
        return Evidence(f"fewer than four budgets of {group} have an optimum")
    own = exponent(parts[0])
    holds = "holds" if own.low <= stated <= own.high else "does not hold"
    texts = [f"{part.where['group']} {exponent(part)}" for part in others]
    return Evidence(
        f"N* grows as C^b with b = {own} from {own.n} budgets, which {holds} {stated}"
        + (f"; others: {'; '.join(texts)}" if texts else ""),
        *own.interval,
    )


def exponent(part: GroupFit) -> Estimate:
    own = part.params["exponent"]
    return Estimate(own.estimate, number_or_nan(own.low), number_or_nan(own.high), part.n)


def mixtures_save_compute(inputs: Inputs, stated: float) -> Evidence:
    """Returns the leverage of mixtures by each floor, beside the ``stated`` one."""
    rows = inputs.derived("leverage")
    if not len(rows):
        return Evidence("the runs of marin-ladder are not here")
    texts = [
        f"{x.leverage:.2f} [{x.low:.2f}, {x.high:.2f}] with L above {x.floor}"
        for x in rows.itertuples()
    ]
    middle = rows.iloc[len(rows) // 2]
    value, low, high = middle[["leverage", "low", "high"]].astype(float)
    return Evidence(
        f"{'; '.join(texts)}; the authors state {stated}; in time, by their MFU, it is "
        f"{middle['in_time']:.2f} [{middle['time_low']:.2f}, {middle['time_high']:.2f}]",
        value,
        low,
        high,
        "times",
        decides=list(zip(rows["low"].astype(float), rows["high"].astype(float), strict=True)),
    )
